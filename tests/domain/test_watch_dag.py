"""The DAG `watch`, and a failure of another one, carried out in this process: whoever must know is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.webhook import listening_webhook
from tests.domain.maintenance_rig import STREAM, Rig
from tests.stack.airflow_home import load_dags, make_database, prepare_airflow, write_settings
from tests.stack.dag_lab import end_runs, queued_runs, run_here
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.settings import load_settings

prepare_airflow()

from airflow.sdk.exceptions import DagRunTriggerException  # noqa: E402 - reads what was prepared


def test_each_stream_is_looked_at_and_what_is_wrong_with_one_is_told_once_and_so_is_a_task_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path)
    config = tmp_path / "wavestitch.toml"
    rig.publish("w0", positions={Partition(0): Position(Offset(0))}, topic_id=rig.log.topic_id)
    make_database()
    with listening_webhook() as webhook:
        config.write_text(f'{config.read_text()}[notify]\nwebhook = "{webhook.address}"\n')
        monkeypatch.setenv("WAVESTITCH_CONFIG", str(config))
        monkeypatch.setattr(Deployment, "log", rig.log)
        (tmp_path / "streams" / "bad.yaml").write_text("topic: [")
        runs = [run_here(load_dags().dags["watch"]) for _ in range(3)]
        failed = [run_here(load_dags().dags["maintain"]) for _ in range(2)]
    assert [run.state for run in runs] == ["success"] * 3
    bad, good = runs[-1].xcoms["look.return_value"]
    assert "bad.yaml is not YAML" in bad["problem"]
    assert good["headroom"]["alarm"] == "green"
    assert [run.states() for run in failed] == [{"bad": "failed", STREAM: "success"}] * 2
    blind, failure = webhook.told
    assert blind["subject"] == "bad: cannot be looked at, so nobody sees how close retention is, nor how late it is"
    assert failure["subject"] == "maintain: bad failed"
    assert "bad.yaml is not YAML" in failure["text"]
    assert not (load_settings().landing / "bad").exists(), "by its folder a stream is known that was planned once"


def test_a_stream_that_is_started_by_its_lag_is_where_something_is_unread_and_no_run_of_it_waits_or_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path)
    rig.publish("w0", positions={Partition(0): Position(Offset(0))}, topic_id=rig.log.topic_id)
    make_database()
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(tmp_path / "wavestitch.toml"))
    monkeypatch.setattr(Deployment, "log", rig.log)
    dag_id = f"ingest_{STREAM}"
    end_runs(dag_id)

    def look() -> tuple[list[str], int]:
        run = run_here(load_dags().dags["watch"])
        assert run.state == "success", run
        return run.xcoms["behind.return_value"], queued_runs(dag_id)

    rig.log.append(Partition(0), timestamp_ms=1, key=None, headers=(), value=b"unread")
    assert look() == ([], 0), "it does not say so"
    definition = tmp_path / "streams" / f"{STREAM}.yaml"
    definition.write_text(f"{definition.read_text()}trigger: lag\n")
    assert look() == ([dag_id], 1)
    assert look() == ([], 1), "the first one waits"


@pytest.mark.parametrize("edited", ["payroll", "ingest_quiet", "ingest_nobody", "ingest_../other", "rewind_hasty"])
def test_whatever_an_xcom_was_changed_to_only_ingests_that_are_started_by_their_lag_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edited: str
) -> None:
    (tmp_path / "streams").mkdir()
    (tmp_path / "streams" / "hasty.yaml").write_text("topic: t\ngroup: g\ntrigger: lag\n")
    (tmp_path / "streams" / "quiet.yaml").write_text("topic: t\ngroup: q\n")
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(write_settings(tmp_path, streams=tmp_path / "streams")))
    start = load_dags().dags["watch"].get_task("start")
    with pytest.raises(BadInput, match="not the ingest of a declared stream that says trigger: lag"):
        start.unmap({"trigger_dag_id": edited}).execute({"ti": None, "logical_date": None})
    with pytest.raises(DagRunTriggerException) as triggered:
        start.unmap({"trigger_dag_id": "ingest_hasty"}).execute({"ti": None, "logical_date": None})
    assert triggered.value.trigger_dag_id == "ingest_hasty"
