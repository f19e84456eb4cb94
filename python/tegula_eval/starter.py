"""Starts guests (guest.py) by forking a process that has torch imported and knows nothing of tasks, seeds or results.

One guest at a time. `Starter` is the side that asks; it may be used by the process that made it and by children
forked from that, one after the other.
"""
from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from . import isolation, processes
from .pool import SECRETS

MAX_FILE_BYTES = 1 << 30  # of what a candidate's compilers write


class Starter:
    def __init__(self):
        from . import runner  # and with it torch, which the process that starts guests imports once it has a parent
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        package = str(Path(__file__).resolve().parents[1])
        environment = {name: value for name, value in os.environ.items()
                       if not any(word in name.upper() for word in SECRETS)}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package, environment.get("PYTHONPATH")]))
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        with theirs:
            self.process = subprocess.Popen([sys.executable, "-m", "tegula_eval.starter", str(theirs.fileno()),
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

    def start(self, folder: str, requests: int, replies: int, arena: int) -> int:
        """The pid of a new guest, with the limits that this process has."""
        limit = resource.getrlimit(resource.RLIMIT_DATA)
        return self._ask({"do": "start", "folder": folder, "data": list(limit)},
                         [requests, replies, arena, 2])["pid"]

    def end(self) -> int | None:
        """Ends the guest and all that it has started; its status, as of os.waitpid."""
        return self._ask({"do": "end"})["status"]

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
                return answer


def main() -> None:
    isolation.die_with_parent()
    processes.adopt_orphans()
    asked = socket.socket(fileno=int(sys.argv[1]))
    from . import guest  # and with it torch
    # What `tegula-eval export` writes imports tegula; in a source tree the folder of this package holds one that is
    # not built.
    sys.path[:0] = sys.argv[2:]
    pid, status = None, None
    while True:
        data, fds, _, _ = socket.recv_fds(asked, 1 << 16, 4)
        if not data:
            return
        message = json.loads(data)
        answer = {"id": message["id"]}
        if message["do"] == "start":
            processes.end_descendants()
            pid, status = os.fork(), None
            if pid == 0:
                asked.close()
                _become(guest, message, fds)
            answer["pid"] = pid
        else:
            status = processes.end_descendants(pid)
            answer["status"] = status
        for fd in fds:
            os.close(fd)
        asked.send(json.dumps(answer).encode())


def _become(guest, message: dict, fds: list[int]) -> None:
    """Never returns."""
    try:
        isolation.die_with_parent()
        os.setsid()
        requests, replies, arena, output = fds
        os.dup2(output, 1)
        os.dup2(output, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
        resource.setrlimit(resource.RLIMIT_DATA, tuple(message["data"]))
        folder = message["folder"]
        os.chdir(folder)
        tempfile.tempdir = None
        for name in ("HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR"):
            os.environ[name] = folder
        guest.serve(Path(folder), requests, replies, arena)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
