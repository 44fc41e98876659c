"""A background process that outlives its starter, found again by a pid file and ended exactly.

Decides whether the process in a pid file is still the one that was started: by pid *and* start time, because pids are
used again. Never signals a process that does not match both.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.modes import OWN_FOLDER, make_folder

_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process in a session of its own; `started` is in clock ticks since boot (field 22 of /proc/PID/stat)."""

    pid: int
    started: int
    log: str

    def alive(self) -> bool:
        return start_time(self.pid) == self.started

    def last_lines(self, count: int = 15) -> str:
        """The end of its log, for messages."""
        try:
            text = Path(self.log).read_text(errors="replace")
        except FileNotFoundError:
            return "(no log was written)"
        return "\n".join(text.splitlines()[-count:]) or "(the log is empty)"


def start_daemon(*, argv: Sequence[str], env: Mapping[str, str], pid_file: Path, log: Path) -> Daemon:
    """Start `argv` in its own session with its output in `log`; the pid file names it from then on."""
    make_folder(pid_file.parent, OWN_FOLDER)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        pid = os.posix_spawn(
            argv[0],
            list(argv),
            dict(env),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, out, 1),
                (os.POSIX_SPAWN_DUP2, out, 2),
            ],
            setsid=True,
            # A starter that was itself started with `&` ignores SIGINT, and its children would inherit that.
            setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP],
        )
    except OSError as error:
        raise BadInput(f"cannot run {argv[0]}: {error.strerror}; is it installed and executable?") from error
    finally:
        os.close(out)
    # A process that is gone this early is a zombie until it is waited for, so its start time can still be read.
    daemon = Daemon(pid=pid, started=_start_ticks(pid), log=str(log))
    write_whole(pid_file, json.dumps(asdict(daemon)))
    return daemon


def running_daemon(pid_file: Path) -> Daemon | None:
    """The process that the pid file names, if it is still that process."""
    try:
        daemon = Daemon(**json.loads(pid_file.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise BadInput(
            f"{pid_file} is not a pid file of ours ({error}); look for the process yourself, then delete it"
        ) from error
    return daemon if daemon.alive() else None


def stop_daemon(pid_file: Path, *, with_signal: signal.Signals, deadline_s: float) -> bool:
    """End the process and, after `deadline_s` seconds, its whole session. False if it was not running.

    Returns when no process of the session is left: what a killed leader leaves behind is killed, too.
    """
    daemon = running_daemon(pid_file)
    if daemon is None:
        pid_file.unlink(missing_ok=True)
        return False
    os.kill(daemon.pid, with_signal)
    if not wait_until(lambda: not daemon.alive(), seconds=deadline_s):
        for pid in session_members(daemon.pid):
            _kill(pid)
    # The leader's number is not given to a new process while a member of its session lives.
    if not wait_until(lambda: not session_members(daemon.pid), seconds=2):
        for pid in session_members(daemon.pid):
            _kill(pid)
    if not wait_until(lambda: not daemon.alive() and not session_members(daemon.pid), seconds=10):
        raise Transient(
            f"process {daemon.pid} ({pid_file}) did not go although it was killed; try again", pid=daemon.pid
        )
    pid_file.unlink(missing_ok=True)
    return True


def session_members(session: int) -> list[int]:
    """The living processes of a session. Its leader's pid is the session's number."""
    members = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == session and not _is_dead(psutil.Process(pid)):
                members.append(pid)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue  # it has ended meanwhile
    return members


def listens(session: int, port: int) -> bool:
    """Whether it is a process of this session that listens on the TCP port."""
    for pid in session_members(session):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            found = psutil.Process(pid).net_connections(kind="tcp")
            if any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in found):
                return True
    return False


def wait_until(condition: Callable[[], bool], *, seconds: float, every: float = _POLL_SECONDS) -> bool:
    """Whether the condition came true within this time. `every`: so many seconds are between two looks."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def start_time(pid: int) -> int | None:
    """Clock ticks from boot to the start of this process; None if it is gone, or dead and not yet waited for."""
    _reap(pid)
    try:
        return None if _is_dead(psutil.Process(pid)) else _start_ticks(pid)
    except (FileNotFoundError, ProcessLookupError, psutil.NoSuchProcess):
        return None


def _start_ticks(pid: int) -> int:
    # psutil gives it as a time of the clock, which is set meanwhile: to another process it would be another one.
    text = Path(f"/proc/{pid}/stat").read_text()
    return int(text[text.rindex(")") + 2 :].split()[19])  # the name itself may hold spaces and parentheses


def _is_dead(process: psutil.Process) -> bool:
    # A killed process looks dead as soon as its first thread is; the others keep its ports and files a moment longer.
    with process.oneshot():
        return process.status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD} and process.num_threads() <= 1


def _reap(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # somebody else's child: theirs to wait for


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def write_whole(path: Path, text: str) -> None:
    """Replace a small file at once: a reader sees the old one or the new one."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    scratch.write_text(text)
    scratch.replace(path)
