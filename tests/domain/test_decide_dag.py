"""The DAG `decide_ecg`, carried out in this process over real tables, without a broker: previewed, approved, done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders.published_bytes import published_bytes
from tests.domain.held_rig import ONE, TWO, held_rig
from tests.hostile.landed_deployment import stitch_here
from tests.stack.airflow_home import load_dags, make_database, prepare_airflow
from tests.stack.dag_lab import Run, asset_events, run_here
from wavestitch.batch.deployment import Deployment

prepare_airflow()
STAGES = ("keep_plan", "reassemble", "validate", "publish")


def decide(**form: Any) -> Run:
    """A run that somebody approves of at once: nobody would answer in this process."""
    dag = load_dags().dags["decide_ecg"]
    for task in dag.tasks:
        task.retries = 0
    dag.get_task("approve").execute = lambda context: {
        "chosen_options": ["Approve"],
        "params_input": {},
        "responded_by_user": {"id": "bob", "name": "bob"},
    }
    return run_here(dag, {"why": "it is right", **form})


def test_what_is_held_is_redriven_bit_for_bit_without_a_log_and_what_cannot_be_fails_before_anybody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = held_rig(tmp_path)
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(tmp_path / "wavestitch.toml"))
    monkeypatch.setattr(Deployment, "log", rig.log)
    # In place of a Spark: the application's own tasks.
    spark = "wavestitch.flows.spark_connection.submit_through_connection"
    monkeypatch.setattr(spark, lambda _settings, job, outcome: stitch_here(job, outcome))
    make_database()
    told = len(asset_events("waveforms_ecg"))  # of other tests of this process

    done = decide(action="redrive", reasons=["parked"])
    assert done.states() == dict.fromkeys(("preview", "approve", *STAGES), "success")
    assert dict(published_bytes(rig.tables)) == {"parked": ONE + TWO}
    assert "- `parked`" in done.xcoms["preview.shown"]
    head = rig.tables.head()
    assert head is not None
    assert head.note == "redrive by dag_test, approved by bob: it is right"
    assert rig.tables.batches()[0].note == head.note
    (event,) = asset_events("waveforms_ecg")[told:]
    assert event["snapshot_id"] == str(head.snapshot_id)
    assert (event["batch"], event["published"], event["days_left_out"]) == (head.plan_id, 1, 0)
    found = rig.tables.waveforms()
    assert found is not None
    start = found.scan(selected_fields=("start_time",)).to_arrow().column(0)[0].as_py()
    assert event["days"] == [start.date().isoformat()]

    nothing = decide(action="discard", ids=["conflicting"])
    assert nothing.states()["publish"] == "success"
    assert asset_events("waveforms_ecg")[told:] == [event], "what published nothing is no news of what is published"
    assert decide(action="restore", ids=["conflicting"]).states()["publish"] == "success"
    head = rig.tables.head()

    refused = decide(action="pick", ids=["conflicting"])
    assert refused.states()["preview"] == "failed", "a pick names the copy"
    assert refused.states()["keep_plan"] == "upstream_failed"
    assert rig.tables.head() == head
