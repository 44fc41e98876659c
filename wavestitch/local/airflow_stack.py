"""A whole Airflow on the loopback address, with SQLite, started and stopped as one daemon.

Decides where it listens, who may log in, and when it is ready: when all its parts have shown life since the start and
our own password is accepted. Whoever else has its port is sent no password. Its folder keeps its history, passwords and
port over a stop and a start.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from wavestitch.contracts.errors import BadInput, Terminal, Transient
from wavestitch.folder_lock import folder_lock
from wavestitch.local.airflow_api import AirflowApi, trusted
from wavestitch.local.airflow_settings import LOCK_SECONDS, USERS, AirflowFolders, airflow_environment
from wavestitch.local.loopback_port import LOOPBACK, free_ports, is_free
from wavestitch.local.process import Daemon, listens, running_daemon, start_daemon, stop_daemon, write_whole

_PORT_ATTEMPTS = 3
_READY_SECONDS = 240.0
STOP_SECONDS = 10.0
"""Its parts need four on an idle machine. The scheduler stays for the tasks at work, which ask for a minute an API that
is gone: what they do can be killed at any time, and no one hears any more how it ended."""
_POLL_SECONDS = 0.3
_ANSWER_SECONDS = 30.0  # beside the time for which Airflow itself may wait for its file

# Airflow's servers for logs listen on all addresses of the machine, and no setting says otherwise. Here every part sees
# the same log folder, so nobody needs them.
_COMMAND = """\
#!/bin/sh
case "$1" in
scheduler | triggerer) exec {python} -m airflow "$@" --skip-serve-logs ;;
esac
exec {python} -m airflow "$@"
"""

_LOCAL_SETTINGS = '''\
"""Written anew at each start of the local stack."""

import sys

__all__ = []

if "scheduler" in sys.argv:
    from wavestitch.batch.preload import preload

    preload()
'''


@dataclass(frozen=True, slots=True)
class Airflow:
    """A running Airflow. `password_file` is JSON, user to password, for every role's user; `user` is the admin."""

    url: str
    pid: int
    user: str
    password_file: Path

    def password(self, user: str | None = None) -> str:
        return str(json.loads(self.password_file.read_text())[user or self.user])

    def listens(self) -> bool:
        """Whether one of its own processes has its port."""
        return listens(self.pid, urlsplit(self.url).port or 0)

    def login(self, user: str | None = None) -> AirflowApi:
        """A client for its REST API, as the admin unless another user is named. Raises `Transient`, and sends nothing,
        where it is not this Airflow that has the port: whoever does would be told the password."""
        if not self.listens():
            raise Transient(
                f"this Airflow (process {self.pid}) does not listen on {self.url}, and no password was sent there: "
                "another process may have taken its port; stop it and start it again"
            )
        return AirflowApi.login(
            url=self.url, user=user or self.user, password=self.password(user), seconds=LOCK_SECONDS + _ANSWER_SECONDS
        )


def start_airflow(
    *,
    folder: Path,
    project_root: Path,
    env: Mapping[str, str],
    say: Callable[[str], None],
    dags_folder: Path | None = None,
    plugins_folder: Path | None = None,
    port: int | None = None,
) -> Airflow:
    """Start the Airflow of this folder, or return the one that runs there already, once it is ready.

    DAGs and plugins are the project's unless other folders are given. `env` is laid over all settings, and tasks see
    it. Raises `BadInput` for a taken `port`, `Terminal` if Airflow ends while it starts, `Transient` if it is not ready
    in time; it is stopped then.
    """
    folder = folder.absolute()
    folders = AirflowFolders(
        home=folder,
        commands=folder / "bin",
        environment_bin=Path(sys.executable).parent,
        dags=dags_folder or project_root.absolute() / "dags",
        plugins=plugins_folder or project_root.absolute() / "plugins",
        passwords=folder / "passwords.json",
    )
    with folder_lock(folder):
        folder.chmod(0o700)
        daemon = running_daemon(_pid_file(folder))
        if daemon is not None:
            airflow = _airflow(folder, daemon)
            if _await_ready(daemon, airflow, since=datetime.fromtimestamp(0, UTC), say=say):
                return airflow
            stop_daemon(_pid_file(folder), with_signal=signal.SIGINT, deadline_s=STOP_SECONDS)
        if port is not None and not is_free(port):
            raise BadInput(f"port {port} on {LOOPBACK} is taken; name another one, or none to get a free one")
        say("starting Airflow; this takes ten seconds to a minute")
        _write_passwords(folders.passwords)
        _write_command(folders.commands)
        _write_local_settings(folder / "config")
        for attempt in range(_PORT_ATTEMPTS):
            chosen = _choose_port(folder, wanted=port, fresh=attempt > 0)
            write_whole(folder / "port", str(chosen))
            since = datetime.now(UTC)
            environment = airflow_environment(inherited=os.environ, folders=folders, port=chosen, extra=env)
            daemon = _launch(folders, environment)
            airflow = _airflow(folder, daemon)
            if _await_ready(daemon, airflow, since=since, say=say):
                say(f"Airflow is ready on {airflow.url}")
                return airflow
            stop_daemon(_pid_file(folder), with_signal=signal.SIGINT, deadline_s=STOP_SECONDS)
            say("another process took Airflow's port first; trying with another one")
    raise Transient(
        f"Airflow lost the race for its port {_PORT_ATTEMPTS} times; try again. Its log: {folder / 'airflow.log'}"
    )


def stop_airflow(folder: Path) -> bool:
    """Stop the Airflow of this folder with every process it started. False if none was running. Its history stays."""
    folder = folder.absolute()
    if not folder.exists():
        return False
    with folder_lock(folder):
        # SIGINT: on SIGTERM `standalone` goes alone, and scheduler and API server stay behind without it.
        return stop_daemon(_pid_file(folder), with_signal=signal.SIGINT, deadline_s=STOP_SECONDS)


def running_airflow(folder: Path) -> Airflow | None:
    """The Airflow of this folder, if one runs; it may still be starting."""
    daemon = running_daemon(_pid_file(folder.absolute()))
    return None if daemon is None else _airflow(folder.absolute(), daemon)


def _pid_file(folder: Path) -> Path:
    return folder / "airflow.pid"


def _airflow(folder: Path, daemon: Daemon) -> Airflow:
    url = f"http://{LOOPBACK}:{(folder / 'port').read_text()}"
    return Airflow(url=url, pid=daemon.pid, user=USERS[0], password_file=folder / "passwords.json")


def _choose_port(folder: Path, *, wanted: int | None, fresh: bool) -> int:
    if wanted is not None:
        return wanted
    remembered = folder / "port"
    if remembered.exists() and not fresh and is_free(int(remembered.read_text())):
        return int(remembered.read_text())
    return free_ports(1)[0]


def _write_passwords(path: Path) -> None:
    if path.exists():
        return
    scratch = path.with_name(".passwords.json")
    scratch.touch(mode=0o600)
    scratch.write_text(json.dumps({user: secrets.token_urlsafe(12) for user in USERS}))
    scratch.replace(path)


def _write_command(folder: Path) -> None:
    """`standalone` starts its parts as `airflow` from PATH: this is the one that it finds."""
    folder.mkdir(exist_ok=True)
    write_whole(folder / "airflow", _COMMAND.format(python=shlex.quote(sys.executable)))
    (folder / "airflow").chmod(0o755)


def _write_local_settings(folder: Path) -> None:
    """Airflow imports this file in each of its processes."""
    folder.mkdir(exist_ok=True)
    write_whole(folder / "airflow_local_settings.py", _LOCAL_SETTINGS)


def _launch(folders: AirflowFolders, environment: Mapping[str, str]) -> Daemon:
    log = folders.home / "airflow.log"
    log.unlink(missing_ok=True)  # an old log must not explain a new death
    argv = [sys.executable, "-m", "airflow", "standalone"]
    return start_daemon(argv=argv, env=environment, pid_file=_pid_file(folders.home), log=log)


def _await_ready(daemon: Daemon, airflow: Airflow, *, since: datetime, say: Callable[[str], None]) -> bool:
    """Whether all parts came up; False if another process had the port. Anything else is raised, with it stopped."""
    pid_file = _pid_file(airflow.password_file.parent)
    deadline = time.monotonic() + _READY_SECONDS
    waiting_for: list[str] = []
    while time.monotonic() < deadline:
        if not daemon.alive():
            stop_daemon(pid_file, with_signal=signal.SIGINT, deadline_s=0)
            raise Terminal(f"Airflow ended while it started; the end of its log {daemon.log}:\n{daemon.last_lines()}")
        if "address already in use" in Path(daemon.log).read_text(errors="replace").lower():
            return False
        missing = _missing_parts(airflow.url, since=since)
        if "API server" not in missing and not airflow.listens():
            return False  # somebody answers, before or instead of ours
        if not missing and _accepts_us(airflow):
            return True
        if missing and missing != waiting_for:
            waiting_for = missing
            say(f"Airflow is starting; still to come: {', '.join(missing)}")
        time.sleep(_POLL_SECONDS)
    stop_daemon(pid_file, with_signal=signal.SIGINT, deadline_s=STOP_SECONDS)
    raise Transient(
        f"Airflow was not ready within {_READY_SECONDS:.0f} s and was stopped; it lacked {', '.join(waiting_for)}. "
        f"Is the machine very busy? The end of its log {daemon.log}:\n{daemon.last_lines(30)}"
    )


def _missing_parts(url: str, *, since: datetime) -> list[str]:
    """The parts that have shown no life since then: right after a kill, the old ones' last heartbeats look alive."""
    try:
        response = httpx.get(f"{url}/api/v2/monitor/health", timeout=5, trust_env=False, verify=trusted())
        health: dict[str, Any] = response.json() if response.is_success else {}
    except (httpx.TransportError, ValueError):
        health = {}
    if not health:
        return ["API server"]
    missing = [] if health.get("metadatabase", {}).get("status") == "healthy" else ["database"]
    if not _takes_tasks(url):
        missing.append("task API")
    for name in ("scheduler", "dag_processor", "triggerer"):
        part = health.get(name) or {}
        beat = part.get(f"latest_{name}_heartbeat")
        if part.get("status") != "healthy" or beat is None or datetime.fromisoformat(beat) < since:
            missing.append(name.replace("_", " "))
    return missing


def _takes_tasks(url: str) -> bool:
    """Whether it answers as it does to tasks. The first such call makes that API, and nothing else is answered
    meanwhile: on a busy machine for longer than a task tries to reach it."""
    try:
        return httpx.get(f"{url}/execution/health", timeout=5, trust_env=False, verify=trusted()).is_success
    except httpx.TransportError:
        return False


def _accepts_us(airflow: Airflow) -> bool:
    """Whether it is up to logins, and our password opens it."""
    try:
        airflow.login().close()
    except (BadInput, Transient):
        return False
    return True
