"""What a process that runs foreign code may reach of the file system, by Landlock (Linux 5.13 or newer; no privilege is
needed).

It reads, writes and executes beneath the paths that it is told, and nothing else; opens no TCP connection (6.7); and
neither reads the memory of a process outside nor, from 6.12 on, sends signals to one. It cannot undo this, and its
children inherit it.
"""
from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same on every architecture
_READ = 1 << 0 | 1 << 2 | 1 << 3  # linux/landlock.h: execute, read a file, list a folder
_WRITE = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))  # write, remove, make
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_OF_FILES = 1 << 0 | 1 << 1 | 1 << 2 | _TRUNCATE | _IOCTL
_BIND_CONNECT_TCP = 3
_SCOPE_SOCKETS_SIGNALS = 3
SCOPES_SIGNALS = 6  # the version from which on signals stay inside


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def version() -> int:
    """Of Landlock; 0 where there is none."""
    return max(0, ctypes.CDLL(None).syscall(_CREATE, None, 0, 1))


def confine(readable: Iterable[Path], writable: Iterable[Path]) -> int:
    """Confines this process. Paths that are not there are left out. Returns the version of Landlock that does it, 0
    where there is none."""
    libc, abi = ctypes.CDLL(None, use_errno=True), version()
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    if not abi:
        return 0
    handled = _READ | _WRITE | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (_IOCTL if abi >= 5 else 0)
    rules = _Ruleset(handled, _BIND_CONNECT_TCP if abi >= 4 else 0, _SCOPE_SOCKETS_SIGNALS if abi >= 6 else 0)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = libc.syscall(_CREATE, ctypes.byref(rules), size, 0)
    if ruleset < 0:
        return 0
    try:
        for allowed, paths in ((_READ, readable), (handled, writable)):
            for path in paths:
                try:
                    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
                except OSError:
                    continue
                try:
                    rights = allowed if os.path.isdir(path) else allowed & _OF_FILES & handled
                    if libc.syscall(_ADD, ruleset, 1, ctypes.byref(_Beneath(rights, parent)), 0):
                        raise OSError(ctypes.get_errno(), "landlock_add_rule", str(path))
                finally:
                    os.close(parent)
        if libc.syscall(_RESTRICT, ruleset, 0):
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    finally:
        os.close(ruleset)
    return abi
