"""Whoever else has the port of our Airflow is sent no password."""

from __future__ import annotations

import http.server
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from wavestitch.contracts.errors import Transient
from wavestitch.local.airflow_api import AirflowApi
from wavestitch.local.airflow_settings import LOCK_SECONDS
from wavestitch.local.airflow_stack import Airflow, _choose_port
from wavestitch.local.loopback_port import LOOPBACK, free_ports
from wavestitch.local.process import listens, start_daemon, stop_daemon, wait_until

QUIET = "import time; time.sleep(600)"
LISTENING = """
import os, socket, sys, time
if os.fork() == 0:
    server = socket.create_server(("127.0.0.1", 0))
    print(server.getsockname()[1], flush=True)
time.sleep(600)
"""


@contextmanager
def daemon_of(folder: Path, code: str) -> Iterator[int]:
    daemon = start_daemon(
        argv=[sys.executable, "-c", code], env=dict(os.environ), pid_file=folder / "d.pid", log=folder / "d.log"
    )
    try:
        yield daemon.pid
    finally:
        stop_daemon(folder / "d.pid", with_signal=signal.SIGTERM, deadline_s=2)


@contextmanager
def stranger(heard: list[str]) -> Iterator[int]:
    """A server that takes every login; its port."""

    class Takes(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(201)
            self.end_headers()
            self.wfile.write(b'{"access_token": "x"}')

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Takes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_port
        finally:
            server.shutdown()


def test_whoever_took_our_airflow_s_port_is_sent_no_password(tmp_path: Path) -> None:
    (tmp_path / "passwords.json").write_text(json.dumps({"admin": "hunter2"}))
    heard: list[str] = []
    with daemon_of(tmp_path, QUIET) as pid, stranger(heard) as port:
        airflow = Airflow(f"http://127.0.0.1:{port}", pid, "admin", tmp_path / "passwords.json")
        assert not airflow.listens()
        with pytest.raises(Transient, match="no password was sent"):
            airflow.login()
    assert heard == []


def test_an_answer_is_waited_for_longer_than_airflow_may_wait_for_its_file(tmp_path: Path) -> None:
    (tmp_path / "passwords.json").write_text(json.dumps({"admin": "hunter2"}))
    with stranger([]) as port:
        ours = Airflow(f"http://{LOOPBACK}:{port}", os.getsid(0), "admin", tmp_path / "passwords.json")
        with ours.login() as api:
            assert api._client.timeout.read is not None
            assert api._client.timeout.read > LOCK_SECONDS


def test_what_was_not_answered_in_time_may_be_done(tmp_path: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as silent, pytest.raises(Transient, match="may be done: look before"):
        AirflowApi.login(url=f"http://{LOOPBACK}:{silent.getsockname()[1]}", user="a", password="b", seconds=0.2)


def test_a_port_is_ours_where_any_process_of_the_session_has_it(tmp_path: Path) -> None:
    with daemon_of(tmp_path, LISTENING) as pid:
        assert wait_until(lambda: (tmp_path / "d.log").read_text().endswith("\n"), seconds=20)
        port = int((tmp_path / "d.log").read_text())
        assert listens(pid, port)
        assert not listens(pid, port + 1)
        assert not listens(os.getsid(0), port)


def test_a_new_start_has_the_port_of_the_one_before_where_nobody_took_it(tmp_path: Path) -> None:
    (tmp_path / "port").write_text(str(free_ports(1)[0]))
    before = int((tmp_path / "port").read_text())
    assert _choose_port(tmp_path, wanted=None, fresh=False) == before
    with stranger([]) as taken:
        (tmp_path / "port").write_text(str(taken))
        assert _choose_port(tmp_path, wanted=None, fresh=False) != taken
