"""Old runs go from a real Airflow's database by its own command, those under way stay; nothing of ours asks for any."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from tests.conftest import ROOT
from tests.stack.airflow_home import make_database, prepare_airflow, write_settings
from wavestitch.flows.old_runs_process import MODULE, let_go
from wavestitch.local.stack import KEEP_RUNS, write_config
from wavestitch.settings import load_settings

prepare_airflow()

NOW = datetime.now(UTC)
AGES = {"old": 40, "older": 50, "young": 3}
"""Days ago."""


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    make_database()
    from airflow.utils.session import create_session  # noqa: PLC0415

    with create_session() as found:
        yield found


def add_run(session: Any, dag_id: str, name: str, state: str) -> None:
    """With a task, and what it said."""
    from airflow.models.dagrun import DagRun  # noqa: PLC0415
    from airflow.models.log import Log  # noqa: PLC0415
    from airflow.utils.types import DagRunTriggeredByType, DagRunType  # noqa: PLC0415

    began = NOW - timedelta(days=AGES[name])
    run = DagRun(
        dag_id=dag_id,
        run_id=name,
        run_type=DagRunType.MANUAL,
        queued_at=began,
        logical_date=began,
        run_after=began,
        start_date=began,
        state=state,
        triggered_by=DagRunTriggeredByType.TEST,
    )
    said = Log("ran", None)
    said.dttm, said.dag_id, said.run_id = began, dag_id, name
    session.add_all([run, said])
    session.commit()


def rows(session: Any, table: str, dag_id: str) -> set[str]:
    session.expire_all()
    session.commit()
    return set(session.scalars(text(f"SELECT run_id FROM {table} WHERE dag_id = :dag"), {"dag": dag_id}))


def test_rows_and_logs_of_old_runs_go_and_those_of_runs_under_way_and_of_young_ones_stay(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for dag_id, state in (("done", "success"), ("waits", "running")):
        add_run(session, dag_id, "older", "failed")
        add_run(session, dag_id, "old", state)
        add_run(session, dag_id, "young", "success")
    (tmp_path / "streams").mkdir()
    config = write_settings(tmp_path, streams=tmp_path / "streams")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "old.log").touch()
    os.utime(logs / "old.log", (0, 0))
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(config))
    monkeypatch.setenv("AIRFLOW__LOGGING__BASE_LOG_FOLDER", str(logs))

    def run() -> str:
        let_go(NOW)
        return capsys.readouterr().out

    assert run() == ""  # an Airflow may be somebody else's
    assert (logs / "old.log").exists()
    monkeypatch.setenv("WAVESTITCH_AIRFLOW__KEEP_RUNS", "14 d")
    assert "1 files of logs, 0 bytes, went" in run()
    assert not (logs / "old.log").exists()
    for table in ("dag_run", "log"):
        assert rows(session, table, "done") == {"young"}
        assert rows(session, table, "waits") == {"older", "old", "young"}
    session.execute(text("UPDATE dag_run SET state = 'failed' WHERE dag_id = 'waits'"))
    session.commit()
    assert "0 files of logs" in run()  # without one that is under way Airflow has to succeed in every table
    assert rows(session, "dag_run", "waits") == {"young"}


def test_it_ends_with_the_scheduler_that_it_is_for() -> None:
    starter = (
        f"import subprocess, sys, os; subprocess.Popen([sys.executable, '-m', '{MODULE}', '600', str(os.getpid())])"
    )
    # Its output is a pipe, which is closed as the last of both ends: long before what it would wait for.
    subprocess.run([sys.executable, "-c", starter], capture_output=True, timeout=120, check=True)


def test_the_scheduler_alone_starts_it_and_only_where_the_settings_say_how_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.jobs.job import Job  # noqa: PLC0415
    from airflow.listeners.listener import get_listener_manager  # noqa: PLC0415

    from wavestitch.flows import old_runs  # noqa: PLC0415
    from wavestitch.ui.airflow_plugin import WavestitchPlugin  # noqa: PLC0415

    assert old_runs in WavestitchPlugin.listeners
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(tmp_path, streams=tmp_path)))
    hooks = get_listener_manager()
    hooks.clear()
    hooks.add_listener(old_runs)
    try:
        monkeypatch.setattr(sys, "argv", ["airflow", "scheduler", "--skip-serve-logs"])
        Job()
        assert old_runs._started == []
        monkeypatch.setenv("WAVESTITCH_AIRFLOW__KEEP_RUNS", "14 d")
        monkeypatch.setattr(sys, "argv", ["airflow", "triggerer"])
        Job()
        assert old_runs._started == []
        monkeypatch.setattr(sys, "argv", ["airflow", "scheduler", "--skip-serve-logs"])
        job = Job()
        (child,) = old_runs._started
        assert child.poll() is None
        hooks.hook.before_stopping(component=job)
        assert child.poll() is not None
    finally:
        hooks.clear()
        get_listener_manager.cache_clear()
        old_runs.before_stopping(Job())


def test_every_airflow_that_is_ours_says_how_long_runs_stay(tmp_path: Path) -> None:
    (tmp_path / "streams").mkdir()
    ours = write_config(tmp_path, bootstrap="h:1", java_home=tmp_path, streams=tmp_path / "streams")
    files = [ours, ROOT / "docker/config/wavestitch.toml", ROOT / "kubernetes/spark-submit/wavestitch.toml"]
    assert {f'keep_runs = "{KEEP_RUNS}"' in path.read_text() for path in files} == {True}
    assert load_settings({"WAVESTITCH_CONFIG": str(ours)}).airflow.keep_runs == 14 * 86400


READERS = {
    "wavestitch/ui/run_facts.py",  # the page of one run: there is none where the run is gone
    "wavestitch/ui/failed_runs.py",  # which run of a stream failed last: none, where it is gone
    "wavestitch/flows/old_runs_process.py",
}


def test_rows_of_other_runs_are_asked_by_pages_alone() -> None:
    """Weights, notes, approvals and freshness are of the landing, the tables, and what the same run said."""
    found, pulls = set(), []
    for path in (file for folder in ("wavestitch", "dags", "plugins") for file in (ROOT / folder).rglob("*.py")):
        tree = ast.parse(path.read_text())
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in OF_RUNS and name not in TYPES_ALONE:
                found.add(name)
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "xcom_pull":
                pulls += [(name, word.arg) for word in node.keywords]
    assert found == READERS
    assert {arg for _, arg in pulls} <= {"task_ids", "key", "map_indexes"}, "an XCom of another run may be gone"


OF_RUNS = {f"airflow.models.{name}" for name in ("dagrun", "taskinstance", "xcom", "log", "asset", "taskreschedule")}
TYPES_ALONE = {"wavestitch/flows/priorities.py"}
