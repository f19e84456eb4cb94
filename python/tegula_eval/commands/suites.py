"""tegula-eval run: programs, solutions or a model's answers on a benchmark of others, and its score beside ours."""
from __future__ import annotations

import hashlib
import json
import signal
from dataclasses import dataclass
from pathlib import Path

from ..records import summary
from ..records.outcomes import no_record
from ..records.store import Store
from ..rule.tasks import TaskError
from ..suites import results, table
from ..suites.registry import SUITES
from ..suites.suite import Forbidden, Part, Suite, SuiteTask, choose
from ..workers import pool
from . import options as shared, signals, times
from .exit_codes import NOT_RIGHT, RIGHT
from .kernelbench import Run

FORM = 2  # of records: what was judged in another one is judged again


def add_command(commands) -> None:
    run_ = commands.add_parser(
        "run", help="programs on another benchmark's tasks, and its score beside ours",
        epilog="Exit codes: 0 all right, 1 some are not, 2 wrong arguments, 3 stopped (run it again to go on).")
    run_.set_defaults(function=run, ray=None, audit=None)
    run_.add_argument("--suite", required=True, choices=sorted(SUITES), help="whose tasks they are")
    run_.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="folder of the benchmark's files")
    shared.add_tasks(run_)
    run_.add_argument("--list", action="store_true", help="say which tasks there are, and end")
    source = run_.add_mutually_exclusive_group()
    source.add_argument("--programs", type=Path, help="folder of programs: TASK.tgl, or GROUP/TASK.tgl")
    source.add_argument("--candidates", type=Path, help="folder of solutions in the benchmark's own form")
    shared.add_asking(run_, source)
    run_.add_argument("--target", choices=("cpu", "cuda"), default="cpu")
    shared.add_devices(run_)
    shared.add_judging(run_)
    run_.add_argument("--seeds", type=int, default=2, help="sets of inputs for each size")
    shared.add_own(run_)
    run_.add_argument("--time", action="store_true", default=None, help="time them (default on cuda)")
    run_.add_argument("--no-time", dest="time", action="store_false")
    run_.add_argument("--torch-compile", action="store_true", help="time torch.compile too")
    run_.add_argument("--solutions", type=Path,
                      help="folder into which right programs go as the benchmark's solutions, with traces")
    shared.add_run(run_, "tegula-suites")


def run(options) -> int:
    suite = SUITES[options.suite]
    tasks = choose(suite.find(options.folders), options.tasks)
    if not tasks:
        raise TaskError(f"{', '.join(map(str, options.folders))}: no task of {suite.name}")
    if options.list:
        for task in tasks:
            print(f"{task.group}/{task.name}: " + (task.problem or f"{len(task.parts)} workloads"))
        return RIGHT
    if not (options.programs or options.candidates or options.model or options.replay):
        raise TaskError("one of --programs, --candidates, --model, --replay or --list is needed")
    if options.solutions and not suite.solution:
        raise TaskError(f"--solutions: {suite.name} takes no solutions as files of its own")
    if options.solutions and options.candidates:
        raise TaskError("--solutions writes programs as solutions; --candidates are solutions already")
    options.own = options.own or options.target == "cuda"
    store = Store(options.out / suite.name)
    numbers = [one.partition(":")[2] for one in times.devices(options)]
    judges = pool.Pool(options.jobs, options.deadline, options.memory, list(filter(None, numbers)))
    call, is_stopped = SuiteRun(options, store, judges, suite), False
    try:
        with signals.handled([signal.SIGTERM], signal.default_int_handler):
            if options.model or options.replay:
                call.conversations([Whole(task) for task in tasks])
            else:
                call.programs(tasks)
    except KeyboardInterrupt:
        is_stopped = True
    finally:
        judges.stop()
        store.close()
    ones = call.results(tasks)
    _tell(options, suite, call, ones, is_stopped)
    if is_stopped:
        raise KeyboardInterrupt
    return RIGHT if ones and all(one.right for one in ones) else NOT_RIGHT


def _tell(options, suite: Suite, call: "SuiteRun", ones: list, is_stopped: bool) -> None:
    """The report, here and in the run's folder, for all suites that were run into it; and solutions."""
    told = table.told(suite, ones, {name: path for name, (path, _) in call.found.items()}, is_stopped)
    if options.model or options.replay:
        told["model"] = summary.summarize(call.records, options.samples, options.price).get("model")
    folder = options.out / suite.name
    (folder / table.FILE).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    (options.out / "suites.md").write_text(table.as_markdown(table.read(options.out)), encoding="utf-8")
    print(table.as_text(told))
    if told.get("model"):
        print("\n".join(summary.model_lines(told["model"])))
    if options.solutions:
        for one in ones:
            if one.task.name in call.found and not one.task.problem:
                print(*suite.solution(one, call.found[one.task.name][1], options.solutions), sep="\n")


@dataclass(frozen=True)
class Whole:
    """A task with all of its parts: what a model is asked for, and what a turn is judged by."""
    task: SuiteTask
    level: int = 0

    @property
    def key(self) -> str:
        return self.task.name

    @property
    def name(self) -> str:
        return self.task.name

    def source(self) -> str:
        """The first part, which is what is shown."""
        if self.task.problem:
            raise TaskError(self.task.problem)
        return self.task.parts[0].source()


class SuiteRun(Run):
    """As of KernelBench's tasks, each part a task of its own."""

    def __init__(self, options, store: Store, judges: pool.Pool, suite: Suite):
        super().__init__(options, store, judges)
        self.suite = suite
        self.found: dict[str, tuple[str, str]] = {}  # of a task its program's file and text

    def programs(self, tasks: list[SuiteTask]) -> list[dict]:
        jobs = []
        folder = self.options.candidates or self.options.programs
        for task in tasks:
            path = self._find(folder, task)
            if path is None or task.problem:
                self.missing += path is None
                continue
            text = path.read_text(encoding="utf-8", errors="replace")
            self.found[task.name] = str(path), text
            for part in task.parts:
                jobs += self._part_jobs(task, part, path, text)
        if not self.found:
            raise TaskError(f"{folder} holds no program for any of {len(tasks)} tasks")
        return self._run(jobs, self.options.jobs, len(self.records))

    def _find(self, folder: Path, task: SuiteTask) -> Path | None:
        for ending in self.suite.endings if self.options.candidates else (".tgl",):
            for file in task.files:
                for place in (folder / task.group / f"{file}{ending}", folder / f"{file}{ending}"):
                    if place.is_file():
                        return place
        return None

    def _part_jobs(self, task: SuiteTask, part: Part, path: Path, text: str) -> list:
        try:
            request = self._request(part, self._program(task, part, text), path.name)
        except TaskError as error:
            if not part.problem:  # the solution, which is in a form that is not judged
                what = ("refused", "forbidden") if isinstance(error, Forbidden) else ("unjudged", "solution")
                record = {"key": f"{part.key}:{what[1]}", "task": part.key, "level": 0, "program": str(path),
                          "target": self.options.target, "seconds": 0.0, **no_record(*what, str(error))}
                return [(part.key, lambda begin, told: told(record))]
            return [(part.key, self._unreadable(part, error))]
        known = self._known(request["key"])
        if known:
            self.records.append(known)
            return []
        return [(part.key, self._program_job(part, path, request))]

    def _program(self, task: SuiteTask, part: Part, text: str) -> str:
        return self.suite.candidate(task, part, text) if self.options.candidates and self.suite.candidate else text

    def _request(self, part: Part, text: str, name: str) -> dict:
        request = super()._request(part, text, name)
        request["rule"] = part.rule
        digest = hashlib.sha256(f"{request['key']}{json.dumps(part.rule, sort_keys=True)}{FORM}".encode()).hexdigest()[:24]
        return {**request, "key": f"{part.key}:{digest}"}

    def _judged(self, whole: Whole, program: str, key: str) -> dict:
        """A turn: the parts in turn, up to the first that is not right; or on, where the suite's own tolerance takes that."""
        done: list[dict] = []
        for part in whole.task.parts:
            try:
                request = self._request(part, program, f"{whole.name}.tgl")
                done.append(self._record(part, request, "", self.judges.judge(request)))
            except TaskError as error:
                done.append({"key": f"{part.key}:unreadable", "task": part.key, "level": 0, "program": "",
                             "target": self.options.target, "seconds": 0.0, **no_record("task", "unreadable", str(error))})
            if done[-1]["outcome"] != summary.GOOD and not results.passes_theirs(done[-1]):
                break
        told = next((one for one in done if one["outcome"] != summary.GOOD), done[-1])
        return {**told, "key": key, "task": whole.key, "parts": done, "seconds": sum(one["seconds"] for one in done)}

    def results(self, tasks: list[SuiteTask]) -> list[results.Result]:
        if self.options.model or self.options.replay:
            return [self._asked(task) for task in tasks]
        by_key = {one["task"]: one for one in self.records}
        return [results.of_task(task, by_key, task.name in self.found) for task in tasks]

    def _asked(self, task: SuiteTask) -> results.Result:
        """Of its first conversation the turn that counts."""
        ones = [one for one in self.records if one["task"] == task.name and one["asked"]["sample"] == 0]
        if task.problem or not ones:
            return results.of_task(task, {}, True)
        [best] = summary.final(ones)
        if best.get("text"):
            self.found[task.name] = "", best["text"]
        if not best.get("parts"):
            return results.Result(task, best["outcome"], best["reason"], (best,))
        return results.of_task(task, {one["task"]: one for one in best["parts"]}, True)
