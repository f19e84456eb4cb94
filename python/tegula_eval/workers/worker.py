"""A process that has torch imported and judges programs, each in a child of its own.

Reads requests as JSON lines, {"id": ..., "request": ..., "deadline_s": ..., "memory_bytes": ...}, from the socket whose
descriptor is its argument, and answers each there with a line of the same id. Nothing of a task or program runs in this
process. A child, in which a task does run, has neither this socket nor any other child's pipe; it is confined as a
candidate is, and whatever it has started ends with it.
"""
from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path

FOLDERS = ("HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME")
STARTS_GUESTS = ("candidate", "trial")  # what runs an answer in a process of its own, which is confined


class Confined:
    """A function of a task, as child.run takes it, in a folder of its own. It writes to that alone, and reaches no other
    process. `is_foreign`: the task is a stranger's, and what it may call and read is what a candidate may."""

    def __init__(self, function, folder: str, is_foreign: bool, is_cuda: bool):
        self.function, self.folder, self.is_foreign, self.is_cuda = function, Path(folder), is_foreign, is_cuda

    def __call__(self, request: dict, stage) -> dict:
        from ..confine import landlock, namespaces, seccomp
        os.chdir(self.folder)
        tempfile.tempdir = None
        for name in FOLDERS:
            os.environ[name] = str(self.folder)
        os.environ.pop("TEGULA_CACHE_DIR", None)  # shared with others' programs; the own folder has one
        gpu = namespaces.gpu_places() if self.is_cuda else []
        readable, writable = [Path("/")], [self.folder, Path("/dev"), *gpu]
        if self.is_foreign:
            readable = [*namespaces.readable(self.is_cuda), Path("/proc"), Path("/sys")]
            writable = [self.folder, *(Path("/dev") / name for name in namespaces.DEVICES),
                        *gpu]
            namespaces.drop(None)
        level = landlock.confine(readable, writable)
        if self.is_foreign:
            seccomp.install(only_itself=level < landlock.SCOPES_SIGNALS, cuda=self.is_cuda)
        return with_variants(self.function)(request, stage)


def with_variants(function):
    """The function's answer has the variants that it found, for the parent to keep."""
    def run(request: dict, stage) -> dict:
        return {**function(request, stage), "variants": request.get("variants")}
    run.descriptors = getattr(function, "descriptors", tuple)
    run.waits = getattr(function, "waits", False)
    return run


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(channel.fileno(), False)
    from ..confine import child, processes
    child.die_with_parent()
    child.keep_memory()
    processes.adopt_orphans()
    from ..judge import candidates, export, trial
    from ..judge.audit import audit
    from ..judge.evaluate import VariantCache, evaluate
    from ..program import provenance
    from ..rule import variants
    functions = {"evaluate": evaluate, "export": export.export, "candidate": candidates.evaluate, "audit": audit,
                 "trial": trial.evaluate}
    variants.warm()
    provenance.versions("cpu")  # the library is loaded and hashed once for all children
    channel.sendall(b'{"ready": true}\n')
    for line in _lines(channel):
        message = json.loads(line)
        request = message["request"]
        what = request.get("do", "evaluate")
        cache = VariantCache(request.pop("cache"), request) if request.get("cache") else None
        if cache:
            request["variants"] = cache.read()

        if request.get("certify"):
            from ..proofs import certify
            certify.warm()

        def told(stage: str, number: int = message["id"]) -> None:
            _say(channel, {"id": number, "stage": stage})

        with tempfile.TemporaryDirectory(prefix="tegula-task-", ignore_cleanup_errors=True) as folder:
            if what in STARTS_GUESTS:
                function = with_variants(functions[what])  # which starts a process that is confined
                _starter(candidates)  # before the fork, so that it serves the next one too
            else:
                function = Confined(functions[what], folder, request.pop("is_foreign", False), request.get("target") == "cuda")
            outcome = child.run(function, request, message["deadline_s"], message["memory_bytes"],
                                _file_bytes(what, request), told)
            if what in STARTS_GUESTS:
                candidates.starter().end()  # where the child could not: at a deadline
            _end_strays(candidates)
        found = outcome["answer"].pop("variants", None) if outcome["kind"] == "done" else None
        if cache and found and not request["variants"]:
            cache.write(found)
        _say(channel, {**outcome, "id": message["id"]})


def _file_bytes(what: str, request: dict) -> int | None:
    """A candidate's own process has a limit of its own."""
    from ..confine import child
    if what in STARTS_GUESTS:
        return None
    return child.MAX_COMPILER_BYTES if (request.get("time") or {}).get("compile") else child.MAX_OUTPUT_BYTES


def _lines(channel: socket.socket):
    """Until who asks has gone, however that ended."""
    with contextlib.suppress(ConnectionResetError):
        yield from channel.makefile("r", encoding="utf-8")


def _say(channel: socket.socket, message: dict) -> None:
    try:
        channel.sendall(json.dumps(message).encode() + b"\n")
    except OSError:  # who asked has gone
        sys.exit()


def _starter(candidates) -> None:
    if candidates.starter().process.poll() is not None:  # it was killed
        candidates.starter.cache_clear()
        candidates.starter()


def _end_strays(candidates) -> None:
    """Kills what a child has left, whichever session it went to, and takes leave of it."""
    from ..confine import processes
    kept = candidates.starter().pid if candidates.starter.cache_info().currsize else None
    for _ in range(1000):
        spared = {kept, *(processes.descendants(kept) if kept else ())}
        strays = [pid for pid in processes.descendants(os.getpid()) if pid not in spared]
        processes.send(strays, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if not strays:
            return


if __name__ == "__main__":
    main()
