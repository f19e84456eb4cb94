"""Workers that judge programs side by side, one at a time each."""
from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Callable, Iterable


class Worker:
    """A process of worker.py; started anew where it dies."""

    def __init__(self, environment: dict[str, str] | None = None):
        self.environment = {**os.environ, **(environment or {})}
        package = str(Path(__file__).resolve().parents[1])
        self.environment["PYTHONPATH"] = os.pathsep.join(
            filter(None, [package, self.environment.get("PYTHONPATH")]))
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", "tegula_eval.worker"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=self.environment, text=True)
        if not self.process.stdout.readline():
            self.stop()
            raise RuntimeError("the worker does not start: is torch installed for this Python?")

    def judge(self, request: dict, deadline_s: float, memory_bytes: int | None) -> dict:
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps({"request": request, "deadline_s": deadline_s,
                                                 "memory_bytes": memory_bytes}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            self.stop()
            return {"kind": "crashed", "stage": "worker", "message": "the worker died", "seconds": 0.0}
        return json.loads(line)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


def run_all(jobs: Iterable[tuple[str, dict]], workers: int, deadline_s: float, memory_bytes: int | None,
            begin: Callable[[str], None], end: Callable[[str, dict], None]) -> None:
    """Calls `end(key, outcome)` for each job as it is done, on the caller's thread alone. An exception of `begin` or
    `end` stops the workers and is raised."""
    waiting: queue.SimpleQueue = queue.SimpleQueue()
    count = 0
    for job in jobs:
        waiting.put(job)
        count += 1
    told: queue.SimpleQueue = queue.SimpleQueue()
    pool = [Worker() for _ in range(max(1, min(workers, count)))]

    def work(worker: Worker) -> None:
        while True:
            try:
                key, request = waiting.get_nowait()
            except queue.Empty:
                return
            told.put(("begin", key, None))
            try:
                told.put(("end", key, worker.judge(request, deadline_s, memory_bytes)))
            except Exception as error:  # handed to the caller's thread, which raises it
                told.put(("error", key, error))
                return

    threads = [threading.Thread(target=work, args=(worker,), daemon=True) for worker in pool]
    for thread in threads:
        thread.start()
    try:
        left = count
        while left:
            what, key, value = told.get()
            if what == "error":
                raise value
            if what == "begin":
                begin(key)
            else:
                end(key, value)
                left -= 1
    finally:
        for worker in pool:
            worker.stop()
