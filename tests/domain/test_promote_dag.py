"""The DAG `promote_ecg`, carried out in this process over real tables and a log in memory: compared, approved, done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_apps.in_process import stitch_here
from tests.builders.published_bytes import published_bytes
from tests.builders.sending import send_chunk
from tests.deployment_rig import STREAM, DeploymentRig
from tests.hostile.landed_deployment import (
    FakeDeployment,
    declare,
    make_landed_deployment,
    reader_of,
    run_landed_batch,
)
from tests.stack.airflow_home import load_dags, make_database, prepare_airflow
from tests.stack.answering import answer_at_once
from tests.stack.dag_lab import Run, clear_here, run_here, set_in_flows
from wavestitch.batch.comparing_edges import VerifyingEdges
from wavestitch.batch.deployment_edges import DeploymentEdges

prepare_airflow()
T = 1_767_614_400_000
YAML = "limits: {max_clock_skew: 36500 d}\nreading: {min_slice: 4}\n"
FEWER = "limits: {max_clock_skew: 36500 d, max_chunks: 1}\nreading: {min_slice: 4}\n"


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeploymentRig:
    made = make_landed_deployment(tmp_path / "deployment", stream_yaml=YAML, partitions=1)
    fake = made.deployment
    assert isinstance(fake, FakeDeployment)
    for name, count in (("long", 2), ("short", 1)):
        for seq in range(count):
            send_chunk(fake.memory, name, seq, b"\1\0", at_ms=T, start_ms=T, count=count)
    run_landed_batch(fake)
    monkeypatch.setenv("WAVESTITCH_CONFIG", str(made.folder / "wavestitch.toml"))
    reads: dict[str, Any] = {"read": reader_of(fake)}
    set_in_flows(monkeypatch, "edges_of", lambda stream: DeploymentEdges(fake, stream, submit=stitch_here, **reads))
    set_in_flows(monkeypatch, "comparing_edges_of", lambda stream: VerifyingEdges(fake, stream, **reads))
    make_database()
    return made


def promote(says: str, **form: Any) -> Run:
    """A run that is answered at once: nobody would answer in this process."""
    dag = load_dags().dags[f"promote_{STREAM}"]
    for task in dag.tasks:
        task.retries = 0
    if says:
        answer_at_once(dag.get_task("approve"), says, who="bob")
    return run_here(dag, {"why": "one is enough", **form})


def test_what_was_compared_is_approved_of_and_published_in_the_place_of_what_was_there(whole: DeploymentRig) -> None:
    tables = whole.deployment.tables(STREAM)
    nothing = promote("Approve", offsets="0:0-3")
    assert nothing.states()["preview"] == "failed", "the definition gives what is there already"
    before = tables.head()
    declare(whole, FEWER)
    done = promote("Approve", offsets="0:0-3")
    ends = set(done.states().values())
    assert ends == {"success"}, done.states()
    assert "0 replaced, 0 newly published, 1 taken out" in done.xcoms["preview.shown"]
    assert [i for i, _ in published_bytes(tables)] == ["short"]
    head = tables.head()
    assert before is not None
    assert head is not None
    assert head.positions == before.positions
    assert head.note.startswith("promote by dag_test, approved by bob: one is enough (")
    assert head.held is not None
    assert dict(head.held.counts) == {"too_large": 2}


def test_an_approval_is_of_the_preview_that_was_shown_and_of_none_that_is_made_after_it(whole: DeploymentRig) -> None:
    """Whoever clears the tasks around the question, and not the question, is told to clear that, too."""
    tables = whole.deployment.tables(STREAM)
    dag = load_dags().dags[f"rewind_{STREAM}"]
    answer_at_once(dag.get_task("approve"), "Approve", who="bob")
    done = run_here(dag, {"to": "shift:-1", "why": "again"})
    assert set(done.states().values()) == {"success"}
    head = tables.head()
    again = clear_here(dag, done, only=("preview", "apply"))
    assert (again.states()["preview"], again.states()["apply"]) == ("success", "failed")
    assert tables.head() == head
    asked = clear_here(dag, again, only=("approve", "apply"))
    assert asked.states()["apply"] == "success"
