"""A daemon is found again by pid and start time, and ended with everything in its session."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from wavestitch.contracts.errors import BadInput
from wavestitch.local.process import Daemon, running_daemon, session_members, start_daemon, stop_daemon, wait_until

STUBBORN_FAMILY = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setpgid(0, 0)
print("up", flush=True)
time.sleep(600)
"""


def start(tmp_path: Path, code: str) -> Daemon:
    argv = [sys.executable, "-c", code]
    return start_daemon(argv=argv, env=dict(os.environ), pid_file=tmp_path / "d.pid", log=tmp_path / "d.log")


def test_a_recycled_pid_is_not_taken_for_ours_and_not_killed(tmp_path: Path) -> None:
    daemon = start(tmp_path, "import time; time.sleep(600)")
    try:
        foreign = tmp_path / "foreign.pid"
        foreign.write_text(json.dumps({"pid": daemon.pid, "started": daemon.started - 1, "log": daemon.log}))
        assert running_daemon(foreign) is None
        assert stop_daemon(foreign, with_signal=signal.SIGKILL, deadline_s=5) is False
        assert running_daemon(tmp_path / "d.pid") == daemon
    finally:
        assert stop_daemon(tmp_path / "d.pid", with_signal=signal.SIGTERM, deadline_s=5) is True
    assert not daemon.alive()


def test_stopping_leaves_nobody_of_the_session_behind(tmp_path: Path) -> None:
    daemon = start(tmp_path, STUBBORN_FAMILY)
    assert wait_until(lambda: daemon.last_lines().count("up") == 2, seconds=20)
    assert len(session_members(daemon.pid)) == 2
    assert stop_daemon(tmp_path / "d.pid", with_signal=signal.SIGTERM, deadline_s=0.2) is True
    assert session_members(daemon.pid) == []


def test_a_daemon_can_be_interrupted_although_its_starter_ignores_interrupts(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        daemon = start(tmp_path, "import time; print('up', flush=True); time.sleep(600)")
    finally:
        signal.signal(signal.SIGINT, before)
    assert wait_until(lambda: "up" in daemon.last_lines(), seconds=20)
    assert stop_daemon(tmp_path / "d.pid", with_signal=signal.SIGINT, deadline_s=10) is True
    assert "KeyboardInterrupt" in daemon.last_lines()


def test_what_cannot_be_started_or_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nothing-here"):
        start_daemon(argv=["/nothing-here"], env={}, pid_file=tmp_path / "d.pid", log=tmp_path / "d.log")
    (tmp_path / "d.pid").write_text("17")
    with pytest.raises(BadInput, match=r"d\.pid"):
        running_daemon(tmp_path / "d.pid")


FIRST_THREAD_GONE = """
import ctypes, platform, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
print("up", flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)  # exit, of this thread only
"""


def test_a_process_lives_as_long_as_any_thread_of_it_holds_its_ports(tmp_path: Path) -> None:
    daemon = start(tmp_path, FIRST_THREAD_GONE)
    stat = Path(f"/proc/{daemon.pid}/stat")
    assert wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", seconds=20)
    assert daemon.alive()
    assert stop_daemon(tmp_path / "d.pid", with_signal=signal.SIGKILL, deadline_s=10) is True
    assert not daemon.alive()
