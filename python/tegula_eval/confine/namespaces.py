"""Namespaces of a guest's own (Linux): users, processes, mounts, network, queues, host name.

A guest sees a file system of its own: what Python and torch need, read-only; a folder, /tmp and /dev/shm that are its
own and go with it; of the devices those that hold nothing. There is no other process in its
/proc and no network in its network. A judge with root's rights maps it to the user `nobody`; what an ordinary user
starts stays that user, without any privilege.

Two processes are forked: the outer one makes the namespaces, waits, and ends as the inner one did; the inner one is the
guest, the first process of its own, with which everything ends that it has started.
"""
from __future__ import annotations

import contextlib
import ctypes
import os
import site
import sys
import sysconfig
from pathlib import Path

from ..program.library import command_path, library_path

NOBODY = 65534
_NEW = {"mount": 0x20000, "name": 0x4000000, "ipc": 0x8000000, "user": 0x10000000, "pid": 0x20000000,
        "network": 0x40000000}
_BIND, _REC, _PRIVATE, _REMOUNT = 0x1000, 0x4000, 1 << 18, 0x20
_READONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
_DETACH = 2
_MOUNT_SETATTR, _PIVOT_ROOT = 442, {"x86_64": 155, "aarch64": 41}
DEVICES = ("null", "zero", "full", "random", "urandom")
# What a linker, a C library, a compiler and CUDA look for; nothing that is secret to one who has an account.
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix/store", "/gnu/store",
          "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime",
          "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/OpenCL", "/etc/vulkan", "/etc/magic", "/etc/mime.types",
          "/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage")
CUDA = ("/sys/bus/pci", "/sys/devices", "/sys/module/nvidia", "/proc/driver/nvidia", "/run/nvidia-persistenced")


def readable(cuda: bool = False) -> list[Path]:
    """Files and folders that a guest reads: the system's, Python's, its packages', and those of libraries in use."""
    paths = [*SYSTEM, *(CUDA if cuda else ()), sys.prefix, sys.base_prefix, sys.exec_prefix, sysconfig.get_path("stdlib"),
             sysconfig.get_path("platstdlib"), *site.getsitepackages(), os.path.realpath(sys.executable)]
    paths += [path for path in sys.path if path and _holds_packages(Path(path))]
    with contextlib.suppress(FileNotFoundError):
        paths += map(str, library_path().parent.glob("libtegula*"))  # which exported programs load
    with contextlib.suppress(FileNotFoundError):
        paths.append(command_path())  # which proofs ask
    with open("/proc/self/maps", "rb") as maps:
        mapped = {os.fsdecode(line.split(None, 5)[5].rstrip(b"\n")) for line in maps if line.count(b"/")}
    paths += [path for path in mapped if os.path.isfile(path)]
    found: list[Path] = []
    for path in sorted({os.path.realpath(one) for one in paths if os.path.exists(one)} |
                       {os.path.abspath(one) for one in paths if os.path.exists(one)}):
        if path != "/" and not any(path == str(one) or path.startswith(f"{one}/") for one in found):
            found.append(Path(path))
    return found


def _holds_packages(path: Path) -> bool:
    """Not a folder that happens to be the current one or somebody's home."""
    return path.is_file() or any((path / name).exists() for name in ("tegula_eval", "tegula", "torch", "numpy", "os.py")) \
        or path.name in ("lib-dynload", "site-packages", "dist-packages")


def gpu_places() -> list[Path]:
    """What CUDA writes to: its devices, and the names of its own threads, without which cuInit fails."""
    return [*(one for one in Path("/dev").iterdir() if one.name.startswith("nvidia")), Path("/proc/self/task")]


class Refused(Exception):
    """The system does not allow a step."""


def _libc():
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise Refused(f"{what}: {os.strerror(number)}")


def separate() -> None:
    """This process's namespaces; that of processes counts for the next one that it forks. Raises Refused."""
    flags = 0
    for flag in _NEW.values():
        flags |= flag
    _check(_libc().unshare(flags), "unshare")


def map_users(pid: int, as_root: bool) -> None:
    """From outside, for a process that has separated. Raises Refused."""
    own, group = os.geteuid(), os.getegid()
    users, groups = (f"{one} {one} 1\n" for one in (own, group))
    if as_root:
        users = groups = f"0 0 1\n{NOBODY} {NOBODY} 1\n"
    try:
        if not as_root:
            Path(f"/proc/{pid}/setgroups").write_text("deny")
        Path(f"/proc/{pid}/uid_map").write_text(users)
        Path(f"/proc/{pid}/gid_map").write_text(groups)
    except OSError as error:
        raise Refused(f"map users: {error.strerror}") from error


class Root:
    """The file system of a guest, which `build` makes the root of the process that calls it. Its /tmp is `folder`."""

    def __init__(self, folder: Path, paths: list[Path], shared_bytes: int):
        self.folder, self.paths, self.shared_bytes = folder, paths, shared_bytes

    def build(self) -> bool:
        """Whether there is a /proc, which some containers do not permit. Raises Refused."""
        self._mount(None, "/", None, _REC | _PRIVATE)
        folder = os.open(self.folder, os.O_PATH | os.O_CLOEXEC)
        devices = [Path("/dev") / name for name in DEVICES]
        links = [(path, os.readlink(path)) for path in self.paths if path.is_symlink()]
        sources = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in [*self.paths, *devices]
                   if not path.is_symlink()]
        base = "/tmp"
        self._mount("tmpfs", base, "tmpfs", _NOSUID | _NODEV, "mode=755,size=1m")
        for name in ("tmp", "var/tmp"):  # before what may lie beneath them
            Path(f"{base}/{name}").mkdir(parents=True)
            self._mount(f"/proc/self/fd/{folder}", f"{base}/{name}", None, _BIND)
            self._restrict(f"{base}/{name}", _NOSUID | _NODEV)
        for path, source in sources:
            there = Path(base + str(path))
            if os.path.isdir(f"/proc/self/fd/{source}"):
                there.mkdir(parents=True, exist_ok=True)
            else:
                there.parent.mkdir(parents=True, exist_ok=True)
                there.touch()
            self._mount(f"/proc/self/fd/{source}", str(there), None, _BIND | _REC)
            self._restrict(str(there), _NOSUID if path in devices else _NOSUID | _NODEV | _READONLY)
            os.close(source)
        for path, target in links:
            there = Path(base + str(path))
            if not os.path.lexists(there):
                there.parent.mkdir(parents=True, exist_ok=True)
                there.symlink_to(target)
        for name in ("dev/shm", "proc"):
            Path(f"{base}/{name}").mkdir(parents=True, exist_ok=True)
        self._mount("tmpfs", f"{base}/dev/shm", "tmpfs", _NOSUID | _NODEV, f"mode=1777,size={self.shared_bytes}")
        os.symlink("/proc/self/fd", f"{base}/dev/fd")
        try:
            self._mount("proc", f"{base}/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
            has_proc = True
        except Refused:
            has_proc = False
        os.chdir(base)
        _check(_libc().syscall(_PIVOT_ROOT[os.uname().machine], b".", b"."), "pivot_root")
        _check(_libc().umount2(b".", _DETACH), "umount the old root")
        os.chdir("/")
        os.close(folder)  # a way to what lies outside
        self._mount(None, "/", None, _REMOUNT | _BIND | _READONLY | _NOSUID | _NODEV)
        return has_proc

    @staticmethod
    def _mount(source, target, kind, flags, data=None) -> None:
        def text(one):
            return one if one is None else os.fsencode(one)
        _check(_libc().mount(text(source), text(target), text(kind), ctypes.c_ulong(flags), text(data)),
               f"mount {target}")

    @classmethod
    def _restrict(cls, target: str, flags: int) -> None:
        """With all that is mounted below."""
        attributes = (ctypes.c_uint64 * 4)(flags, 0, 0, 0)
        if _libc().syscall(_MOUNT_SETATTR, -100, os.fsencode(target), 0x8000, attributes, ctypes.sizeof(attributes)) < 0:
            cls._mount(None, target, None, _REMOUNT | _BIND | flags)  # before Linux 5.12


def drop(user: int | None) -> None:
    """Gives up every privilege in this process's namespace, and becomes that user, for good. Raises Refused."""
    libc = _libc()
    for one in range(64):
        libc.prctl(24, one, 0, 0, 0)  # PR_CAPBSET_DROP
    if user is not None and os.geteuid() != user:
        try:
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        except OSError as error:
            raise Refused(f"become another user: {error.strerror}") from error
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    _check(libc.capset(header, none), "drop privileges")
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
