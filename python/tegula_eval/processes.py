"""A process's descendants, those too that have left its group and session (Linux)."""
from __future__ import annotations

import ctypes
import os
import signal
import time


def adopt_orphans() -> None:
    """Makes this process the parent of those of its descendants whose parents end."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def descendants(pid: int) -> list[int]:
    """Without itself, and without those that have ended."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            state, parent = _state(f"/proc/{name}/stat")
            if state == b"Z":  # its first thread; others may go on
                threads = [_state(f"/proc/{name}/task/{one}/stat")[0] for one in os.listdir(f"/proc/{name}/task")]
                if all(one == b"Z" for one in threads):
                    continue
        except OSError:  # it has ended meanwhile
            continue
        children.setdefault(int(parent), []).append(int(name))
    found, left = [], [pid]
    while left:
        more = children.get(left.pop(), [])
        found += more
        left += more
    return found


def _state(path: str) -> tuple[bytes, int]:
    """State and parent. A process gives itself a name of any bytes."""
    with open(path, "rb") as stat:
        state, parent = stat.read().rsplit(b")", 1)[1].split()[:2]
    return state, int(parent)


def send(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def end_descendants(wanted: int | None = None) -> int | None:
    """Kills all of this process's descendants. The status of the child `wanted`, as of os.waitpid."""
    found = None
    for _ in range(1000):
        send(descendants(os.getpid()), signal.SIGKILL)
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    break
                if pid == wanted:
                    found = status
        except ChildProcessError:
            return found
        time.sleep(0.002)
    return found
