"""The DAG `decide_ecg`, carried out in this process over real tables, without a broker: previewed, approved, done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_apps.in_process import stitch_here
from tests.builders.published_bytes import published_bytes
from tests.domain.held_rig import ONE, TWO, held_rig
from tests.domain.maintenance_rig import Rig
from tests.stack.airflow_home import load_dags, make_database, prepare_airflow
from tests.stack.answering import answer_at_once
from tests.stack.dag_lab import Run, asset_events, run_here
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.position import HeadKind

prepare_airflow()
STAGES = ("keep_plan", "reassemble", "validate", "publish")


def decide(says: str = "", **form: Any) -> Run:
    """A run that somebody approves of at once: nobody would answer in this process. `says`: of a closed gate."""
    dag = load_dags().dags["decide_ecg"]
    for task in dag.tasks:
        task.retries = 0
    answer_at_once(dag.get_task("approve"), "Approve", who="bob")
    if says:
        answer_at_once(dag.get_task("ask"), says, who="cal", ticked={"why": "two sites were down"})
    return run_here(dag, {"why": "it is right", **form})


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    found = held_rig(tmp_path)
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(tmp_path / "wavestitch.toml"))
    monkeypatch.setattr(Deployment, "log", found.log)
    # In place of a Spark: the application's own tasks.
    spark = "wavestitch.flows.spark_connection.submit_through_connection"
    monkeypatch.setattr(spark, lambda _settings, job, outcome: stitch_here(job, outcome))
    make_database()
    return found


def test_what_is_held_is_redriven_bit_for_bit_without_a_log_and_what_cannot_be_fails_before_anybody_is_asked(
    rig: Rig,
) -> None:
    told = len(asset_events("waveforms_ecg"))  # of other tests of this process

    done = decide(action="redrive", reasons=["parked"])
    asked = {"ask": "skipped", "answered": "success"}
    assert done.states() == dict.fromkeys(("preview", "approve", *STAGES), "success") | asked
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


FEW = "expectations: [{type: expect_table_row_count_to_be_between, kwargs: {max_value: 0}}]\n"


@pytest.mark.parametrize(
    ("says", "ends", "published", "note"),
    [
        ("Accept", "success", {"parked": ONE + TWO}, "; gate: accept; two sites were down (cal)"),
        ("Park", "success", {}, "; gate: park; two sites were down (cal)"),
        ("Stop", "failed", {}, None),
    ],
)
def test_where_its_gate_closes_somebody_is_asked_and_what_they_say_is_done_and_recorded(
    rig: Rig, says: str, ends: str, published: dict[str, bytes], note: str | None
) -> None:
    path = rig.folder / "streams" / "ecg.yaml"
    path.write_text(path.read_text() + FEW)
    before = rig.tables.head()
    done = decide(says, action="redrive", reasons=["parked"])
    assert (done.states()["validate"], done.states()["answered"]) == ("success", ends)
    assert "- **Park**" in done.xcoms["validate.question"]
    assert dict(published_bytes(rig.tables)) == published
    head = rig.tables.head()
    assert head is not None
    if note is None:
        assert (head.kind, head.positions) == (HeadKind.GATE, before.positions)
        assert decide(action="redrive", reasons=["parked"]).states()["preview"] == "failed", "it bars the next one"
    else:
        assert head.note == "redrive by dag_test, approved by bob: it is right" + note
