"""A process's descendants, those too that have left its group and session (Linux).

What the kernel tells of a process is bytes: its name need not be text. A process whose first thread has ended is told
as a zombie, and counts while another of its threads lives.
"""
from __future__ import annotations

import ctypes
import os
import signal
import time
from dataclasses import dataclass

_TICKS = os.sysconf("SC_CLK_TCK")
_STILL = b"TtZXx"  # stopped, traced, ended


@dataclass(frozen=True)
class Stat:
    """Of a process or thread, as /proc tells it."""
    state: bytes
    parent: int
    group: int
    session: int
    ended_s: float  # processor time of its children that have ended and were waited for


def adopt_orphans() -> None:
    """Makes this process the parent of those of its descendants whose parents end."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def stat(pid: int, thread: int | None = None) -> Stat | None:
    """None where it is gone."""
    path = f"/proc/{pid}/stat" if thread is None else f"/proc/{pid}/task/{thread}/stat"
    try:
        with open(path, "rb", buffering=0) as file:
            fields = file.read().rpartition(b")")[2].split()
        return Stat(fields[0], int(fields[1]), int(fields[2]), int(fields[3]),
                    (int(fields[13]) + int(fields[14])) / _TICKS)
    except (OSError, ValueError, IndexError):
        return None


def threads(pid: int) -> list[int]:
    """Those that are not gone, in whatever state."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def lives(pid: int, told: Stat) -> bool:
    """Whether some thread of it may run."""
    if told.state not in (b"Z", b"X", b"x"):
        return True
    for thread in threads(pid):
        one = stat(pid, thread) if thread != pid else None
        if one is not None and one.state not in (b"Z", b"X", b"x"):
            return True
    return False


def descendants(pid: int, ended: bool = False) -> dict[int, Stat]:
    """Without itself, and without those that have ended, unless `ended`."""
    children: dict[int, list[int]] = {}
    told: dict[int, Stat] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (one := stat(int(name))) is not None:
            told[int(name)] = one
            children.setdefault(one.parent, []).append(int(name))
    found, left = {}, [pid]
    while left:
        for child in children.get(left.pop(), []):
            left.append(child)
            if ended or lives(child, told[child]):
                found[child] = told[child]
    return found


def nearest(pid: int) -> dict[int, Stat] | None:
    """The same without a look at all processes, where the kernel lists children; None where it does not."""
    found, left = {}, [pid]
    while left:
        parent = left.pop()
        for thread in threads(parent):
            try:
                with open(f"/proc/{parent}/task/{thread}/children", "rb", buffering=0) as file:
                    children = [int(one) for one in file.read().split()]
            except FileNotFoundError:
                if os.path.exists(f"/proc/{parent}/task/{thread}"):
                    return None
                continue
            except OSError:
                continue
            for child in children:
                one = stat(child)
                if one is not None:
                    left.append(child)
                    if lives(child, one):
                        found[child] = one
    return found


def is_still(pid: int) -> bool:
    """Whether no thread of it runs, in the kernel either."""
    for thread in threads(pid):
        one = stat(pid, thread)
        if one is not None and one.state not in _STILL:
            return False
    return True


def processor_s(pid: int) -> float:
    """Of all its threads, also of those that have ended, and of its children that were waited for."""
    try:
        own = time.clock_gettime((~pid << 3) | 2)  # the clock of that process (CPUCLOCK_SCHED)
    except OSError:
        return 0.0
    told = stat(pid)
    return own + (told.ended_s if told else 0.0)


def waited_s(pid: int) -> float:
    """How long its first thread has waited for a processor; 0 where the kernel does not tell."""
    try:
        with open(f"/proc/{pid}/task/{pid}/schedstat", "rb", buffering=0) as file:
            return int(file.read().split()[1]) * 1e-9
    except (OSError, ValueError, IndexError):
        return 0.0


def kept_bytes(pid: int) -> int:
    """Memory that is its own or shared, but for what it shares with files; pages in common with others count in part
    where the kernel tells it."""
    plain = {b"RssAnon:": 0, b"RssShmem:": 0}
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            for line in file:
                name, _, rest = line.partition(b"\t")
                if name in plain:
                    plain[name] = int(rest.split()[0]) << 10
    except (OSError, ValueError, IndexError):
        return 0
    return sum(plain.values())


def shared_in_part(pid: int) -> int | None:
    """The same, pages in common with others divided among them; None where the kernel does not tell."""
    wanted, total = (b"Pss_Anon:", b"Pss_Shmem:"), 0
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(wanted):
                    total += int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        return None
    return total


def send(pids, number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def send_group(group: int, number: int) -> None:
    """One signal for all of it, in one step."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


def end_adopted() -> None:
    """Kills what has come to this process because its parent ended, and what that has started: its children in sessions
    that are not this one's. Who starts a process here with a session of its own loses it."""
    own = os.getsid(0)
    for _ in range(1000):
        strays = [pid for pid, one in descendants(os.getpid(), ended=True).items()
                  if one.parent == os.getpid() and one.session != own]
        if not strays:
            return
        send([below for pid in strays for below in (pid, *descendants(pid))], signal.SIGKILL)
        for pid in strays:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:  # another thread has taken leave of it
                pass
        time.sleep(0.002)


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
