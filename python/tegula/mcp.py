"""Tegula as tools of the Model Context Protocol, over standard input and output: `tegula mcp`.

Programs are checked, explained and run by the command `tegula` and by child processes with a deadline, so that
nothing that a program does reaches this process. `evaluate` is tegula-eval's judging, with workers of its own.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Annotated, Any, Callable, Literal, Optional

from tegula_eval import missing

CHECK_SECONDS = 20
RUN_BYTES = 8 << 30
WRONG_CALL, MISSING = 2, 3


def command_path() -> str:
    """`$TEGULA_COMMAND`, or the command beside the interpreter, or the one on the path."""
    for place in (os.environ.get("TEGULA_COMMAND"), Path(sys.executable).with_name("tegula"),
                  shutil.which("tegula")):
        if place and os.path.exists(place):
            return str(place)
    raise FileNotFoundError("there is no command tegula; TEGULA_COMMAND names it")


class Refused(Exception):
    """A call that cannot be answered, in words for who asked."""


def _tegula(arguments: list[str], files: Optional[dict[str, str]] = None) -> subprocess.CompletedProcess[str]:
    """The command, in a new folder with these files."""
    with tempfile.TemporaryDirectory(prefix="tegula-mcp-") as folder:
        for name, text in (files or {}).items():
            Path(folder, name).write_text(text, encoding="utf-8")
        try:
            return subprocess.run([command_path(), *arguments], cwd=folder, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace", timeout=CHECK_SECONDS)
        except subprocess.TimeoutExpired:
            raise Refused(f"tegula {arguments[0]} took more than {CHECK_SECONDS} s") from None


def check(program: str) -> dict[str, Any]:
    """`ok`, the text for people and the records of the diagnostics (docs/diagnostics.md)."""
    done = _tegula(["check", "program.tgl"], {"program.tgl": program})
    records = _tegula(["check", "--json", "program.tgl"], {"program.tgl": program}).stdout
    return {"ok": done.returncode == 0, "text": (done.stdout + done.stderr).strip(),
            "diagnostics": [json.loads(line) for line in records.splitlines()]}


def explain(code: str) -> str:
    done = _tegula(["explain", "--", code])
    if done.returncode:
        raise Refused(done.stderr.strip())
    return done.stdout.strip()


def examples(task: str, count: int) -> str:
    done = _tegula(["prompt", "--task=task.py", f"--examples={count}"], {"task.py": task})
    if done.returncode:
        raise Refused(done.stderr.strip())
    return done.stdout.strip()


def run(request: dict[str, Any], seconds: float) -> dict[str, Any]:
    """`_mcp_run` in a child."""
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (RUN_BYTES, RUN_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    package = str(Path(__file__).resolve().parents[1])
    paths = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run([sys.executable, "-m", "tegula._mcp_run"], input=json.dumps(request), text=True,
                              capture_output=True, errors="replace", timeout=seconds, preexec_fn=limit,
                              env={**os.environ, "PYTHONPATH": paths})
    except subprocess.TimeoutExpired:
        return {"error": f"it took more than {seconds} s", "diagnostics": []}
    if done.returncode:
        ended = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
        return {"error": f"it ended with {ended}: {done.stderr[-2000:].strip()}", "diagnostics": []}
    result: dict[str, Any] = json.loads(done.stdout)
    return result


class Judge:
    """tegula-eval's judging, with a worker that is started when it is first asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._judge: Any = None

    def __call__(self, submission: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            if self._judge is None:
                self._judge = self._start()
        from tegula_eval.serve import reward_of

        return reward_of(self._judge(submission))

    def _start(self) -> Any:
        import secrets

        try:
            missing.check("torch", "fastapi", "uvicorn")
        except missing.Missing as error:
            raise Refused(f"evaluate: {error}") from None
        from tegula_eval import cli, serve
        self._folder = tempfile.TemporaryDirectory(prefix="tegula-mcp-")
        options = cli._parse(["serve", f"--out={self._folder.name}"])
        return serve.pooled_judge(options, secrets.token_hex(16))


def make_server() -> Any:
    """The server, with five tools and, as its instructions, the page that teaches the language."""
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from pydantic import Field

    from . import __version__

    page = _tegula(["prompt"]).stdout
    server = MCPServer("tegula", version=__version__, instructions=page, log_level="WARNING")
    Program = Annotated[str, Field(description="The text of a .tgl file")]
    judge = Judge()

    def answered(function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Refused as error:
            raise ToolError(str(error)) from None

    @server.tool(name="check", title="Check a program")
    def check_tool(program: Program) -> dict[str, Any]:
        """Says whether a Tegula program is right for all sizes. `diagnostics` are records with code, message,
        span, notes and fixes, whose edits (byte offsets) repair the program; `text` is the same for people."""
        return answered(check, program)

    @server.tool(name="explain", title="Explain a diagnostic")
    def explain_tool(code: Annotated[str, Field(description="As E0301, or a name as RankMismatch")]) -> str:
        """Shows a wrong and a right program for the code of a diagnostic."""
        return answered(explain, code)

    @server.tool(name="run", title="Run a program")
    def run_tool(
        program: Program,
        inputs: Annotated[dict[str, Any], Field(description="Tensors as nested lists, by name; others that are "
                                                            "needed are random")] = {},
        sizes: Annotated[dict[str, int], Field(description="Of random tensors: {\"M\": 2, \"N\": 3}")] = {},
        values: Annotated[dict[str, Any], Field(description="Scalars and constants by name")] = {},
        types: Annotated[dict[str, str], Field(description="Of generic types; f32 where none is given")] = {},
        kernel: Annotated[Optional[str], Field(description="Its name; the last one where none is given")] = None,
        seed: int = 0,
        seconds: Annotated[int, Field(ge=1, le=600, description="It is stopped after these")] = 60,
    ) -> dict[str, Any]:
        """Runs a kernel on the CPU and gives `outputs` by name: dtype, shape, values (nested lists; the first of
        large ones as a flat list), and the random inputs likewise. Where it cannot run: `error`, `diagnostics`."""
        return run({"program": program, "inputs": inputs, "sizes": sizes, "values": values, "types": types,
                    "kernel": kernel, "seed": seed}, seconds)

    @server.tool(name="evaluate", title="Evaluate a program on a PyTorch module")
    def evaluate_tool(
        task: Annotated[str, Field(description="Python: class Model(nn.Module), get_inputs(), get_init_inputs()")],
        program: Program,
        target: Literal["cpu", "cuda"] = "cpu",
        seeds: Annotated[int, Field(ge=1, le=16, description="Sets of inputs for each size")] = 2,
        timed: Annotated[bool, Field(description="Time it beside eager mode once it is right")] = False,
    ) -> dict[str, Any]:
        """Judges a program against a PyTorch module at several sizes, with fresh inputs, against float64. Gives
        `right`, `outcome`, `reason`, `message`, `diagnostics`, the first `wrong` elements (index, expected, got),
        the `pattern` in which wrong elements lie, and `speedup` where it was timed."""
        return answered(judge, {"task": task, "program": program, "target": target, "seeds": seeds, "own": False,
                                "timed": timed})

    @server.tool(name="examples", title="Examples near a task")
    def examples_tool(
        task: Annotated[str, Field(description="The PyTorch module, or a description in words")],
        count: Annotated[int, Field(ge=0, le=20)] = 3,
    ) -> str:
        """What to know to write a program for a task: the page that teaches the language, verified examples that
        have most in common with the task, and how parameters stand for a PyTorch module's."""
        return answered(examples, task, count)

    return server


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tegula mcp", description="Serves tools of the Model Context Protocol on standard input and output: "
                                       "check, explain, run, evaluate, examples.")
    parser.parse_args()
    try:
        server = make_server()
    except ImportError as error:
        print(f"tegula mcp: it needs mcp ({error}); {missing.remedy('mcp')}", file=sys.stderr)
        return MISSING
    except FileNotFoundError as error:
        print(f"tegula mcp: {error}", file=sys.stderr)
        return MISSING
    server.run("stdio")
    return 0


if __name__ == "__main__":
    sys.exit(main())
