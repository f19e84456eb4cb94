"""Workers that judge programs side by side, one at a time each."""
from __future__ import annotations

import concurrent.futures
import json
import queue
import socket
import subprocess
import sys
import threading
from typing import Callable, Iterable

from ..confine import processes
from ..confine.environment import for_process

GRACE_S = 60  # beyond the deadline, which a worker itself keeps: it is stopped then
TRIES = 3     # workers that may die over one request


class NoWorker(RuntimeError):
    """There is no process to judge: it does not start, or cannot be started now."""


class Job:
    """One request, which another thread may call off; `told(stage)` is called as its process says where it is."""

    def __init__(self, told: Callable[[str], None] = lambda stage: None):
        self.told = told
        self.is_called_off = False
        self._worker: Worker | None = None
        self._lock = threading.Lock()

    def call_off(self) -> None:
        """Its worker ends with it, if it has one: what it is doing cannot be taken back."""
        with self._lock:
            self.is_called_off = True
            if self._worker:
                self._worker.stop()

    def given_to(self, worker: Worker | None) -> None:
        with self._lock:
            self._worker = worker


class Worker:
    """A process of worker.py; started anew where it dies.

    `starter`: calls what starts a process on a thread that lives as long as the worker may. A worker ends with the
    thread that started it (Linux tells it of its parent's end so), which must not be that of one request.
    """

    def __init__(self, environment: dict[str, str] | None = None, starter: Callable = lambda start: start()):
        self.starter = starter
        self.environment = for_process(**(environment or {}))
        self.process: subprocess.Popen | None = None
        self.starts = 0
        self._channel: socket.socket | None = None  # unlike a pipe, it cannot be opened through /proc
        self._requests = 0
        self._starting, self._stopping = threading.Lock(), threading.Lock()

    def command(self, descriptor: int) -> list[str]:
        return [sys.executable, "-m", "tegula_eval.workers.worker", str(descriptor)]

    def start(self) -> None:
        """Raises NoWorker."""
        with self._starting:
            if self.process is not None:
                return
            try:
                self._channel, theirs = socket.socketpair()
                with theirs:
                    self._lines = self._channel.makefile("r", encoding="utf-8")
                    self.process = self.starter(lambda: subprocess.Popen(
                        self.command(theirs.fileno()), stdin=subprocess.DEVNULL, stdout=2, env=self.environment,
                        pass_fds=(theirs.fileno(),)))
            except OSError as error:  # no process, descriptor or memory is left
                raise NoWorker(f"a worker cannot be started: {error}") from error
            self.starts += 1
            if not self._line(None):
                self.stop()
                raise NoWorker("the worker does not start: is torch installed for this Python?")

    def _line(self, seconds: float | None) -> str:
        """Empty where the worker has died, or says nothing for so long."""
        try:
            self._channel.settimeout(seconds)
            return self._lines.readline()
        except (OSError, ValueError):  # ValueError: another thread has closed it
            return ""

    def judge(self, request: dict, deadline_s: float, memory_bytes: int | None,
              told: Callable[[str], None] = lambda stage: None) -> dict:
        if self.process is None:
            self.start()
        self._requests += 1
        number, channel = self._requests, self._channel
        message = {"id": number, "request": request, "deadline_s": deadline_s, "memory_bytes": memory_bytes}
        try:
            channel.settimeout(GRACE_S)
            channel.sendall(json.dumps(message).encode() + b"\n")
        except OSError:  # it died, or another thread has closed the channel
            pass
        while line := self._line(deadline_s + GRACE_S):
            answer = json.loads(line)
            if answer.pop("id") == number:
                if "kind" in answer:
                    return answer
                told(answer["stage"])
        self.stop()
        return {"kind": "crashed", "stage": "worker", "message": "the worker died", "seconds": 0.0}

    def stop(self) -> None:
        with self._stopping:
            process, self.process = self.process, None
        if process is None:
            return  # or another thread sees to it
        process.kill()
        process.wait()
        try:
            self._channel.shutdown(socket.SHUT_RDWR)  # whoever waits for an answer hears of it
        except OSError:
            pass
        self._channel.close()


class Pool:
    """Workers that any thread may hand a request to. `devices`: numbers of CUDA devices, of which each worker sees
    one, in turn. This process becomes the parent of what a worker leaves that is killed, and ends it
    (processes.end_adopted)."""

    def __init__(self, workers: int, deadline_s: float, memory_bytes: int | None, devices: list[str] = ()):
        processes.adopt_orphans()
        self.deadline_s, self.memory_bytes = deadline_s, memory_bytes
        self._starter = concurrent.futures.ThreadPoolExecutor(1, "starter")
        self._all = [Worker({"CUDA_VISIBLE_DEVICES": devices[number % len(devices)]} if devices else None,
                            lambda start: self._starter.submit(start).result())
                     for number in range(max(1, workers))]
        self._idle: queue.LifoQueue = queue.LifoQueue()  # the warm ones first
        self._stopped = False
        for worker in self._all:
            self._idle.put(worker)

    def start(self) -> None:
        """All workers at once. Else each starts with its first request. Raises NoWorker."""
        with concurrent.futures.ThreadPoolExecutor(len(self._all)) as threads:
            list(threads.map(Worker.start, self._all))

    def judge(self, request: dict, begin: Callable[[], None] = lambda: None, job: Job | None = None) -> dict:
        """Waits for a worker, then for its outcome; `begin` is called in between. Where a worker dies over it, which says
        nothing of the request, another one is asked."""
        job = job or Job()
        worker = self._idle.get()
        try:
            begin()
            job.given_to(worker)
            outcome = {"kind": "crashed", "stage": "worker", "message": "it was called off", "seconds": 0.0}
            for _ in range(TRIES):
                if job.is_called_off or self._stopped:
                    break
                outcome = worker.judge(request, self.deadline_s, self.memory_bytes, job.told)
                if (outcome["kind"], outcome["stage"]) != ("crashed", "worker"):
                    break
                processes.end_adopted()  # what its task had started
            return outcome
        finally:
            job.given_to(None)
            self._idle.put(worker)

    def restarts(self) -> int:
        return sum(max(0, worker.starts - 1) for worker in self._all)

    def stop(self) -> None:
        self._stopped = True
        for worker in self._all:
            worker.stop()
        processes.end_adopted()
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
