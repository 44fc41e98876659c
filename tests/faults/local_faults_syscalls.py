"""Stops chosen system calls of a process, shows them to another one, and lets that one say what they return.

The kernel does it (seccomp's user notification), so that a fault can be put at every call that really is made: by
Python, by Arrow, by SQLite. Decides nothing: which call fails is `local_faults_watch`'s. Linux on x86-64 and arm64.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import struct
from collections.abc import Iterable
from typing import NamedTuple

_PR_SET_NO_NEW_PRIVS = 38
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8
_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
_CONTINUE = 1
_RET_ALLOW, _RET_NOTIFY = 0x7FFF0000, 0x7FC00000
_LOAD, _EQUALS, _RETURN = 0x20, 0x15, 0x06
_SIZE_OF_CALL = 80

# Name: number on x86-64 and on arm64 (which has only the calls that take a folder).
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63),
    "write": (1, 64),
    "open": (2, None),
    "close": (3, 57),
    "stat": (4, None),
    "fstat": (5, 80),
    "lstat": (6, None),
    "mmap": (9, 222),
    "pread": (17, 67),
    "pwrite": (18, 68),
    "readv": (19, 65),
    "writev": (20, 66),
    "access": (21, None),
    "lock": (72, 25),
    "fsync": (74, 82),
    "fdatasync": (75, 83),
    "ftruncate": (77, 46),
    "rename": (82, None),
    "mkdir": (83, None),
    "rmdir": (84, None),
    "link": (86, None),
    "unlink": (87, None),
    "chmod": (90, None),
    "statfs": (137, 43),
    "fstatfs": (138, 44),
    "getdents": (217, 61),
    "openat": (257, 56),
    "mkdirat": (258, 34),
    "newfstatat": (262, 79),
    "unlinkat": (263, 35),
    "renameat": (264, 38),
    "linkat": (265, 37),
    "faccessat": (269, 48),
    "fallocate": (285, 47),
    "renameat2": (316, 276),
    "statx": (332, 291),
    "faccessat2": (439, 439),
}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_PIDFD_GETFD = 438
_ARCH = platform.machine()
NUMBERS = {
    name: number
    for name, both in _NUMBERS.items()
    if (number := both[0 if _ARCH == "x86_64" else 1]) is not None and _ARCH in _SECCOMP
}
NAMES = {number: name for name, number in NUMBERS.items()}


class Call(NamedTuple):
    """One stopped call: `key` answers it, `thread` made it."""

    key: int
    thread: int
    name: str
    arguments: tuple[int, ...]


def stop_calls(names: Iterable[str]) -> int:
    """From now on this thread, and all it starts, stop at these calls; returns the descriptor that shows them."""
    libc = ctypes.CDLL(None, use_errno=True)
    numbers = [NUMBERS[n] for n in names if n in NUMBERS]
    if not numbers:
        raise RuntimeError(f"stopping system calls is known for {sorted(_SECCOMP)}; this machine is {_ARCH}")
    program = struct.pack("HBBI", _LOAD, 0, 0, 0)
    for i, number in enumerate(numbers):
        program += struct.pack("HBBI", _EQUALS, len(numbers) - i, 0, number)
    program += struct.pack("HBBI", _RETURN, 0, 0, _RET_ALLOW) + struct.pack("HBBI", _RETURN, 0, 0, _RET_NOTIFY)
    buffer = ctypes.create_string_buffer(program)
    filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(numbers) + 3, ctypes.addressof(buffer)))
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    found: int = libc.syscall(_SECCOMP[_ARCH], _SET_MODE_FILTER, _NEW_LISTENER, filter_)
    if found < 0:
        why = os.strerror(ctypes.get_errno())
        raise RuntimeError(f"the kernel does not let this process stop its system calls ({why}); Linux 5.5 or newer")
    return found


def next_call(listener: int) -> Call | None:
    """The next stopped call; None where its maker is gone."""
    found = bytearray(_SIZE_OF_CALL)
    try:
        fcntl.ioctl(listener, _RECEIVE, found)
    except (FileNotFoundError, InterruptedError):
        return None
    key, thread, _, number, _, _, *arguments = struct.unpack_from("QIIiIQ6Q", found)
    return Call(key, thread, NAMES[number], tuple(arguments))


def let_go(listener: int, call: Call) -> None:
    """Let the kernel carry the call out."""
    _answer(listener, struct.pack("QqiI", call.key, 0, 0, _CONTINUE))


def answer(listener: int, call: Call, *, value: int = 0, error: int = 0) -> None:
    """Return this instead of carrying the call out."""
    _answer(listener, struct.pack("QqiI", call.key, value, -error, 0))


def _answer(listener: int, words: bytes) -> None:
    try:
        fcntl.ioctl(listener, _ANSWER, bytearray(words))
    except FileNotFoundError:
        return  # its maker died while it waited


def read_memory(thread: int, address: int, size: int) -> bytes:
    """What stands in the memory of a stopped thread; less where its pages end."""
    with open(f"/proc/{thread}/mem", "rb", buffering=0) as memory:
        return os.pread(memory.fileno(), size, address)


def borrow_descriptor(process: int, descriptor: int) -> int:
    """A descriptor of this process for an open file of another one, with the same position in it."""
    handle = os.pidfd_open(process)
    try:
        found: int = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, handle, descriptor, 0)
        if found < 0:
            raise OSError(ctypes.get_errno(), f"cannot borrow descriptor {descriptor} of process {process}")
        return found
    finally:
        os.close(handle)
