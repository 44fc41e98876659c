"""The local Airflow as a whole, once: it starts, runs a DAG, listens on this machine only, and leaves nobody behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.stack.live_airflow import LiveAirflow
from wavestitch.contracts.errors import BadInput
from wavestitch.local.airflow_api import TaskState
from wavestitch.local.airflow_stack import running_airflow, stop_airflow
from wavestitch.local.process import session_members

LOOPBACK_HEX = {"0100007F"}


def listening_addresses(pids: list[int]) -> set[str]:
    """The addresses, in hex, on which any of these processes listens, over IPv4 and IPv6."""
    inodes = set()
    for pid in pids:
        for handle in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                target = os.readlink(handle)
            except (FileNotFoundError, ProcessLookupError):
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
    rows = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return {row[1].rpartition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


def test_a_triggered_dag_runs_and_its_course_and_results_can_be_read(live: LiveAirflow) -> None:
    changes: list[list[TaskState]] = []
    with live.airflow.login() as api:
        api.wait_for_dag("trivial")
        run_id = api.trigger("trivial", {"name": "wave"})
        assert api.wait("trivial", run_id, changes.append, seconds=180) == "success"
        assert [(task.task_id, task.state) for task in changes[-1]] == [("greet", "success"), ("measure", "success")]
        assert len(changes) > 1
        assert api.xcom("trivial", run_id, "greet") == {"hello": "wave", "from": "the starter"}
        assert api.xcom("trivial", run_id, "measure") == 4
        assert [Path(failure.filename).name for failure in api.import_errors()] == ["broken.py"]
        with pytest.raises(BadInput, match="name"):
            api.trigger("trivial", {"name": 5})


def test_a_viewer_may_look_and_not_trigger(live: LiveAirflow) -> None:
    with live.airflow.login("viewer") as api:
        api.wait_for_dag("trivial")
        with pytest.raises(BadInput, match="403"):
            api.trigger("trivial")
    assert live.airflow.password_file.stat().st_mode & 0o077 == 0


def test_every_part_listens_on_this_machine_only(live: LiveAirflow) -> None:
    assert listening_addresses(session_members(live.airflow.pid)) == LOOPBACK_HEX


def test_stopping_leaves_no_process(live: LiveAirflow) -> None:
    """`make test-airflow` starts it again: that takes as long as all tests of this file."""
    airflow = live.airflow
    assert stop_airflow(live.home) is True
    assert session_members(airflow.pid) == []
    assert running_airflow(live.home) is None
    assert stop_airflow(live.home) is False
