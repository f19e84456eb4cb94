"""tegula-eval kernelbench: programs, candidates or a model's answers on KernelBench's tasks."""
from __future__ import annotations

import hashlib
import json
import os
import signal
from pathlib import Path

from ..model import answers, conversation, endpoint
from ..program import library
from ..records import audits, summary
from ..records.outcomes import no_record, outcome_record
from ..records.store import Store
from ..rule.tasks import Task, TaskError, find_tasks
from ..workers import cluster, pool
from . import display, signals, times
from .exit_codes import NOT_RIGHT, RIGHT
from .program_files import find_program


def run(options) -> int:
    tasks = find_tasks(options.root, options.level, options.tasks, options.dtype)
    store = Store(options.out)
    if options.ray:
        judges = cluster.Cluster(options.ray, options.jobs, options.threads, options.target, options.deadline,
                                 options.memory)
    else:
        numbers = [one.partition(":")[2] for one in times.devices(options)]
        judges = pool.Pool(options.jobs, options.deadline, options.memory, list(filter(None, numbers)))
    call, is_stopped = Run(options, store, judges), False
    try:
        with signals.handled([signal.SIGTERM], signal.default_int_handler):
            records = call.conversations(tasks) if options.model or options.replay else call.programs(tasks)
    except KeyboardInterrupt:
        records, is_stopped = call.records, True
    finally:
        judges.stop()
        store.close()
    records = audits.add_flags(records, audits.read_flags(options.audit))
    told = summary.summarize(records, options.samples if options.model or options.replay else None, options.price)
    told["without_program"] = call.missing
    (options.out / "summary.json").write_text(json.dumps(told, indent=1) + "\n")
    print(summary.as_text(told))
    if call.missing:
        print(f"no program: {call.missing} tasks")
    if is_stopped:
        raise KeyboardInterrupt
    return RIGHT if all(one["outcome"] == summary.GOOD for one in summary.final(records)) else NOT_RIGHT


def source_of(options):
    """Who answers: asked once before the run, so that a wrong address, key or name is told at once."""
    if options.replay:
        return endpoint.Replay(options.replay)
    source = endpoint.Endpoint(
        options.model, options.base_url, os.environ.get("OPENAI_API_KEY"), timeout_s=options.timeout,
        retries=options.retries, budget=endpoint.Budget(options.budget), seed=options.seed,
        temperature=options.temperature, max_tokens=options.max_tokens,
        max_completion_tokens=options.max_completion_tokens, reasoning_effort=options.reasoning_effort,
        extra_body=options.extra_body)
    if options.probe:
        source.probe()
    return source


class Run:
    """One call of the command. What the store knows already is not done again."""

    def __init__(self, options, store: Store, judges: pool.Pool):
        self.options, self.store, self.judges = options, store, judges
        self.timed = options.target == "cuda" if options.time is None else options.time
        self.missing = 0
        self.records: list[dict] = []  # so far

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
        self.records += kept
        return self._run(jobs, self.options.jobs, len(kept))

    def audits(self, tasks: list[Task]) -> list[dict]:
        """Of the tasks alone: requests without a program."""
        requests = [(task, {**self._request(task, "", ""), "do": "audit"}) for task in tasks]
        kept = [known for _, request in requests if (known := self._known(request["key"]))]
        jobs = [(task.key, self._program_job(task, "", request)) for task, request in requests
                if not self._known(request["key"])]
        self.records += kept
        return self._run(jobs, self.options.jobs, len(kept))

    def _program_job(self, task: Task, path: Path | str, request: dict):
        def job(begin, told):
            outcome = self.judges.judge(request, begin)
            told(self._record(task, request, str(path), outcome))
        return job

    def _unreadable(self, task: Task, error: TaskError, more: dict = {}):
        def job(begin, told):
            begin()
            told({**more, "key": f"{task.key}:unreadable", "task": task.key, "level": task.level, "program": "",
                  "target": self.options.target, **no_record("task", "unreadable", str(error)), "seconds": 0.0})
        return job

    def conversations(self, tasks: list[Task]) -> list[dict]:
        options = self.options
        source = source_of(self.options)
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
            return {**self._judged(task, program, key), "text": program, "asked": asked}
        except endpoint.Unanswered as error:
            told = ("unanswered", error.reason, str(error))
        except answers.NoProgram as error:
            cut = " (it was cut off)" if asked["finish"] == "length" else ""
            told = ("no-program", error.reason, str(error) + cut)
        return {"key": key, "task": task.key, "level": task.level, "program": "", "target": self.options.target,
                **no_record(*told), "seconds": seconds, "text": program, "asked": asked}

    def _judged(self, task: Task, program: str, key: str) -> dict:
        request = self._request(task, program, f"{task.name}.tgl")
        return self._record(task, {**request, "key": key}, "", self.judges.judge(request))

    def _known(self, key: str) -> dict | None:
        known = self.store.records.get(key)
        return known if known is not None and known["outcome"] not in self.options.retry else None

    def _run(self, jobs: list, threads: int, kept: int) -> list[dict]:
        records = self.records
        with display.make(len(jobs) + kept, kept, self.options.plain) as shown:
            def end(key: str, record: dict) -> None:
                records.append(record)  # first: a signal may come in between
                if self.store.records.get(record["key"]) is not record:
                    self.store.add(record)
                shown.end(record)

            pool.run_all(jobs, threads, shown.begin, end, shown.done)
        return records

    def _settings(self) -> dict:
        options = self.options
        return {"target": options.target, "threads": options.threads, "seeds": options.seeds, "own": options.own,
                "bytes": options.bytes, "flops": int(options.flops),
                "time": {"turns": options.timed_turns, "compile": options.torch_compile} if self.timed else None,
                **({"certify": True} if getattr(options, "certify", False) else {})}

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
