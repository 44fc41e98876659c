"""Runs a function in a new process and watches its calls on files: counts them, fails one, halves one, kills at one.

What a call is about is said in words that hold for every run (`Where`), so that a call seen in one run is found again
in the next. Only files in the watched folder count; the network and the interpreter's own files are let through.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import select
import signal
import socket
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from tests.clean_processes import clean_processes
from tests.faults.local_faults_batch import MARK
from tests.faults.local_faults_syscalls import (
    NUMBERS,
    Call,
    answer,
    borrow_descriptor,
    let_go,
    next_call,
    read_memory,
    stop_calls,
)

T = TypeVar("T")

_PATH_FIRST = ("open", "stat", "lstat", "access", "rename", "mkdir", "rmdir", "link", "unlink", "chmod", "statfs")
_FOLDER_FIRST = (
    *("openat", "mkdirat", "newfstatat", "unlinkat", "renameat", "linkat", "faccessat", "renameat2", "statx"),
    "faccessat2",
)
_WATCHED = tuple(NUMBERS)
_O_ACCMODE, _O_CREAT, _O_DIRECTORY = os.O_ACCMODE, os.O_CREAT, os.O_DIRECTORY
_HOLD_SECONDS = 150
_HERE = -100  # AT_FDCWD
_VARYING = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8,}|[0-9]+")


class Where(NamedTuple):
    """Which call: in which step, of which name, on which kind of file (its varying digits are stars)."""

    step: str
    call: str
    file: str


class How(StrEnum):
    """What becomes of the call."""

    FAIL = "fails"
    SHORT = "takes half"
    KILL = "is the last"
    HOLD = "waits"


@dataclass(frozen=True, slots=True)
class Fault:
    """The `nth` (from 0) call at `where`, or the `nth` of all if that is None; `error`: errno, where it fails.

    `release`: where it waits (at the first call from the `nth` on that is not on the catalog), until this is set.
    """

    where: Where | None
    nth: int
    how: How = How.FAIL
    error: int = 0
    release: threading.Event | None = None


@dataclass
class Watched:
    """What a watched run came to. `calls`: how many at each place; `order`: all of them, as they came; `fired`: where
    the fault was put.

    `result`: what the function returned. `exit_code`: negative for a signal.
    """

    calls: Counter[Where] = field(default_factory=Counter)
    order: list[Where] = field(default_factory=list)
    fired: Where | None = None
    result: Any = None
    exit_code: int = 0


def run_watched(
    work: Callable[..., Any],
    arguments: Sequence[Any],
    *,
    folder: Path,
    fault: Fault | None = None,
    see: Callable[[Call], None] = lambda _: None,
    seconds: float = 90,
) -> Watched:
    """`work(*arguments)` in a process of its own, with the fault on its calls in `folder`. Raises what it raised.

    `see` is shown each call before it is carried out. It must end within `seconds`.
    """
    mine, theirs = socket.socketpair()
    receive, send = multiprocessing.Pipe(duplex=False)
    child = clean_processes().Process(target=_run_stopped, args=(theirs, send, work, arguments))
    child.start()
    theirs.close()
    send.close()
    try:
        watched = _watch(child, mine, _Judge(folder, fault, see), seconds)
        child.join(seconds)
    finally:
        mine.close()
        child.kill()
        child.join()
    watched.exit_code = child.exitcode or 0
    try:
        watched.result, error = receive.recv()
    except EOFError:
        if watched.exit_code != -signal.SIGKILL:
            raise RuntimeError(f"the watched process ended with {watched.exit_code} and said nothing") from None
    else:
        if error:
            raise RuntimeError(f"in the watched process:\n{error}")
    finally:
        receive.close()
    return watched


def run_alone(work: Callable[..., T], arguments: Sequence[Any], *, seconds: float = 90) -> T:
    """`work(*arguments)` in a clean process of its own, unwatched; raises what it raised."""
    receive, send = multiprocessing.Pipe(duplex=False)
    child = clean_processes().Process(target=_run_and_send, args=(send, work, arguments))
    child.start()
    send.close()
    try:
        if not receive.poll(seconds):
            raise RuntimeError(f"{work} was not done after {seconds} s")
        result, error = receive.recv()
    finally:
        child.kill()
        child.join()
        receive.close()
    if error:
        raise RuntimeError(f"in the process of its own:\n{error}")
    return cast(T, result)


def _run_stopped(sock: socket.socket, send: Any, work: Callable[..., Any], arguments: Sequence[Any]) -> None:
    listener = stop_calls(_WATCHED)
    socket.send_fds(sock, [b"x"], [listener])
    os.close(listener)
    sock.close()
    _run_and_send(send, work, arguments)


def _run_and_send(send: Any, work: Callable[..., Any], arguments: Sequence[Any]) -> None:
    try:
        send.send((work(*arguments), ""))
    except BaseException:
        send.send((None, traceback.format_exc()))
    os._exit(0)  # no client's or interpreter's end may be waited for


def _watch(child: BaseProcess, sock: socket.socket, judge: _Judge, seconds: float) -> Watched:
    _, (listener,), _, _ = socket.recv_fds(sock, 1, 1)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    try:
        while events := poll.poll(round(seconds * 1000)):
            if events[0][1] & select.POLLHUP:
                return judge.seen
            call = next_call(listener)
            if call is not None:
                judge.decide(listener, call, child)
    finally:
        os.close(listener)
    raise RuntimeError(f"the watched process made no call for {seconds} s: it hangs")


class _Judge:
    """Says of each call where it is, and what becomes of it."""

    def __init__(self, folder: Path, fault: Fault | None, see: Callable[[Call], None]) -> None:
        self.seen = Watched()
        self._see = see
        self._folder = str(folder) + "/"
        self._fault = fault
        self._step = ""
        self._total = 0

    def decide(self, listener: int, call: Call, child: BaseProcess) -> None:
        self._see(call)
        where = self._where(call)
        if where is None:
            let_go(listener, call)
            return
        fault = self._fault
        if not self._hits(fault, where) or fault is None:
            let_go(listener, call)
            return
        self.seen.fired = where
        if fault.how is How.KILL:
            child.kill()
        elif fault.how is How.HOLD and fault.release is not None:
            fault.release.wait(_HOLD_SECONDS)
            let_go(listener, call)
        elif fault.how is How.SHORT:
            answer(listener, call, value=_write_half(call, child.pid or 0))
        else:
            answer(listener, call, error=fault.error)

    def _hits(self, fault: Fault | None, where: Where) -> bool:
        """Whether the fault is put at this call, which is counted."""
        count, total = self.seen.calls[where], self._total
        self.seen.calls[where] += 1
        self.seen.order.append(where)
        self._total += 1
        if fault is None:
            return False
        if fault.how is How.HOLD:
            # A process that stands still with the catalog's lock holds up everybody, rightly: not what is looked for.
            if self.seen.fired is not None or where.file.startswith("catalog.db"):
                return False
            return total >= fault.nth
        return fault.nth == (total if fault.where is None else count) and fault.where in (None, where)

    def _where(self, call: Call) -> Where | None:
        name, path = call.name, path_of(call)
        if not path.startswith(self._folder):
            return None
        path = path.removeprefix(self._folder)
        if path.startswith(MARK):
            self._step = path.removeprefix(MARK)
            return None
        if name in ("open", "openat"):
            flags = call.arguments[1 + (name == "openat")]
            kind = "create" if flags & _O_CREAT else "write" if flags & _O_ACCMODE else "read"
            name = "open folder" if flags & _O_DIRECTORY else f"open to {kind}"
        return Where(self._step, name, _VARYING.sub("*", path))


def path_of(call: Call) -> str:
    """The file that a call is about; empty where it is about none."""
    try:
        if call.name in _PATH_FIRST:
            return _text(call.thread, call.arguments[0])
        if call.name in _FOLDER_FIRST:
            return _below(call, 0)
        descriptor = signed(call.arguments[4 if call.name == "mmap" else 0])
        return os.readlink(f"/proc/{call.thread}/fd/{descriptor}") if descriptor >= 0 else ""
    except OSError:
        return ""  # a descriptor that is not open, or a process that is gone


def second_path_of(call: Call) -> str:
    """The name that a link or a renaming gives."""
    return _text(call.thread, call.arguments[1]) if call.name in _PATH_FIRST else _below(call, 2)


def _below(call: Call, nth: int) -> str:
    """The path of a call that says it below a folder, in its arguments from the `nth` on."""
    path = _text(call.thread, call.arguments[nth + 1])
    if path.startswith("/"):
        return path
    folder = signed(call.arguments[nth])
    base = f"/proc/{call.thread}/" + ("cwd" if folder == _HERE else f"fd/{folder}")
    return os.path.join(os.readlink(base), path) if path else os.readlink(base)


def signed(value: int) -> int:
    """A descriptor as the kernel takes it: the lower 32 bits, signed."""
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def _text(thread: int, address: int) -> str:
    found = read_memory(thread, address, min(4096, 4096 - address % 4096 or 4096))
    if b"\0" not in found:
        found += read_memory(thread, address + len(found), 4096)
    return os.fsdecode(found.split(b"\0", 1)[0])


def _write_half(call: Call, process: int) -> int:
    """Write the first half of what was to be written, as a disk that is filling up does."""
    mine = borrow_descriptor(process, signed(call.arguments[0]))
    try:
        data = read_memory(call.thread, call.arguments[1], max(1, call.arguments[2] // 2))
        return os.pwrite(mine, data, call.arguments[3]) if call.name == "pwrite" else os.write(mine, data)
    finally:
        os.close(mine)
