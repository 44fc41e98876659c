"""The DAG `watch`, carried out in this process over real tables: who must know is told, whatever one stream does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.webhook import listening_webhook
from tests.domain.maintenance_rig import Rig
from tests.stack.airflow_home import load_dags, make_database, prepare_airflow
from tests.stack.dag_lab import outcome_of
from wavestitch.batch.deployment import Deployment

prepare_airflow()


def test_each_stream_is_looked_at_and_what_is_wrong_with_one_is_told_and_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path)
    config = tmp_path / "wavestitch.toml"
    rig.publish("w0")
    make_database()
    with listening_webhook() as webhook:
        config.write_text(f'{config.read_text()}[notify]\nwebhook = "{webhook.address}"\n')
        monkeypatch.setenv("WAVESTITCH_CONFIG", str(config))
        monkeypatch.setattr(Deployment, "log", rig.log)
        (tmp_path / "streams" / "bad.yaml").write_text("topic: [")
        runs = [outcome_of(load_dags().dags["watch"].test(logical_date=None)) for _ in range(3)]
    assert [run.state for run in runs] == ["success"] * 3
    bad, good = runs[-1].xcoms["look.return_value"]
    assert "bad.yaml is not YAML" in bad["problem"]
    assert good["headroom"]["alarm"] == "green"
    assert webhook.subjects == ["bad: cannot be looked at, so nobody sees how close retention is"]
