"""Runs jobs in processes of device_worker.py, one for each device, and begins another where one dies.

A stage that takes longer than the deadline ends the process. What a float64 reference or torch.compile could not do
in time is left out, and the job taken again without it; any other stage is the job's outcome.
"""
from __future__ import annotations

import json
import os
import queue
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from typing import Callable

from ..confine.environment import for_process

START_S = 300  # until a process has its libraries and a context: on a busy machine some minutes


class DeviceRun:
    """`told(job, record)` is called for each job that ended, on the caller's thread."""

    def __init__(self, devices: list[str], options: dict, deadline_s: float, seconds: float,
                 told: Callable[[dict, dict], None]):
        self.devices, self.options, self.deadline_s = devices, options, deadline_s
        self.end = time.monotonic() + seconds
        self.told, self.versions = told, {}
        self.messages: queue.SimpleQueue = queue.SimpleQueue()
        self.is_stopped = False

    def run(self, jobs: list[dict]) -> None:
        """Raises what `told` raises, RuntimeError where a process does not start, and KeyboardInterrupt once `stop` was called."""
        shares = [jobs[place::len(self.devices)] for place in range(len(self.devices))]
        running = 0
        for device, share in zip(self.devices, shares):
            if share:
                running += 1
                threading.Thread(target=self._share, args=(device, share), daemon=True).start()
        try:
            while running:
                job, record = self.messages.get()
                if job is not None:
                    self.told(job, record)
                elif record is None:
                    running -= 1
                else:
                    raise record
        finally:
            self.is_stopped = True

    def stop(self) -> None:
        """Ends `run`, what has ended being told before. A handler of signals may call it."""
        self.is_stopped = True
        self.messages.put((None, KeyboardInterrupt()))

    def _share(self, device: str, jobs: list[dict]) -> None:
        try:
            left, ahead = list(jobs), max(1, (os.cpu_count() or 2) // len(self.devices))
            idle = 0  # processes one after the other that ended without a result
            while left and time.monotonic() < self.end and not self.is_stopped:
                before = json.dumps(left)
                left, now_ahead = Process(self, device, left, ahead).run()
                idle = idle + 1 if json.dumps(left) == before and now_ahead == ahead else 0
                ahead = now_ahead
                if idle == 3:
                    raise RuntimeError("the process of the device ends again and again before any program")
            self.messages.put((None, None))
        except Exception as error:  # raised on the caller's thread
            self.messages.put((None, error))

    def tell(self, job: dict, record: dict) -> None:
        self.messages.put((job, {**record, "versions": self.versions}))


class Process:
    def __init__(self, owner: DeviceRun, device: str, jobs: list[dict], ahead: int):
        self.owner, self.jobs, self.ahead = owner, {job["key"]: job for job in jobs}, ahead
        self.stage, self.key = "start", None
        self.compiling: set[str] = set()
        kind, _, number = device.partition(":")
        environment = for_process(**({"CUDA_VISIBLE_DEVICES": number} if number else {}))
        self.output = tempfile.TemporaryFile()
        self.process = subprocess.Popen([sys.executable, "-m", "tegula_eval.workers.device_worker"], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.output)
        message = {"jobs": jobs, "options": {**owner.options, "device": kind, "ahead": ahead,
                                             "seconds": owner.end - time.monotonic()}}
        self._input = json.dumps(message).encode() + b"\n"

    def run(self) -> tuple[list[dict], int]:
        """The jobs that are left, and how many programs the next process may compile at once."""
        try:
            self.process.stdin.write(self._input)
            self.process.stdin.close()
        except OSError:
            pass  # it died: told below
        try:
            how = self._read()
        finally:
            self.process.kill()
            self.process.wait()
        if how == "end":
            return [], self.ahead
        return self._after(how)

    def _read(self) -> str:
        """`end`, `timeout` or `died`."""
        data = b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            late = time.monotonic() + START_S
            while True:
                asked, began = max(0.0, late - time.monotonic()), time.monotonic()
                if not selector.select(asked):
                    if time.monotonic() - began < asked + 1:
                        return "timeout"
                    late = time.monotonic() + self.owner.deadline_s  # the machine, or all of this, was stopped
                    continue
                more = os.read(self.process.stdout.fileno(), 1 << 16)
                if not more:
                    return "died"
                data += more
                *lines, data = data.split(b"\n")
                for line in lines:
                    if self._take(json.loads(line)):
                        return "end"
                late = time.monotonic() + self.owner.deadline_s

    def _take(self, message: dict) -> bool:
        if "versions" in message:
            self.owner.versions = message["versions"]
        if "compiling" in message:
            self.compiling.add(message["compiling"])
        elif "compiled" in message:
            self.compiling.discard(message["compiled"])
        elif "stage" in message:
            self.stage, self.key = message["stage"], message["key"]
        elif "record" in message:
            self.owner.tell(self.jobs.pop(message["key"]), message["record"])
            self.stage, self.key = "between", None
        return "end" in message

    def _after(self, how: str) -> tuple[list[dict], int]:
        self.output.seek(max(0, self.output.seek(0, os.SEEK_END) - 1500))
        tail = self.output.read().decode(errors="replace").strip()
        message = "not done at the deadline" if how == "timeout" else \
            f"exit code {self.process.returncode}; {tail}"
        if self.owner.is_stopped:  # by a signal that this process had as well
            return list(self.jobs.values()), self.ahead
        if self.stage == "start":
            raise RuntimeError(f"the process of the device does not start: {message}")
        if self.compiling:  # one of these; which one, a process that compiles one at a time tells
            if self.ahead > 1 and len(self.compiling) > 1:
                return list(self.jobs.values()), 1
            for key in self.compiling:
                self._give_up(key, how, "compile", message)
            return list(self.jobs.values()), self.ahead
        if self.key is None:
            return list(self.jobs.values()), self.ahead
        job = self.jobs[self.key]
        if self.stage in ("float64", "sensitivity") and not job.get("no_float64"):
            job["no_float64"] = f"float64: {message[:120]}"
        elif self.stage == "torch.compile" and not job.get("no_compile"):
            job["no_compile"] = message[:200]
        else:
            self._give_up(self.key, how, self.stage, message)
        return list(self.jobs.values()), self.ahead

    def _give_up(self, key: str, how: str, stage: str, message: str) -> None:
        outcome = "timeout" if how == "timeout" else "crashed"
        self.owner.tell(self.jobs.pop(key), {
            "outcome": outcome, "reason": stage, "message": message, "flags": [], "cases": [], "timing": None,
            "seconds": self.owner.deadline_s if how == "timeout" else 0.0})
