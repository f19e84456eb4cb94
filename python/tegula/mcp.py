"""Tegula as tools of the Model Context Protocol, over standard input and output: `tegula mcp`.

Programs are checked, repaired, explained and run by the command `tegula` and by child processes with a deadline, so that
nothing that a program does reaches this process. `evaluate` is tegula-eval's judging, with a worker of its own. Whatever a call
has started ends with it: when it is answered, when the client calls it off, and when the session ends.
"""

import argparse
import asyncio
import ctypes
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Awaitable, Callable, Literal, Optional, TypeVar

from tegula_eval import missing

CHECK_SECONDS = 20
RUN_BYTES = 8 << 30
PROGRESS_SECONDS = 1.0
WRONG_CALL, MISSING = 2, 3
Result = TypeVar("Result")
_libc = ctypes.CDLL(None)


def command_path() -> str:
    """`$TEGULA_COMMAND`, or the command beside the interpreter, or the one on the path."""
    for place in (os.environ.get("TEGULA_COMMAND"), Path(sys.executable).with_name("tegula"),
                  shutil.which("tegula")):
        if place and os.path.exists(place):
            return str(place)
    raise FileNotFoundError("there is no command tegula; TEGULA_COMMAND names it")


class Refused(Exception):
    """A call that cannot be answered, in words for who asked."""


class Late(Exception):
    """A child was not done in time."""


def _limit_child() -> None:
    _libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with this process, however that ends
    resource.setrlimit(resource.RLIMIT_DATA, (RUN_BYTES, RUN_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


async def _child(command: list[str], seconds: float, given: Optional[bytes] = None, **options: Any) -> tuple[int, str, str]:
    """Exit code, output and errors. Raises Late. It is killed where it is late, or the call is called off."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL if given is None else asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, start_new_session=True, preexec_fn=_limit_child,
        **options)
    try:
        out, err = await asyncio.wait_for(process.communicate(given), seconds)
    except asyncio.TimeoutError:
        raise Late from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode is not None
    return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")


class Folder:
    """A folder of a call's own, with these files, in which the command runs."""

    def __init__(self, **files: str):
        self._folder = tempfile.TemporaryDirectory(prefix="tegula-mcp-")
        self.path = Path(self._folder.name)
        for name, text in files.items():
            self.path.joinpath(name.replace("_", ".")).write_text(text, encoding="utf-8")

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *_: Any) -> None:
        self._folder.cleanup()

    async def tegula(self, *arguments: str) -> tuple[int, str, str]:
        try:
            return await _child([command_path(), *arguments], CHECK_SECONDS, cwd=self.path)
        except Late:
            raise Refused(f"tegula {arguments[0]} took more than {CHECK_SECONDS} s") from None

    async def diagnostics(self) -> list[dict[str, Any]]:
        _, records, _ = await self.tegula("check", "--json", "program.tgl")
        return [json.loads(line) for line in records.splitlines()]


async def check(program: str) -> dict[str, Any]:
    """`ok`, the text for people and the records of the diagnostics (docs/diagnostics.md)."""
    with Folder(program_tgl=program) as folder:
        code, out, err = await folder.tegula("check", "program.tgl")
        return {"ok": code == 0, "text": (out + err).strip(), "diagnostics": await folder.diagnostics()}


async def fix(program: str, maybe: bool) -> dict[str, Any]:
    """The program with its edits, what they were, and what is left."""
    with Folder(program_tgl=program) as folder:
        code, out, err = await folder.tegula("fix", *(["--maybe"] if maybe else []), "program.tgl")
        fixed = (folder.path / "program.tgl").read_text(encoding="utf-8")
        return {"ok": code == 0, "changed": fixed != program, "program": fixed, "text": (out + err).strip(),
                "diagnostics": await folder.diagnostics()}


async def explain(code: str) -> str:
    with Folder() as folder:
        status, out, err = await folder.tegula("explain", "--", code)
    if status:
        raise Refused(err.strip())
    return out.strip()


async def examples(task: str, count: int) -> str:
    with Folder(task_py=task) as folder:
        status, out, err = await folder.tegula("prompt", "--task=task.py", f"--examples={count}")
    if status:
        raise Refused(err.strip())
    return out.strip()


async def run(request: dict[str, Any], seconds: float) -> dict[str, Any]:
    """`_mcp_run` in a child."""
    package = str(Path(__file__).resolve().parents[1])
    paths = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    try:
        code, out, err = await _child([sys.executable, "-m", "tegula._mcp_run"], seconds, json.dumps(request).encode(),
                                      env={**os.environ, "PYTHONPATH": paths})
    except Late:
        return {"error": f"it took more than {seconds} s", "diagnostics": []}
    if code:
        ended = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        print(err, file=sys.stderr, flush=True)  # for who runs the server, not for who asks it
        return {"error": f"its process ended with {ended}", "diagnostics": []}
    result: dict[str, Any] = json.loads(out)
    return result


class Judge:
    """tegula-eval's judging, with a worker that is started when it is first asked."""

    def __init__(self) -> None:
        self._judge: Any = None
        self._pool: Any = None
        self._folder: Any = None

    async def __call__(self, submission: dict[str, Any], told: Callable[[str], None]) -> dict[str, Any]:
        import anyio.to_thread

        if self._judge is None:
            self._start()
        from tegula_eval.service.schemas import reward_of
        from tegula_eval.workers import pool

        job = pool.Job(told)
        try:
            return reward_of(await anyio.to_thread.run_sync(self._judge, submission, job, abandon_on_cancel=True))
        except pool.NoWorker as error:
            raise Refused(f"evaluate: {error}") from None
        finally:
            job.call_off()

    def _start(self) -> None:
        import secrets

        try:
            missing.check("torch")
        except missing.Missing as error:
            raise Refused(f"evaluate: {error}") from None
        from tegula_eval import cli
        from tegula_eval.service import judging
        from tegula_eval.workers import pool
        self._folder = tempfile.TemporaryDirectory(prefix="tegula-mcp-")
        options = cli.parse(["serve", f"--out={self._folder.name}"])
        self._pool = pool.Pool(1, options.deadline, options.memory)
        self._judge = judging.pooled_judge(options, secrets.token_hex(16), self._pool)

    def stop(self) -> None:
        if self._pool:
            self._pool.stop()
        if self._folder:
            self._folder.cleanup()


async def _with_progress(context: Any, work: Awaitable[Result], said: list[str]) -> Result:
    """Tells the client, where it has asked for that, each thing that is `said`, and from time to time that it goes on; the
    progress is in seconds."""
    started, told = time.monotonic(), 0

    async def report(message: str) -> None:
        await context.report_progress(round(time.monotonic() - started, 6), message=message)

    async def report_new() -> None:
        nonlocal told
        while told < len(said):
            await report(said[told])
            told += 1

    async def tell() -> None:
        while True:
            await report_new()
            end = time.monotonic() + PROGRESS_SECONDS
            while time.monotonic() < end and told == len(said):
                await asyncio.sleep(0.05)
            if told == len(said):
                await report(said[-1])

    telling = asyncio.ensure_future(tell())
    try:
        result = await work
    finally:
        telling.cancel()
    await report_new()
    return result


def make_server(judge: Judge) -> Any:
    """The server, with six tools and, as its instructions, the page that teaches the language."""
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.server.mcpserver.tools import Tool
    from mcp_types import ToolAnnotations
    from pydantic import Field

    from . import __version__

    Program = Annotated[str, Field(description="The text of a .tgl file")]
    tools: list[Any] = []

    def tool(name: str, title: str, reads_only: bool = True) -> Callable[[Any], Any]:
        """Arguments that the function does not name are refused, where the SDK's own tools ignore them."""
        def add(function: Any) -> Any:
            made = Tool.from_function(function, name=name, title=title, annotations=ToolAnnotations(
                title=title, read_only_hint=reads_only, destructive_hint=False, idempotent_hint=True, open_world_hint=False))
            arguments = made.fn_metadata.arg_model
            arguments.model_config["extra"] = "forbid"
            arguments.model_rebuild(force=True)
            made.parameters = arguments.model_json_schema(by_alias=True)
            tools.append(made)
            return function
        return add

    async def answered(work: Awaitable[Result]) -> Result:
        try:
            return await work
        except Refused as error:
            raise ToolError(str(error)) from None
        except OSError as error:  # of this machine: no room for a file, no process
            raise ToolError(f"the server cannot do it now: {error}") from None

    @tool("check", "Check a program")
    async def check_tool(program: Program) -> dict[str, Any]:
        """Says whether a Tegula program is right for all sizes. `diagnostics` are records with code, message,
        span, notes and fixes, whose edits (byte offsets) repair the program; `text` is the same for people."""
        return await answered(check(program))

    @tool("fix", "Repair a program")
    async def fix_tool(
        program: Program,
        maybe: Annotated[bool, Field(description="Apply the first suggestion where no edit is safe, too")] = False,
    ) -> dict[str, Any]:
        """Applies the safe edits of a Tegula program's diagnostics, until none is left. Gives the `program` as it is then,
        whether it `changed`, whether it is `ok`, each edit in `text`, and the `diagnostics` that are left."""
        return await answered(fix(program, maybe))

    @tool("explain", "Explain a diagnostic")
    async def explain_tool(code: Annotated[str, Field(description="As E0301, or a name as RankMismatch")]) -> str:
        """Shows a wrong and a right program for the code of a diagnostic."""
        return await answered(explain(code))

    @tool("run", "Run a program")
    async def run_tool(
        context: Context,
        program: Program,
        inputs: Annotated[dict[str, Any], Field(description="Tensors as nested lists, by name; others that are "
                                                            "needed are random")] = {},
        sizes: Annotated[dict[str, Annotated[int, Field(ge=0, lt=1 << 63)]],
                         Field(description="Of random tensors: {\"M\": 2, \"N\": 3}")] = {},
        values: Annotated[dict[str, Any], Field(description="Scalars and constants by name")] = {},
        types: Annotated[dict[str, str], Field(description="Of generic types; f32 where none is given")] = {},
        kernel: Annotated[Optional[str], Field(description="Its name; the last one where none is given")] = None,
        seed: Annotated[int, Field(ge=0, lt=1 << 64, description="Of the random tensors")] = 0,
        seconds: Annotated[int, Field(ge=1, le=600, description="It is stopped after these")] = 60,
    ) -> dict[str, Any]:
        """Runs a kernel on the CPU and gives `outputs` by name: dtype, shape, values (nested lists; the first of
        large ones as a flat list), and the random inputs likewise. Where it cannot run: `error`, `diagnostics`."""
        request = {"program": program, "inputs": inputs, "sizes": sizes, "values": values, "types": types,
                   "kernel": kernel, "seed": seed}
        return await answered(_with_progress(context, run(request, seconds), ["run"]))

    @tool("evaluate", "Evaluate a program on a PyTorch module", reads_only=False)  # the module's text is code, too
    async def evaluate_tool(
        context: Context,
        task: Annotated[str, Field(description="Python: class Model(nn.Module), get_inputs(), get_init_inputs()")],
        program: Program,
        target: Literal["cpu", "cuda"] = "cpu",
        seeds: Annotated[int, Field(ge=1, le=16, description="Sets of inputs for each size")] = 2,
        timed: Annotated[bool, Field(description="Time it beside eager mode once it is right")] = False,
    ) -> dict[str, Any]:
        """Judges a program against a PyTorch module at several sizes, with fresh inputs, against float64. Gives
        `right`, `outcome`, `reason`, `message`, `diagnostics`, the first `wrong` elements (index, expected, got),
        the `pattern` in which wrong elements lie, and `speedup` where it was timed."""
        said = ["waiting for a worker"]
        submission = {"task": task, "program": program, "target": target, "seeds": seeds, "own": False, "timed": timed}
        return await answered(_with_progress(context, judge(submission, said.append), said))

    @tool("examples", "Examples near a task")
    async def examples_tool(
        task: Annotated[str, Field(description="The PyTorch module, or a description in words")],
        count: Annotated[int, Field(ge=0, le=20)] = 3,
    ) -> str:
        """What to know to write a program for a task: the page that teaches the language, verified examples that
        have most in common with the task, and how parameters stand for a PyTorch module's."""
        return await answered(examples(task, count))

    async def page() -> str:
        with Folder() as folder:
            return (await folder.tegula("prompt"))[1]

    return MCPServer("tegula", version=__version__, instructions=asyncio.run(page()), log_level="WARNING", tools=tools)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tegula mcp", description="Serves tools of the Model Context Protocol on standard input and output: "
                                       "check, fix, explain, run, evaluate, examples.")
    parser.parse_args()
    judge = Judge()
    try:
        server = make_server(judge)
        from ._mcp_wire import streams
    except ImportError as error:
        print(f"tegula mcp: it needs mcp ({error}); {missing.remedy('mcp')}", file=sys.stderr)
        return MISSING
    except FileNotFoundError as error:
        print(f"tegula mcp: {error}", file=sys.stderr)
        return MISSING

    async def serve() -> None:
        async with streams() as (read, write):
            lower = server._lowlevel_server  # as MCPServer.run_stdio_async, with other streams
            await lower.run(read, write, lower.create_initialization_options())

    try:
        asyncio.run(serve())
    finally:
        judge.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
