"""The Spark that stays on this machine, started and stopped as a daemon: on loopback, for who has its token.

Decides its port and its token (a new one at each start), and when it is ready: when the port is its own. One that was
started with other code than ours is started again: it would go on stitching with what it has loaded.
"""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from wavestitch.contracts.errors import BadInput, Terminal, Transient
from wavestitch.contracts.versioned import Versioned
from wavestitch.folder_lock import folder_lock
from wavestitch.local.loopback_port import LOOPBACK, free_ports, is_free
from wavestitch.local.process import (
    Daemon,
    running_daemon,
    session_members,
    start_daemon,
    stop_daemon,
    wait_until,
    write_whole,
)
from wavestitch.modes import OWN_FOLDER, make_folder, open_new

_PORT_ATTEMPTS = 3
_READY_SECONDS = 120.0
_STOP_SECONDS = 20.0


class Program(Protocol):
    """What is run: Spark's Connect server with our settings (`spark_apps.server`)."""

    @property
    def code(self) -> str: ...

    def argv(self, properties: Path) -> list[str]: ...

    def properties(self, *, port: int, token: str) -> str: ...

    def environment(self) -> Mapping[str, str]: ...


@dataclass(frozen=True, slots=True)
class SparkServer:
    """A running one. `remote` and `token`: what the settings say of it."""

    remote: str
    token: str
    pid: int


@dataclass(frozen=True, slots=True)
class _Door:
    port: int
    code: str


_DOOR_FILE = "door.json"
_DOORS = Versioned(_Door, "what is kept of the Spark that stays", "it is started again")


def start_spark_server(*, folder: Path, program: Program, say: Callable[[str], None]) -> SparkServer:
    """Start the Spark of this folder, or return the one that runs there already with the same code.

    Raises `Terminal` if it ends while it starts, `Transient` if it is not ready in time; it is stopped then.
    """
    folder = folder.absolute()
    make_folder(folder, OWN_FOLDER).chmod(OWN_FOLDER)
    with folder_lock(folder):
        daemon, door = running_daemon(_pid_file(folder)), _read_door(folder)
        if daemon is not None:
            if door is not None and door.code == program.code and _await_ready(daemon, door.port):
                return _server(folder, door.port, daemon)
            say("Spark runs other code than what is here now; starting it again")
            _stop(folder)
        for attempt in range(_PORT_ATTEMPTS):
            port = door.port if door is not None and attempt == 0 and is_free(door.port) else free_ports(1)[0]
            daemon = _launch(folder, program, port)
            if _await_ready(daemon, port):
                say(f"Spark is ready on {LOOPBACK}:{port}")
                return _server(folder, port, daemon)
            say("another process took Spark's port first; trying with another one")
    raise Transient(f"Spark lost the race for its port {_PORT_ATTEMPTS} times; try again. Its log: {_log(folder)}")


def stop_spark_server(folder: Path) -> bool:
    """Stop the Spark of this folder with its Python workers. False if none was running."""
    folder = folder.absolute()
    if not folder.exists():
        return False
    with folder_lock(folder):
        return _stop(folder)


def _stop(folder: Path) -> bool:
    return stop_daemon(_pid_file(folder), with_signal=signal.SIGTERM, deadline_s=_STOP_SECONDS)


def _launch(folder: Path, program: Program, port: int) -> Daemon:
    token = secrets.token_urlsafe(32)
    _write_own(folder / "token", token)
    _write_own(folder / "spark.properties", program.properties(port=port, token=token))
    write_whole(folder / _DOOR_FILE, _DOORS.text(_Door(port, program.code)))
    _log(folder).unlink(missing_ok=True)  # an old log must not explain a new death
    return start_daemon(
        argv=program.argv(folder / "spark.properties"),
        env=program.environment(),
        pid_file=_pid_file(folder),
        log=_log(folder),
    )


def _await_ready(daemon: Daemon, port: int) -> bool:
    """Whether it became ready; False if another process had its port. Anything else is raised, with it stopped."""
    pid_file = _pid_file(Path(daemon.log).parent)
    if not wait_until(lambda: not daemon.alive() or _listens(daemon, port), seconds=_READY_SECONDS):
        stop_daemon(pid_file, with_signal=signal.SIGKILL, deadline_s=5)
        raise Transient(
            f"Spark did not open {LOOPBACK}:{port} within {_READY_SECONDS:.0f} s and was stopped; is the machine very "
            f"busy? The end of its log {daemon.log}:\n{daemon.last_lines()}"
        )
    if daemon.alive():
        return True
    stop_daemon(pid_file, with_signal=signal.SIGKILL, deadline_s=5)
    if "Address already in use" in Path(daemon.log).read_text(errors="replace"):
        return False
    raise Terminal(f"Spark ended while it started; the end of its log {daemon.log}:\n{daemon.last_lines()}")


def _listens(daemon: Daemon, port: int) -> bool:
    """Whether the port is *its* port: on a lost one, somebody else's server would get our token."""
    for pid in session_members(daemon.pid):
        try:
            found = psutil.Process(pid).net_connections("tcp")
        except psutil.NoSuchProcess:
            continue
        if any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in found):
            return True
    return False


def _server(folder: Path, port: int, daemon: Daemon) -> SparkServer:
    return SparkServer(f"sc://{LOOPBACK}:{port}", f"file:{folder / 'token'}", daemon.pid)


def _read_door(folder: Path) -> _Door | None:
    """None where nothing is kept, or nothing that can be read: as if it had been started with other code."""
    try:
        return _DOORS.read((folder / _DOOR_FILE).read_bytes())
    except (FileNotFoundError, BadInput):
        return None


def _write_own(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(open_new(path, os.O_WRONLY | os.O_EXCL, 0o600), "w", encoding="latin-1") as file:
        file.write(text)


def _pid_file(folder: Path) -> Path:
    return folder / "spark.pid"


def _log(folder: Path) -> Path:
    return folder / "spark.log"
