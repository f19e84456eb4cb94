"""Workers on many machines, through Ray: what pool.Pool is on one.

Each machine needs this package, torch and libtegula, and, for CUDA, gives each worker one GPU of its own. The run's
folder, its records and the requests to a model stay where the command runs.
"""
from __future__ import annotations

import atexit
import queue
import re
import socket
import tempfile
from typing import Callable

from .pool import Worker

TRIES = 3  # machines that may be lost over one request


class _Remote:
    """On the machine that judges."""

    def __init__(self):
        import ray
        self.worker = Worker()
        self.folder = tempfile.TemporaryDirectory()  # the command's own is elsewhere
        self.machine = f"{socket.gethostname()}/{ray.get_runtime_context().get_node_id()[:12]}"
        atexit.register(self.worker.stop)

    def judge(self, request: dict, deadline_s: float, memory_bytes: int | None) -> dict:
        if "cache" in request:
            request = {**request, "cache": self.folder.name}
        return {**self.worker.judge(request, deadline_s, memory_bytes), "machine": self.machine}


class Cluster:
    """`address`: of a Ray cluster, "auto" for the one that this machine is part of. Raises RuntimeError."""

    def __init__(self, address: str, workers: int, threads: int, target: str, deadline_s: float,
                 memory_bytes: int | None):
        import ray
        self.ray, self.deadline_s, self.memory_bytes = ray, deadline_s, memory_bytes
        self._own = not ray.is_initialized()
        if self._own:
            try:
                _reach(address)
                ray.init(address=address, logging_level="warning", log_to_driver=False)
            except (OSError, RuntimeError, ValueError) as error:
                raise RuntimeError(f"no Ray cluster at {address}: {error}") from error
        self._actor = ray.remote(_Remote).options(
            num_cpus=threads, num_gpus=1 if target == "cuda" else 0, scheduling_strategy="SPREAD")
        self._idle: queue.LifoQueue = queue.LifoQueue()
        for _ in range(max(1, workers)):
            self._idle.put(self._actor.remote())

    def judge(self, request: dict, begin: Callable[[], None] = lambda: None) -> dict:
        """As Pool.judge. What was under way on a machine that is lost is judged on another one."""
        worker = self._idle.get()
        try:
            begin()
            for _ in range(TRIES):
                try:
                    return self.ray.get(worker.judge.remote(request, self.deadline_s, self.memory_bytes))
                except self.ray.exceptions.RayError as error:
                    lost = error
                    worker = self._actor.remote()
            return {"kind": "crashed", "stage": "machine", "seconds": 0.0,
                    "message": f"{TRIES} machines were lost over it: {str(lost).splitlines()[0]}"}
        finally:
            self._idle.put(worker)

    def stop(self) -> None:
        while not self._idle.empty():
            self.ray.kill(self._idle.get())
        if self._own:
            self.ray.shutdown()


def _reach(address: str) -> None:
    """Ray itself would try for minutes. Raises OSError."""
    place = re.fullmatch(r"(?:ray://)?([^:/]+):(\d+)", address)
    if place:
        socket.create_connection((place[1], int(place[2])), timeout=10).close()
