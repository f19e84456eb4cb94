"""A filter of system calls for processes that run foreign code (Linux, x86-64 and AArch64; no privilege is needed).

It stands whatever else the system allows: in a container that permits neither namespaces nor Landlock, it alone keeps a
guest from sockets, from other processes' memory, limits and scheduling, and from memory that no limit counts.

A refused call fails with EPERM. `setsid` and `setpgid` succeed without an effect: all that a guest starts stays in one
process group, so that one signal stops or ends it, whatever it is called and whoever has adopted it.
"""
from __future__ import annotations

import ctypes
import errno
import os
import struct

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
REFUSED, IGNORED, ABSENT = ERRNO | errno.EPERM, ERRNO, ERRNO | errno.ENOSYS
_LOAD, _EQUAL, _ANY_BIT, _NOT_BELOW, _AND, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}  # AUDIT_ARCH_*, column of the tables

# No socket of any family; none that io_uring makes either.
SOCKETS = {"socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
           "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427)}
# Memory, files and events of other processes.
OTHERS = {"ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
          "pidfd_getfd": (438, 438), "kcmp": (312, 272), "perf_event_open": (298, 241), "bpf": (321, 280),
          "userfaultfd": (323, 282), "migrate_pages": (256, 238), "move_pages": (279, 239),
          "process_madvise": (440, 440), "process_mrelease": (448, 448), "keyctl": (250, 219), "add_key": (248, 217),
          "request_key": (249, 218), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264)}
# Other namespaces and mounts.
PLACES = {"mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
          "setns": (308, 268), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
          "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
          "swapon": (167, 224), "quotactl": (179, 60)}
# Memory and queues that belong to no process and outlive it, or that its limits do not count.
KEPT = {"memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
        "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180)}
GROUPS = {"setsid": (112, 157), "setpgid": (109, 154)}
# Limits and scheduling: (numbers, place of the argument that names another process).
OWN = {"sched_setaffinity": ((203, 122), 0), "sched_setscheduler": ((144, 119), 0), "sched_setparam": ((142, 118), 0),
       "sched_setattr": ((314, 274), 0), "setpriority": ((141, 140), 1), "ioprio_set": ((251, 30), 1)}
PRLIMIT, CLONE, CLONE3, FCNTL, IOCTL = (302, 261), (56, 220), (435, 435), (72, 25), (16, 29)
KILL, TKILL, TGKILL = (62, 129), (200, 130), (234, 131)
SIGNALS = {"pidfd_send_signal": (424, 424), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240)}
LOCAL = 1  # AF_UNIX
PAIR, STREAM, PACKETS = (53, 199), 1, 5  # socketpair: datagrams may be sent to any path
NEW_NAMESPACES_OR_PARENT = 0x7E020000 | 0x8000
FILE_OWNER = (8, 15)  # F_SETOWN, F_SETOWN_EX: who is sent SIGIO, by default to death
FILE_OWNER_BY_IOCTL = (0x8901, 0x8902)


def program(machine: str, pid: int | None, cuda: bool = False) -> list[tuple[int, int, int, int]]:
    """The filter for a machine; with a `pid`, signals reach that process and its threads alone (its own group by 0); on
    `cuda` the driver may make memory that belongs to no process, and meet other processes at local addresses. Raises
    KeyError where the machine is not known."""
    architecture, column = ARCHITECTURES[machine]
    code = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, REFUSED),
            (_LOAD, 0, 0, _NUMBER)]
    if machine == "x86_64":  # calls of the x32 interface have other numbers
        code += [(_NOT_BELOW, 0, 1, 0x40000000), (_RETURN, 0, 0, REFUSED)]

    def answer(numbers: tuple[int, int], what: int) -> None:
        code.extend([(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, what)])

    def inspect(numbers: tuple[int, int], tests: list[tuple[int, int, int, int]]) -> None:
        """`tests` end with a return; the number is loaded again for what comes after them."""
        code.append((_EQUAL, 0, len(tests), numbers[column]))
        code.extend(tests)

    def low(place: int) -> tuple[int, int, int, int]:
        return _LOAD, 0, 0, _ARGUMENTS + 8 * place  # little-endian on both

    driver = ("socket", "connect", "bind", "listen") if cuda else ()
    for table in (SOCKETS, OTHERS, PLACES, {} if cuda else KEPT):
        for name, numbers in table.items():
            if name not in driver:
                answer(numbers, REFUSED)
    for numbers in GROUPS.values():
        answer(numbers, IGNORED)
    answer(CLONE3, ABSENT)  # its flags lie in memory: the C library falls back to clone
    refuse, allow = (_RETURN, 0, 0, REFUSED), (_RETURN, 0, 0, ALLOW)
    for numbers, place in OWN.values():
        inspect(numbers, [low(place), (_EQUAL, 0, 1, 0), allow, refuse])
    # Limits of other processes may be asked for by nobody; own ones may be set.
    inspect(PRLIMIT, [low(0), (_EQUAL, 0, 1, 0), allow, refuse])
    inspect(PAIR, [low(1), (_AND, 0, 0, 0xF), (_EQUAL, 1, 0, STREAM), (_EQUAL, 0, 1, PACKETS), allow, refuse])
    if cuda:  # the driver listens at a local address, and connects to that of the process whose memory it opens
        inspect(SOCKETS["socket"], [low(0), (_EQUAL, 0, 5, LOCAL), low(1), (_AND, 0, 0, 0xF), (_EQUAL, 1, 0, STREAM),
                                    (_EQUAL, 0, 1, PACKETS), allow, refuse])
    inspect(CLONE, [low(0), (_ANY_BIT, 0, 1, NEW_NAMESPACES_OR_PARENT), refuse, allow])
    inspect(FCNTL, [low(1), (_EQUAL, 1, 0, FILE_OWNER[0]), (_EQUAL, 0, 1, FILE_OWNER[1]), refuse, allow])
    inspect(IOCTL, [low(1), (_EQUAL, 1, 0, FILE_OWNER_BY_IOCTL[0]), (_EQUAL, 0, 1, FILE_OWNER_BY_IOCTL[1]), refuse,
                    allow])
    if pid is not None:
        for numbers in SIGNALS.values():
            answer(numbers, REFUSED)
        answer(TKILL, REFUSED)
        for numbers in (KILL, TGKILL):
            inspect(numbers, [low(0), (_EQUAL, 1, 0, 0), (_EQUAL, 0, 1, pid), allow, refuse])
    code.append(allow)
    return code


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def install(only_itself: bool, cuda: bool = False) -> bool:
    """Filters this process and all that it starts. `only_itself`: it may send signals to no other process. False where
    the machine or its kernel has no such filter."""
    machine = os.uname().machine
    if machine not in ARCHITECTURES:
        return False
    code = program(machine, os.getpid() if only_itself else None, cuda)
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
    filled = _Program(len(code), ctypes.addressof(text))
    return libc.prctl(22, 2, ctypes.byref(filled), 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
