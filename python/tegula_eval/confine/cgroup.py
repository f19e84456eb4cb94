"""A control group (version 2) of one guest's own, where this process may make one.

It stops and ends all of a guest at once and tells the processor time of all of it, also of what has ended. The limits
on memory, which count shared memory, and on processes are set where the system has handed down those controllers.
"""
from __future__ import annotations

import itertools
import os
import select
import time
from pathlib import Path

_number = itertools.count()


def own_folder(mounts: str, groups: str) -> Path | None:
    """Of this process's group, from the texts of /proc/self/mountinfo and /proc/self/cgroup."""
    path = next((line[3:] for line in groups.splitlines() if line.startswith("0::")), None)
    if path is None:
        return None
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        if right.split(" ", 1)[0] == "cgroup2":
            root, place = left.split(" ")[3:5]
            if path == root or root == "/" or path.startswith(root + "/"):
                return Path(place) / path[0 if root == "/" else len(root):].lstrip("/")
    return None


def sweep(beneath: Path) -> None:
    """Ends the groups that a process has left that was killed, and what is in them."""
    for folder in beneath.glob("tegula-*-*"):
        pid = folder.name.split("-")[1]
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            try:
                Group(folder).end()
            except OSError:  # another one is doing it
                pass


class Group:
    """One that is there. Raises OSError where it is not, or cannot be stopped and ended at once."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.limits: list[str] = []
        self._events = os.open(folder / "cgroup.events", os.O_RDONLY | os.O_CLOEXEC)
        self._freeze = os.open(folder / "cgroup.freeze", os.O_RDWR | os.O_CLOEXEC)
        self._changes = select.poll()
        self._changes.register(self._events, select.POLLPRI)

    @classmethod
    def make(cls, beneath: Path, memory_bytes: int | None, processes: int) -> Group:
        """A new one beneath another. Raises OSError."""
        folder = beneath / f"tegula-{os.getpid()}-{next(_number)}"
        folder.mkdir()
        try:
            group = cls(folder)
            if not os.access(folder / "cgroup.kill", os.W_OK):
                raise FileNotFoundError("its groups cannot be ended at once")  # before Linux 5.14
        except OSError:
            folder.rmdir()
            raise
        for name, files in (("memory", {"memory.max": memory_bytes, "memory.swap.max": 0, "memory.oom.group": 1}),
                            ("pids", {"pids.max": processes})):
            if all((folder / file).exists() for file in files if file != "memory.swap.max"):  # it was handed down
                for file, value in files.items():
                    if value is not None and (folder / file).exists():
                        (folder / file).write_text(str(value))
                group.limits.append(name)
        return group

    def add(self, pid: int) -> None:
        (self.folder / "cgroup.procs").write_text(str(pid))

    def stop(self, end: float) -> bool:
        """Returns once no thread of it runs, in the kernel either; False if that is not so by `end`."""
        os.pwrite(self._freeze, b"1", 0)
        while b"frozen 1" not in os.pread(self._events, 100, 0):
            left = end - time.perf_counter()
            if left <= 0:
                return False
            self._changes.poll(min(left, 0.1) * 1000)
        return True

    def resume(self) -> None:
        os.pwrite(self._freeze, b"0", 0)

    def processor_s(self) -> float:
        text = (self.folder / "cpu.stat").read_text()
        return int(text.split("usage_usec ", 1)[1].split("\n", 1)[0]) * 1e-6

    def pids(self) -> list[int]:
        return [int(one) for one in (self.folder / "cgroup.procs").read_text().split()]

    def has_died_of_memory(self) -> bool:
        try:
            return "oom_kill 0\n" not in (self.folder / "memory.events").read_text()
        except OSError:
            return False

    def kill(self) -> None:
        (self.folder / "cgroup.kill").write_text("1")

    def close(self) -> None:
        for fd in (self._events, self._freeze):
            os.close(fd)

    def end(self) -> None:
        """Kills all of it, and takes the group away."""
        self.close()
        for _ in range(2000):
            try:
                self.kill()
                self.folder.rmdir()
                return
            except FileNotFoundError:
                return
            except OSError:  # some of it is not gone yet
                time.sleep(0.002)
