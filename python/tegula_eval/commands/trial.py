"""tegula-eval trial: the same tasks in several languages, judged by one judge; answers are files, or a model is asked."""
from __future__ import annotations

import hashlib
import json
import signal
from pathlib import Path

from ..model import answers, endpoint
from ..program import library
from ..records import summary, trial_table
from ..records.outcomes import no_record, outcome_record
from ..records.store import Store
from ..rule.tasks import Task, TaskError, find_tasks
from ..trial import languages
from ..workers import pool
from . import display, kernelbench, options as shared, signals, times
from .exit_codes import NOT_RIGHT, RIGHT
from .program_files import find_program


def add_command(commands) -> None:
    trial = commands.add_parser(
        "trial", help="the same tasks in Tegula, Triton and CUDA: right first time, right after one repair, how fast",
        epilog="Exit codes: 0 all right, 1 some are not, 2 wrong arguments, 3 stopped (run it again to go on).")
    trial.set_defaults(function=run)
    trial.add_argument("--root", type=Path, help="folder of tasks")
    trial.add_argument("--level", type=shared.levels, help="such as 1,2,3; default: all")
    shared.add_tasks(trial)
    trial.add_argument("--language", type=shared.names,
                       help=f"of {', '.join(languages.LANGUAGES)} (tegula,triton,cuda; --table: all that the file has)")
    source = trial.add_mutually_exclusive_group(required=True)
    source.add_argument("--answers", type=Path, help="folder of answers: LANGUAGE/TASK.tgl, LANGUAGE/TASK.py")
    source.add_argument("--prompts", type=Path, metavar="FOLDER",
                        help="judge nothing: write what a writer is told to FOLDER/LANGUAGE/TASK.md")
    source.add_argument("--table", type=Path, metavar="FILE",
                        help="judge nothing: print the table of another run's results.jsonl, or of that with .gz")
    trial.add_argument("--repairs", type=Path, help="folder of second answers, for tasks whose first one is not right")
    trial.add_argument("--writer", default="", help="who wrote the answers, for the table (with --model: its name)")
    shared.add_asking(trial, source)
    trial.set_defaults(turns=2)
    trial.add_argument("--target", choices=("cpu", "cuda"), default="cuda")
    shared.add_devices(trial)
    shared.add_judging(trial)
    trial.set_defaults(timed_turns=10)
    trial.add_argument("--seeds", type=int, default=2, help="sets of inputs for each size")
    trial.add_argument("--own", action="store_true", default=None,
                       help="also at the task's own sizes, at which answers are timed (default on cuda)")
    trial.add_argument("--no-time", dest="time", action="store_false", help="judge alone")
    shared.add_run(trial, "tegula-trial")


def run(options) -> int:
    options.language = options.language or languages.LANGUAGES[:None if options.table else 3]
    for language in options.language:
        if language not in languages.LANGUAGES:
            raise TaskError(f"--language: no '{language}'; there are {', '.join(languages.LANGUAGES)}")
    if options.table:
        return _print_table(options)
    if options.root is None:
        raise TaskError("--root: the folder of tasks is missing")
    tasks = find_tasks(options.root, options.level, options.tasks)
    if options.prompts:
        return _write_prompts(options, tasks)
    if options.target == "cpu" and (on_cuda := [one for one in options.language if one in languages.ON_CUDA]):
        raise TaskError(f"answers in {' and '.join(on_cuda)} run on CUDA alone: --target=cuda, on a machine that has it")
    devices = times.devices(options)  # raises where torch sees none
    store = Store(options.out)
    numbers = list(filter(None, (one.partition(":")[2] for one in devices)))
    judges = pool.Pool(options.jobs, options.deadline, options.memory, numbers)
    call, is_stopped = Trial(options, store, judges), False
    try:
        with signals.handled([signal.SIGTERM], signal.default_int_handler):
            call.run(tasks)
    except KeyboardInterrupt:
        is_stopped = True
    finally:
        judges.stop()
        store.close()
    return _tell(options, call, is_stopped)


def _write_prompts(options, tasks: list[Task]) -> int:
    for language in options.language:
        folder = options.prompts / language
        folder.mkdir(parents=True, exist_ok=True)
        for task in tasks:
            text = languages.first_message(language, task.source(), options.examples)
            (folder / f"{task.name}.md").write_text(text, encoding="utf-8")
    print(f"{len(tasks)} prompts for each of {', '.join(options.language)} are in {options.prompts}")
    return RIGHT


def _table(options, records: list[dict]) -> tuple[dict, str]:
    order = {language: place for place, language in enumerate(options.language)}
    records = sorted((one for one in records if one["language"] in order), key=lambda one: order[one["language"]])
    told = trial_table.summarize(records)
    return told, trial_table.as_markdown(records, told, options.model or options.writer)


def _print_table(options) -> int:
    try:
        records = trial_table.read(options.table)
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise TaskError(f"--table: {options.table} is no results.jsonl: {error}") from error
    print(_table(options, records)[1], end="")
    return RIGHT


def _tell(options, call: "Trial", is_stopped: bool) -> int:
    told, page = _table(options, call.records)
    (options.out / "summary.json").write_text(json.dumps(told, indent=1) + "\n")
    (options.out / "table.md").write_text(page)
    print(page, end="")
    if call.missing:
        print(f"no answer: {call.missing}")
    if is_stopped:
        raise KeyboardInterrupt
    return RIGHT if not call.missing and all(one["right"] == one["tasks"] for one in told.values()) else NOT_RIGHT


class Trial:
    """One call of the command. What the store knows already is not done again."""

    def __init__(self, options, store: Store, judges: pool.Pool):
        self.options, self.store, self.judges = options, store, judges
        self.own = options.target == "cuda" if options.own is None else options.own
        self.missing = 0
        self.records: list[dict] = []  # so far
        self.turns = (store.folder / "turns").resolve()
        self.turns.mkdir(exist_ok=True)

    def run(self, tasks: list[Task]) -> None:
        options = self.options
        source = None
        if not options.answers:
            source = kernelbench.source_of(options)
            if "tegula" in options.language:
                library.command_path()  # told before anything is asked
        jobs = []
        for task in tasks:
            for language in options.language:
                if source is None and self._file(options.answers, language, task) is None:
                    self.missing += 1
                else:
                    jobs.append((f"{language}/{task.key}", self._job(task, language, source)))
        if not jobs:
            raise TaskError(f"{options.answers} holds no answer for any of {len(tasks)} tasks: expected LANGUAGE/TASK.tgl or .py")
        with display.make(len(jobs), 0, options.plain) as shown:
            def end(key: str, record: dict) -> None:
                self.records.append(record)
                if self.store.records.get(record["key"]) is not record:
                    self.store.add(record)
                shown.end(record)

            pool.run_all(jobs, options.jobs if source is None else options.requests, shown.begin, end, shown.done)

    @staticmethod
    def _file(folder: Path | None, language: str, task: Task) -> Path | None:
        return folder and find_program(folder / language, task, languages.ending(language))

    def _job(self, task: Task, language: str, source):
        def job(begin, told):
            begin()
            if source is None:
                self._of_files(task, language, told)
            else:
                self._of_model(task, language, source, told)
        return job

    def _of_files(self, task: Task, language: str, told) -> None:
        for turn, folder in enumerate((self.options.answers, self.options.repairs)):
            path = self._file(folder, language, task)
            if path is None:
                return
            text = path.read_text(encoding="utf-8", errors="replace")
            record = self._judged(task, language, text, {"sample": 0, "turn": turn}, str(path))
            told(record)
            back = languages.next_message(language, record, text)
            if back is None:
                return
            self._keep(language, task, turn, back)

    def _keep(self, language: str, task: Task, turn: int, message: str) -> None:
        """What a writer is told of an answer, as a file beside the records."""
        folder = self.store.folder / "messages" / language
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{task.name}.{turn + 1}.md").write_text(message, encoding="utf-8")

    def _of_model(self, task: Task, language: str, source, told) -> None:
        messages = [{"role": "user", "content": languages.first_message(language, task.source(), self.options.examples)}]
        for turn in range(self.options.turns):
            place = {"task": f"{language}/{task.key}", "sample": 0, "turn": turn}
            record = self._answered(task, language, place, messages, source)
            told(record)
            answer = record["asked"].get("answer")
            following = None if answer is None else languages.next_message(language, record, record["text"])
            if following is None:
                return
            messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": following}]

    def _answered(self, task: Task, language: str, place: dict, messages: list[dict], source) -> dict:
        question = json.dumps([task.source(), place, source.settings(), messages, self._settings()], sort_keys=True)
        key = f"{place['task']}:{hashlib.sha256(question.encode()).hexdigest()[:24]}"
        if known := self._known(key):
            return known
        asked = {**place, "message": messages[-1]["content"], **source.settings()}
        text = None
        try:
            answer = source.ask(place, messages)
            asked.update(answer=answer.text, finish=answer.finish, tokens=answer.tokens, seconds=answer.seconds,
                         attempts=answer.attempts)
            text = languages.find_answer(language, answer.text)
            return self._judged(task, language, text, asked, "", key)
        except endpoint.Unanswered as error:
            told = ("unanswered", error.reason, str(error))
        except answers.NoProgram as error:
            told = ("no-program", error.reason, str(error) + (" (it was cut off)" if asked["finish"] == "length" else ""))
        return {"key": key, "task": place["task"], "language": language, "level": task.level, "program": "",
                "target": self.options.target, **no_record(*told), "seconds": 0.0, "text": text, "asked": asked}

    def _judged(self, task: Task, language: str, text: str, asked: dict, path: str, key: str = "") -> dict:
        request = {"do": "trial", "language": language, "task": task.source(), "program": text,
                   "program_name": f"{task.name}{languages.ending(language)}", **self._settings()}
        if not key:
            question = json.dumps([request, asked], sort_keys=True)
            key = f"{language}/{task.key}:{hashlib.sha256(question.encode()).hexdigest()[:24]}"
            if known := self._known(key):
                return known
        outcome = self.judges.judge({**request, "secret": self.store.secret, "turns": str(self.turns),
                                     "cache": str((self.store.folder / "variants").resolve())})
        return {"key": key, "task": f"{language}/{task.key}", "language": language, "level": task.level, "program": path,
                "target": self.options.target, **outcome_record(outcome), "seconds": outcome["seconds"], "text": text,
                "asked": asked, "request": {**request, "secret": self.store.secret}}

    def _known(self, key: str) -> dict | None:
        known = self.store.records.get(key)
        return known if known is not None and known["outcome"] not in self.options.retry else None

    def _settings(self) -> dict:
        options = self.options
        return {"target": options.target, "threads": options.threads, "seeds": options.seeds, "own": self.own,
                "bytes": options.bytes, "flops": int(options.flops),
                "time": {"turns": options.timed_turns} if options.time else None}
