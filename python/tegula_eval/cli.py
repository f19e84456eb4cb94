"""The command tegula-eval."""
from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path

from . import (answers, audit, cluster, conversation, display, endpoint, exported, launches, library, missing,
               options as shared, pool, report, summary, times)
from .store import Store, StoreError
from .tasks import DTYPES, Task, TaskError, find_tasks

RIGHT, NOT_RIGHT, WRONG_CALL, STOPPED = 0, 1, 2, 3


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    try:
        missing.check(*_needed(options))
        return options.function(options)
    except missing.Missing as error:
        print(f"tegula-eval: {error}", file=sys.stderr)
        return STOPPED
    except (TaskError, StoreError, RuntimeError) as error:
        print(f"tegula-eval: {error}", file=sys.stderr)
        return STOPPED if isinstance(error, StoreError) else WRONG_CALL
    except OSError as error:  # a file that is not there, or one that cannot be written
        print(f"tegula-eval: {error}", file=sys.stderr)
        return WRONG_CALL if isinstance(error, (FileNotFoundError, NotADirectoryError, PermissionError)) else STOPPED
    except KeyboardInterrupt:
        print("\ntegula-eval: stopped; the same command goes on from here", file=sys.stderr)
        return STOPPED


def _needed(options) -> list[str]:
    """Packages that the command imports, here or in a process of its own."""
    if options.function is _report:
        return []
    needed = ["torch"]
    if options.function is _serve:
        needed += ["fastapi", "uvicorn"]
    if getattr(options, "model", None):
        needed.append("openai")
    if getattr(options, "ray", None):
        needed.append("ray")
    return needed if getattr(options, "plain", True) else [*needed, "rich"]


def _parse(arguments) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tegula-eval", description="Judges Tegula programs on PyTorch modules.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    bench = commands.add_parser(
        "kernelbench", help="programs on KernelBench's tasks, or a folder of tasks in its form",
        epilog="Exit codes: 0 all right, 1 some are not, 2 wrong arguments, 3 stopped (run it again to go on).")
    bench.set_defaults(function=kernelbench)
    shared.add_root(bench)
    source = bench.add_mutually_exclusive_group(required=True)
    shared.add_programs(source)
    source.add_argument("--candidates", type=Path, help="folder of Python files with ModelNew (PyTorch, Triton, CUDA)")
    source.add_argument("--model", help="name of the model to ask for programs")
    source.add_argument("--replay", type=Path, help="recorded answers, such as another run's results.jsonl")
    asking = bench.add_argument_group("asking a model")
    asking.add_argument("--base-url", help="of an endpoint that speaks OpenAI's protocol; its key in OPENAI_API_KEY")
    asking.add_argument("--samples", type=shared.count, default=1, help="conversations for each task")
    asking.add_argument("--turns", type=shared.count, default=1, help="at most so many programs in each")
    asking.add_argument("--examples", type=int, default=3, help="examples beside the page")
    asking.add_argument("--temperature", type=float, help="default: the endpoint's")
    asking.add_argument("--max-tokens", type=shared.count, help="of an answer")
    asking.add_argument("--seed", type=int, help="of the first sample; the next ones count up")
    asking.add_argument("--requests", type=shared.count, default=16, help="conversations at once")
    asking.add_argument("--timeout", type=float, default=600, help="seconds for an answer")
    asking.add_argument("--retries", type=int, default=5, help="of a request that failed and may pass")
    asking.add_argument("--price", type=shared.price, metavar="IN,OUT",
                        help="of a million tokens of prompts and of answers: the summary tells the cost")
    asking.add_argument("--budget", type=shared.count, help="tokens, prompts included, after which nothing more is asked")
    bench.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    shared.add_devices(bench)
    bench.add_argument("--dtype", choices=tuple(DTYPES), default="f32",
                       help="of inputs, parameters and buffers that are floating point (f32: as the task has them)")
    shared.add_judging(bench)
    bench.add_argument("--seeds", type=int, default=2, help="sets of inputs for each size")
    shared.add_own(bench)
    bench.add_argument("--time", action="store_true", default=None, help="time them (default on cuda)")
    bench.add_argument("--no-time", dest="time", action="store_false")
    bench.add_argument("--torch-compile", action="store_true", help="time torch.compile too")
    shared.add_run(bench, "tegula-eval")
    bench.add_argument("--ray", metavar="ADDRESS", help="judge on the machines of a Ray cluster (auto: this machine's)")
    shared.add_audit(bench)
    written = commands.add_parser("export", help="write programs as ModelNew files for KernelBench's own scripts",
                                  epilog="Exit codes: 0 all are written, 1 some are not, 2 wrong arguments.")
    written.set_defaults(function=_export)
    shared.add_root(written)
    source = written.add_mutually_exclusive_group(required=True)
    shared.add_programs(source)
    source.add_argument("--run", type=Path, help="folder of a run: what was right there")
    written.add_argument("--out", type=Path, required=True, help="folder of the files, such as KernelBench/runs/NAME")
    shared.add_judging(written)
    times.add_command(commands)
    launches.add_command(commands)
    audited = commands.add_parser("audit", help="tasks on which an answer without the work passes",
                                  epilog="Exit codes: 0 all tasks ran, 1 some did not, 2 wrong arguments, 3 stopped.")
    audited.set_defaults(function=_audit, target="cpu", candidates=None, seeds=1, time=False, torch_compile=False)
    shared.add_root(audited)
    shared.add_run(audited, "tegula-audit")
    shared.add_judging(audited)
    shared.add_own(audited)
    shown = commands.add_parser("report", help="a run as one HTML file, beside another run",
                                epilog="Exit codes: 0 the page is written, 2 wrong arguments.")
    shown.set_defaults(function=_report)
    shown.add_argument("run", type=Path, help="folder of a run of kernelbench or time")
    shown.add_argument("--against", type=Path, help="folder of a run to compare with")
    shown.add_argument("--out", type=Path, help="where to write (RUN/report.html)")
    again = commands.add_parser("replay", help="do what a record holds again, and say what differs",
                                epilog="Exit codes: 0 verdict, code and results are the same, 1 something differs, "
                                       "2 wrong arguments.")
    again.set_defaults(function=_replay)
    again.add_argument("record", type=Path, help="results.jsonl of a run of kernelbench or time, or one record (.json)")
    shared.add_tasks(again)
    shared.add_limits(again)
    again.add_argument("--out", type=Path, help="file that the new records are added to")
    serve = commands.add_parser("serve", help="judge over HTTP", epilog="The token is TEGULA_EVAL_TOKEN, or printed.")
    serve.set_defaults(function=_serve)
    serve.add_argument("--host", default="127.0.0.1", help="address to listen at (127.0.0.1: this machine alone)")
    serve.add_argument("--port", type=int, default=8080)
    serve.add_argument("--queue", type=shared.count, default=10000, help="submissions that may wait")
    serve.add_argument("--rate", type=shared.count, default=6000, help="submissions a minute of one client")
    serve.add_argument("--out", type=Path, default=Path("tegula-eval-serve"), help="folder of the queue")
    shared.add_judging(serve)
    return parser.parse_args(arguments)


def _serve(options) -> int:
    from . import serve  # which needs fastapi and uvicorn
    return serve.run(options)


def _export(options) -> int:
    return exported.write_all(options)


def _replay(options) -> int:
    from . import replay
    return replay.run(options)


def _report(options) -> int:
    return report.run(options)


def _audit(options) -> int:
    return audit.run(options)


def find_program(folder: Path, task: Task, ending: str = ".tgl") -> Path | None:
    for place in (folder / f"level{task.level}" / f"{task.name}{ending}", folder / f"{task.name}{ending}",
                  *([folder / exported.file_name(task)] if ending == ".py" else [])):
        if place.is_file():
            return place
    return None


def kernelbench(options) -> int:
    tasks = find_tasks(options.root, options.level, options.tasks, options.dtype)
    store = Store(options.out)
    if options.ray:
        judges = cluster.Cluster(options.ray, options.jobs, options.threads, options.target, options.deadline,
                                 options.memory)
    else:
        numbers = [one.partition(":")[2] for one in times.devices(options)]
        judges = pool.Pool(options.jobs, options.deadline, options.memory, list(filter(None, numbers)))
    try:
        run = Run(options, store, judges)
        records = run.conversations(tasks) if options.model or options.replay else run.programs(tasks)
    finally:
        judges.stop()
        store.close()
    records = audit.add_flags(records, audit.read_flags(options.audit))
    told = summary.summarize(records, options.samples if options.model or options.replay else None, options.price)
    told["without_program"] = run.missing
    (options.out / "summary.json").write_text(json.dumps(told, indent=1) + "\n")
    print(summary.as_text(told))
    if run.missing:
        print(f"no program: {run.missing} tasks")
    return RIGHT if all(one["outcome"] == summary.GOOD for one in summary.final(records)) else NOT_RIGHT


class Run:
    """One call of the command. What the store knows already is not done again."""

    def __init__(self, options, store: Store, judges: pool.Pool):
        self.options, self.store, self.judges = options, store, judges
        self.timed = options.target == "cuda" if options.time is None else options.time
        self.missing = 0

    def programs(self, tasks: list[Task]) -> list[dict]:
        jobs, kept = [], []
        folder = self.options.candidates or self.options.programs
        for task in tasks:
            path = find_program(folder, task, ".py" if self.options.candidates else ".tgl")
            if path is None:
                self.missing += 1
                continue
            try:
                request = self._request(task, path.read_text(encoding="utf-8", errors="replace"), path.name)
            except TaskError as error:
                jobs.append((task.key, self._unreadable(task, error)))
                continue
            known = self._known(request["key"])
            if known:
                kept.append(known)
            else:
                jobs.append((task.key, self._program_job(task, path, request)))
        if not jobs and not kept:
            raise TaskError(f"{folder} holds no program for any of {len(tasks)} tasks")
        return kept + self._run(jobs, self.options.jobs, len(kept))

    def audits(self, tasks: list[Task]) -> list[dict]:
        """Of the tasks alone: requests without a program."""
        requests = [(task, {**self._request(task, "", ""), "do": "audit"}) for task in tasks]
        kept = [known for _, request in requests if (known := self._known(request["key"]))]
        jobs = [(task.key, self._program_job(task, "", request)) for task, request in requests
                if not self._known(request["key"])]
        return kept + self._run(jobs, self.options.jobs, len(kept))

    def _program_job(self, task: Task, path: Path | str, request: dict):
        def job(begin, told):
            outcome = self.judges.judge(request, begin)
            told(self._record(task, request, str(path), outcome))
        return job

    def _unreadable(self, task: Task, error: TaskError, more: dict = {}):
        def job(begin, told):
            begin()
            told({**more, "key": f"{task.key}:unreadable", "task": task.key, "level": task.level, "program": "",
                  "target": self.options.target, **_nothing("task", "unreadable", str(error)), "seconds": 0.0})
        return job

    def conversations(self, tasks: list[Task]) -> list[dict]:
        options = self.options
        source = endpoint.Replay(options.replay) if options.replay else endpoint.Endpoint(
            options.model, options.base_url, os.environ.get("OPENAI_API_KEY"), timeout_s=options.timeout,
            retries=options.retries, budget=endpoint.Budget(options.budget), temperature=options.temperature,
            max_tokens=options.max_tokens, seed=options.seed)
        library.command_path()  # told before anything is asked
        jobs = [(f"{task.key}#{sample}" if options.samples > 1 else task.key,
                 self._conversation_job(task, sample, source))
                for task in tasks for sample in range(options.samples)]
        return self._run(jobs, options.requests, 0)

    def _conversation_job(self, task: Task, sample: int, source):
        def job(begin, told):
            try:
                task.source()
            except TaskError as error:
                place = {"task": task.key, "sample": sample, "turn": 0}
                self._unreadable(task, error, {"asked": place})(begin, told)
                return
            begin()
            messages = [{"role": "user", "content": conversation.first_message(task.source(),
                                                                               self.options.examples)}]
            for turn in range(self.options.turns):
                place = {"task": task.key, "sample": sample, "turn": turn}
                record = self._turn(task, place, messages, source)
                told(record)
                program, answer = record["text"], record["asked"].get("answer")
                following = None if answer is None else conversation.next_message(record, program)
                if following is None:
                    return
                messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": following}]
        return job

    def _turn(self, task: Task, place: dict, messages: list[dict], source) -> dict:
        """One answer and what it is worth. The record holds all that was said in this turn."""
        question = json.dumps([task.source(), place, source.settings(), messages, self._settings()], sort_keys=True)
        key = f"{task.key}:{hashlib.sha256(question.encode()).hexdigest()[:24]}"
        known = self._known(key)
        if known:
            return known
        asked = {**place, "message": messages[-1]["content"], **source.settings()}
        program, seconds = None, 0.0
        try:
            answer = source.ask(place, messages)
            asked.update(answer=answer.text, finish=answer.finish, tokens=answer.tokens, seconds=answer.seconds,
                         attempts=answer.attempts)
            program = answers.find_program(answer.text)
            request = self._request(task, program, f"{task.name}.tgl")
            outcome = self.judges.judge(request)
            return {**self._record(task, {**request, "key": key}, "", outcome), "text": program, "asked": asked}
        except endpoint.Unanswered as error:
            told = ("unanswered", error.reason, str(error))
        except answers.NoProgram as error:
            cut = " (it was cut off)" if asked["finish"] == "length" else ""
            told = ("no-program", error.reason, str(error) + cut)
        return {"key": key, "task": task.key, "level": task.level, "program": "", "target": self.options.target,
                **_nothing(*told), "seconds": seconds, "text": program, "asked": asked}

    def _known(self, key: str) -> dict | None:
        known = self.store.records.get(key)
        return known if known is not None and known["outcome"] not in self.options.retry else None

    def _run(self, jobs: list, threads: int, kept: int) -> list[dict]:
        records: list[dict] = []
        with display.make(len(jobs) + kept, kept, self.options.plain) as shown:
            def end(key: str, record: dict) -> None:
                if self.store.records.get(record["key"]) is not record:
                    self.store.add(record)
                records.append(record)
                shown.end(record)

            pool.run_all(jobs, threads, shown.begin, end, shown.done)
        return records

    def _settings(self) -> dict:
        options = self.options
        return {"target": options.target, "threads": options.threads, "seeds": options.seeds, "own": options.own,
                "bytes": options.bytes, "flops": int(options.flops),
                "time": {"turns": options.timed_turns, "compile": options.torch_compile} if self.timed else None}

    def _request(self, task: Task, text: str, name: str) -> dict:
        request = {"task": task.source(), "program": text, "program_name": name, **self._settings()}
        if self.options.candidates:
            request["do"] = "candidate"
        # The same question has the same key: a changed program, task or setting is judged anew.
        key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:24]
        return {**request, "key": f"{task.key}:{key}", "secret": self.store.secret,
                "cache": str((self.store.folder / "variants").resolve())}

    def _record(self, task: Task, request: dict, program: str, outcome: dict) -> dict:
        """With all that it takes to do it again, but for the folder of this run."""
        asked = {name: value for name, value in request.items() if name not in ("key", "cache")}
        return {"key": request["key"], "task": task.key, "level": task.level, "program": program,
                "target": self.options.target, **outcome_record(outcome), "seconds": outcome["seconds"],
                "request": asked, **({"machine": outcome["machine"]} if "machine" in outcome else {})}


def _nothing(outcome: str, reason: str, message: str) -> dict:
    return {"outcome": outcome, "reason": reason, "message": message, "flags": [], "cases": [], "timing": None}


def outcome_record(outcome: dict) -> dict:
    if outcome["kind"] == "done":
        return outcome["answer"]
    return {**_nothing(outcome["kind"], outcome["stage"], outcome["message"]),
            **({"trace": outcome["trace"]} if "trace" in outcome else {})}


if __name__ == "__main__":
    sys.exit(main())
