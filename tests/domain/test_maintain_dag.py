"""The DAG `maintain`, carried out in this process over real tables: a dry run by hand, applied where it was chosen."""

from __future__ import annotations

from typing import Any

import pytest

from tests.domain.maintenance_rig import STREAM, Rig
from tests.stack.airflow_home import load_dags, make_database, prepare_airflow
from tests.stack.dag_lab import Run, run_here
from wavestitch.batch.deployment import Deployment

prepare_airflow()


@pytest.fixture
def rig(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Rig:
    made = Rig(tmp_path)
    config = tmp_path / "wavestitch.toml"
    config.write_text(config.read_text() + "[maintain]\nmost_snapshots = 2\nleast_snapshots = 2\n")
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(config))
    monkeypatch.setattr(Deployment, "log", made.log)  # the tasks' own, in this process; no broker is waited for
    return made


def run(**conf: Any) -> Run:
    make_database()
    return run_here(load_dags().dags["maintain"], conf)


def test_a_dry_run_shows_what_would_go_and_apply_lets_it_go(rig: Rig) -> None:
    for n in range(5):
        rig.publish(f"w{n}")
    shown = run()
    assert shown.state == "success"
    found = shown.xcoms[f"{STREAM}.return_value"]
    assert found["applied"] is False
    assert {a["action"]: a["count"] for a in found["actions"]}["snapshots"] == 6
    assert len(rig.tables.heads()) == 5

    applied = run(mode="apply").xcoms[f"{STREAM}.return_value"]
    assert applied["applied"] is True
    assert applied["after"]["snapshots"] == {"waveforms": 2, "batches": 2}
    assert len(rig.tables.heads()) == 2
    assert rig.ids() == [f"w{n}" for n in range(5)]
