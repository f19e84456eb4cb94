"""Workers that judge programs side by side, one at a time each."""
from __future__ import annotations

import concurrent.futures
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Callable, Iterable


class Worker:
    """A process of worker.py; started anew where it dies.

    `starter`: calls what starts a process on a thread that lives as long as the worker may. A worker ends with the
    thread that started it (Linux tells it of its parent's end so), which must not be that of one request.
    """

    def __init__(self, environment: dict[str, str] | None = None, starter: Callable = lambda start: start()):
        self.starter = starter
        self.environment = {**os.environ, **(environment or {})}
        package = str(Path(__file__).resolve().parents[1])
        self.environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, [package, self.environment.get("PYTHONPATH")]))
        self.process: subprocess.Popen | None = None
        self._stopping = threading.Lock()

    def start(self) -> None:
        self.process = self.starter(lambda: subprocess.Popen(
            [sys.executable, "-m", "tegula_eval.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=self.environment, text=True))
        if not self.process.stdout.readline():
            self.stop()
            raise RuntimeError("the worker does not start: is torch installed for this Python?")

    def judge(self, request: dict, deadline_s: float, memory_bytes: int | None) -> dict:
        if self.process is None:
            self.start()
        process = self.process  # another thread may stop it at any time
        try:
            process.stdin.write(json.dumps({"request": request, "deadline_s": deadline_s,
                                                 "memory_bytes": memory_bytes}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except (OSError, ValueError):  # it died; or its pipes are closed
            line = ""
        if not line:
            self.stop()
            return {"kind": "crashed", "stage": "worker", "message": "the worker died", "seconds": 0.0}
        return json.loads(line)

    def stop(self) -> None:
        with self._stopping:
            process, self.process = self.process, None
        if process is None:
            return  # or another thread sees to it
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            try:
                pipe.close()
            except OSError:  # what was to be written to it is lost
                pass


class Pool:
    """Workers that any thread may hand a request to. `devices`: numbers of CUDA devices, of which each worker sees
    one, in turn."""

    def __init__(self, workers: int, deadline_s: float, memory_bytes: int | None, devices: list[str] = ()):
        self.deadline_s, self.memory_bytes = deadline_s, memory_bytes
        self._starter = concurrent.futures.ThreadPoolExecutor(1, "starter")
        self._all = [Worker({"CUDA_VISIBLE_DEVICES": devices[number % len(devices)]} if devices else None,
                            lambda start: self._starter.submit(start).result())
                     for number in range(max(1, workers))]
        self._idle: queue.LifoQueue = queue.LifoQueue()  # the warm ones first
        for worker in self._all:
            self._idle.put(worker)

    def judge(self, request: dict, begin: Callable[[], None] = lambda: None) -> dict:
        """Waits for a worker, then for its outcome; `begin` is called in between."""
        worker = self._idle.get()
        try:
            begin()
            return worker.judge(request, self.deadline_s, self.memory_bytes)
        finally:
            self._idle.put(worker)

    def stop(self) -> None:
        for worker in self._all:
            worker.stop()
        self._starter.shutdown()


def run_all(jobs: Iterable[tuple[str, Callable]], threads: int, begin: Callable[[str], None],
            end: Callable[[str, object], None], done: Callable[[str], None]) -> None:
    """Runs each job, `job(begin, told)`, on one of the threads. It calls `begin()` once it has what it waits for,
    and `told(value)` for each result; these become `begin(key)` and `end(key, value)`, and then `done(key)`, on
    the caller's thread alone. An exception of a job or of one of these is raised here, and no further job is
    begun."""
    waiting: queue.SimpleQueue = queue.SimpleQueue()
    count = 0
    for job in jobs:
        waiting.put(job)
        count += 1
    told: queue.SimpleQueue = queue.SimpleQueue()
    stopped = threading.Event()

    def work() -> None:
        while not stopped.is_set():
            try:
                key, job = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                job(lambda: told.put(("begin", key, None)), lambda value: told.put(("end", key, value)))
            except Exception as error:  # handed to the caller's thread, which raises it
                told.put(("error", key, error))
                return
            told.put(("done", key, None))

    for _ in range(max(1, min(threads, count))):
        threading.Thread(target=work, daemon=True).start()
    try:
        while count:
            what, key, value = told.get()
            if what == "error":
                raise value
            if what == "begin":
                begin(key)
            elif what == "end":
                end(key, value)
            else:
                done(key)
                count -= 1
    finally:
        stopped.set()
