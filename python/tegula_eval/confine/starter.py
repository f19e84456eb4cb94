"""Starts guests (guest.py) by forking a process that has torch imported and knows nothing of tasks, seeds or results.

`Starter` is the side that asks; it may be used by the process that made it and by children forked from that, one after
the other. What a guest is confined by is found out at the first start and told with each:

  namespaces  of users, processes, mounts, network and queues (namespaces.py); or why there are none
  user        whom the system takes the guest for: `nobody`, or the one that judges
  group       a control group, with the limits that the system has handed down (cgroup.py); or why there is none
  landlock    its version, 0 for none (landlock.py)
  calls       whether system calls are filtered (seccomp.py)

`TEGULA_EVAL_WITHOUT` names layers that are left out (`namespaces,user,group,landlock,calls`), so that what is then left can
be tested.
"""
from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from . import cgroup, child, landlock, namespaces, processes, seccomp
from .environment import for_process

MAX_FILE_BYTES = 1 << 30  # of what a candidate's compilers write
MAX_PROCESSES = 256  # and threads
LAYERS = ("namespaces", "user", "group", "landlock", "calls")


class Starter:
    def __init__(self, without: str | None = None):
        from ..program import runner  # and with it torch, which the process that starts guests imports once it has a parent
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = for_process(PYTHONDONTWRITEBYTECODE="1")
        if without is not None:
            environment["TEGULA_EVAL_WITHOUT"] = without
        with theirs:
            self.process = subprocess.Popen([sys.executable, "-m", "tegula_eval.confine.starter", str(theirs.fileno()),
                                             *map(str, filter(None, [runner.package_path()]))],
                                            stdin=subprocess.DEVNULL, env=environment, cwd="/",
                                            pass_fds=(theirs.fileno(),))

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def descriptor(self) -> int:
        """By which it is asked."""
        return self._socket.fileno()

    def start(self, folder: str, requests: int, replies: int, arena: int, memory_bytes: int | None,
              cuda: bool = False) -> dict:
        """A new guest: its `pid`, its `group`'s folder or None, and how it is confined (`isolation`)."""
        return self._ask({"do": "start", "folder": folder, "memory": memory_bytes, "cuda": cuda},
                         [requests, replies, arena])

    def end(self, pid: int | None = None) -> int | None:
        """Ends the guest and all that it has started, all guests without a `pid`; the status of the one, as of
        os.waitpid."""
        return self._ask({"do": "end", "pid": pid})["status"]

    def stop(self) -> None:
        self._socket.close()
        self.process.kill()
        self.process.wait()

    def _ask(self, message: dict, fds: list[int] = ()) -> dict:
        message["id"] = os.urandom(8).hex()
        socket.send_fds(self._socket, [json.dumps(message).encode()], fds)
        while True:
            data = self._socket.recv(1 << 16)
            if not data:
                raise RuntimeError("the process that starts candidates does not start: is torch installed?")
            answer = json.loads(data)
            if answer["id"] == message["id"]:  # not the answer to one that was killed before it came
                if "error" in answer:
                    raise RuntimeError(f"a candidate's process cannot be started: {answer['error']}")
                return answer


class _Guests:
    """The side that is asked."""

    def __init__(self, guest):
        self.guest = guest
        self.without = set(filter(None, os.environ.get("TEGULA_EVAL_WITHOUT", "").split(",")))
        unknown = self.without - set(LAYERS)
        if unknown:
            raise ValueError(f"TEGULA_EVAL_WITHOUT: no layer {unknown.pop()}; there are {', '.join(LAYERS)}")
        self.is_root = os.geteuid() == 0
        self.as_nobody = self.is_root and "user" not in self.without
        self.namespaces: bool | None = False if "namespaces" in self.without else None  # not known yet
        self.why = "left out" if "namespaces" in self.without else ""
        self.swept = False
        self.shared = Path("/dev/shm")
        self.there: set[str] = set()  # what was in it before the first guest
        self.running: dict[int, tuple[int, cgroup.Group | None]] = {}  # by the guest's pid: its outer process

    def start(self, message: dict, fds: list[int]) -> dict:
        if not message["cuda"]:
            return self._start(message, fds)
        # CUDA opens another process's memory (cudaIpcOpenMemHandle) only as that process's user, in its namespaces and
        # outside of Landlock (error 205 otherwise, measured on an H200); the record says so.
        kept = self.namespaces, self.as_nobody, self.why, self.without
        self.namespaces, self.as_nobody, self.why = False, False, "CUDA shares memory within one"
        self.without = self.without | {"landlock"}
        try:
            return self._start(message, fds)
        finally:
            self.namespaces, self.as_nobody, self.why, self.without = kept

    def _start(self, message: dict, fds: list[int]) -> dict:
        if self.namespaces is None:
            self._find_out(message)
        if not self.running and self.shared.is_dir():
            self.there = set(map(str, self.shared.iterdir()))
        outer, pid, has_proc = self._fork(message, fds)
        group, why = None, "left out"
        if "group" not in self.without:
            try:
                folder = cgroup.own_folder(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
                if folder is None:
                    raise FileNotFoundError("the system has none")
                if not self.swept:
                    cgroup.sweep(folder)
                    self.swept = True
                group = cgroup.Group.make(folder, message["memory"], MAX_PROCESSES)
                group.add(pid)
            except OSError as error:
                why = error.strerror or str(error)
                if group is not None:
                    group.end()
                    group = None
        self.running[pid] = outer, group
        confined = {"namespaces": "own" if self.namespaces else self.why,
                    "user": "nobody" if self.as_nobody else "own", "proc": has_proc,
                    "group": ",".join(["stop", *group.limits]) if group else why}
        return {"pid": pid, "group": group and str(group.folder), "isolation": confined}

    def end(self, pid: int | None) -> int | None:
        """Guests whose process has ended already leave what they have started, which ends here too."""
        status = None
        for one in [pid] if pid is not None else list(self.running):
            outer, group = self.running.pop(one, (None, None))
            if outer is None:
                continue
            if group is not None:
                group.kill()
            processes.send_group(one, signal.SIGKILL)
            processes.send([one], signal.SIGKILL)
            status = os.waitpid(outer, 0)[1]
            if group is not None:
                group.end()
        if not self.running:  # none whose processes these might be
            processes.end_descendants()
            self._clear_shared()
        return status

    def _clear_shared(self) -> None:
        """Takes away what guests without a mount of their own have left in memory that all share."""
        if self.as_nobody and not self.namespaces:
            for path in self.shared.iterdir():
                if str(path) not in self.there and path.lstat().st_uid == namespaces.NOBODY:
                    shutil.rmtree(path, ignore_errors=True) if path.is_dir() and not path.is_symlink() else path.unlink()

    def _find_out(self, message: dict) -> None:
        """Whether namespaces can be had, and whether what a guest reads can be read there by nobody."""
        choices = (True, False) if self.as_nobody else (False,)
        for self.as_nobody in choices:
            read, write = os.pipe()
            with tempfile.TemporaryDirectory() as folder:
                try:
                    outer, pid, _ = self._fork({**message, "folder": folder, "try": True}, [write])
                    os.close(write)
                    told = os.read(read, 1000)
                    os.waitpid(outer, 0)
                except namespaces.Refused as error:
                    os.close(write)
                    told = str(error).encode()
                finally:
                    os.close(read)
            if told == b"can read":
                self.namespaces = True
                return
            self.why = told.decode(errors="replace") or "it does not start"
        self.namespaces, self.as_nobody = False, self.is_root and "user" not in self.without and _may_become_nobody()

    def _fork(self, message: dict, fds: list[int]) -> tuple[int, int, bool]:
        """The outer process, the guest's, and whether it has a /proc. Raises namespaces.Refused."""
        if self.namespaces is False:
            pid = os.fork()
            if pid == 0:
                self._become(message, fds, None)
            return pid, pid, True
        heard, tells = os.pipe()
        hears, say = os.pipe()
        outer = os.fork()
        if outer == 0:
            os.close(heard)
            os.close(say)
            self._separate(message, fds, tells, hears)
        os.close(tells)
        os.close(hears)
        try:
            with os.fdopen(heard, "rb", buffering=0) as lines:
                self._expect(lines, b"apart")
                namespaces.map_users(outer, self.is_root)
                os.write(say, b"go")
                # Of the outer process and of the guest, which may be the first.
                told = dict(self._expect(lines, b"guest ", b"ready ") for _ in range(2))
                pid, has_proc = int(told[b"guest "]), told[b"ready "] == b"True"
        except namespaces.Refused:
            os.kill(outer, signal.SIGKILL)
            os.waitpid(outer, 0)
            raise
        finally:
            os.close(say)
        return outer, pid, has_proc

    @staticmethod
    def _expect(lines, *begins: bytes) -> tuple[bytes, bytes]:
        """Which of them the next line begins with, and what follows."""
        line = lines.readline().strip()
        for begin in begins:
            if line.startswith(begin):
                return begin, line[len(begin):]
        raise namespaces.Refused(line.decode(errors="replace") or "its process ended")

    def _separate(self, message: dict, fds: list[int], tells: int, hears: int) -> None:
        """The outer process. Never returns."""
        try:
            child.die_with_parent()
            try:
                namespaces.separate()
                os.write(tells, b"apart\n")
                if not os.read(hears, 2):
                    return
                pid = os.fork()
                if pid == 0:
                    try:
                        self._become(message, fds, tells)
                    except namespaces.Refused as error:
                        os.write(tells, f"{error}\n".encode())
                    os._exit(1)
                os.write(tells, b"guest %d\n" % pid)
            except namespaces.Refused as error:
                os.write(tells, f"{error}\n".encode())
                return
            for fd in (tells, hears, *fds):
                os.close(fd)
            _end_as(os.waitpid(pid, 0)[1])
        finally:
            os._exit(1)

    def _become(self, message: dict, fds: list[int], tells: int | None) -> None:
        """Never returns. Raises namespaces.Refused."""
        child.die_with_parent()
        os.setsid()
        keep = sorted([0, 1, 2, *fds, *([tells] if tells is not None else [])])
        for first, last in zip(keep, [*keep[1:], 1 << 20]):
            os.closerange(first + 1, last)  # nothing of the process that starts guests is left open
        folder = Path(message["folder"])
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.close(null)
        if self.as_nobody:
            os.chown(folder, namespaces.NOBODY, namespaces.NOBODY)
        apart = tells is not None

        def ready() -> None:
            if apart:
                os.write(tells, f"ready {has_proc}\n".encode())
                os.close(tells)

        paths = namespaces.readable()
        has_proc = True
        if apart:
            shared = min((message["memory"] or 1 << 32) // 4, 1 << 30)
            has_proc = namespaces.Root(folder, paths, shared).build()
            folder = Path("/tmp")
        os.chdir(folder)
        for name, value in (("CORE", 0), ("FSIZE", MAX_FILE_BYTES),
                            ("DATA", message["memory"] and message["memory"] + child.private_bytes()),
                            ("NPROC", MAX_PROCESSES if apart or self.as_nobody else None)):
            if value is not None:
                resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
        namespaces.drop(namespaces.NOBODY if self.as_nobody else None)
        child.die_with_parent()  # another user's process is not asked any more
        if message.get("try"):
            missing = [path for path in paths if not os.access(path, os.R_OK)]
            os.write(fds[0], f"{missing[0]} cannot be read".encode() if missing else b"can read")
            ready()
            os._exit(0)
        layers = {"landlock": 0, "calls": False}
        if "landlock" not in self.without:
            shared = [Path("/dev/shm")] if apart or self.as_nobody else []
            layers["landlock"] = landlock.confine([*paths, Path("/proc"), Path("/sys")] if not apart else [Path("/")],
                                                  [folder, *shared, *(Path("/dev") / name for name in namespaces.DEVICES)])
        if "calls" not in self.without:
            outside = not apart and not self.as_nobody and layers["landlock"] < landlock.SCOPES_SIGNALS
            layers["calls"] = seccomp.install(only_itself=outside, cuda=message["cuda"])
        ready()
        tempfile.tempdir = None
        for name in ("HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR"):
            os.environ[name] = str(folder)
        try:
            self.guest.serve(folder, *fds, layers)
        finally:
            os._exit(1)


def _may_become_nobody() -> bool:
    """Whether a child of this process can."""
    pid = os.fork()
    if pid == 0:
        try:
            namespaces.drop(namespaces.NOBODY)
            os._exit(0 if all(os.access(path, os.R_OK) for path in namespaces.readable(False)) else 1)
        except namespaces.Refused:
            pass
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _end_as(status: int) -> None:
    """Ends this process as another one has ended."""
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL) if os.WTERMSIG(status) != signal.SIGKILL else None
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), os.WTERMSIG(status))
        signal.pause()
    os._exit(os.WEXITSTATUS(status))


def main() -> None:
    child.die_with_parent()
    processes.adopt_orphans()
    asked = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(asked.fileno(), False)
    from . import guest  # and with it torch
    # What `tegula-eval export` writes imports tegula; in a source tree the folder of this package holds one that is
    # not built.
    sys.path[:0] = sys.argv[2:]
    guests = _Guests(guest)
    while True:
        data, fds, _, _ = socket.recv_fds(asked, 1 << 16, 4)
        if not data:
            return
        message = json.loads(data)
        answer = {"id": message["id"]}
        try:
            if message["do"] == "start":
                answer.update(guests.start(message, fds))
            else:
                answer["status"] = guests.end(message["pid"])
        except (OSError, namespaces.Refused) as error:
            answer["error"] = str(error)
        for fd in fds:
            os.close(fd)
        asked.send(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
