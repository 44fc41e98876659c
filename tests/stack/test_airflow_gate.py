"""A closed gate is answered in Airflow: by somebody, with a reason, or after a time-out as the stream says itself."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest

from tests.stack.live_airflow import SECONDS, LiveAirflow, LiveStream, comes_true, recorded
from wavestitch.contracts.errors import BadInput, Transient

START_NS = 1_577_836_800_000_000_000
FEW: dict[str, Any] = {
    "limits": {"max_clock_skew": "36500 d"},
    "expectations": [{"type": "expect_table_row_count_to_be_between", "kwargs": {"max_value": 1}}],
}


@dataclass(frozen=True)
class Asked:
    """The task of a run that asks: of an ingest, or of the first batch of a backfill."""

    live: LiveAirflow
    dag_id: str
    run_id: str

    @property
    def path(self) -> str:
        task = "batch.ask/0" if self.dag_id.startswith("backfill_") else "ask/-1"
        return f"/api/v2/dags/{self.dag_id}/dagRuns/{self.run_id}/taskInstances/{task}/hitlDetails"

    def question(self, *, times: int = 1) -> dict[str, Any]:
        """Once it is asked, so many times."""
        with self.live.airflow.login("op") as op:

            def asked() -> bool:
                with suppress(Transient):
                    return any(t.state == "awaiting_input" for t in op.task_states(self.dag_id, self.run_id))
                return False

            assert comes_true(asked), op.task_states(self.dag_id, self.run_id)
            self.live.wait_asked(self.dag_id, self.run_id, self.path.split("/")[-3], times=times)
            return dict(op.request("GET", self.path))

    def answer(self, user: str, chosen: str, why: str | None) -> None:
        with self.live.airflow.login(user) as api:
            api.request("PATCH", self.path, json={"chosen_options": [chosen], "params_input": {"why": why}})

    def ended(self) -> str:
        with self.live.airflow.login() as api:
            return api.wait(self.dag_id, self.run_id, seconds=SECONDS)

    def states(self, task_id: str) -> list[str | None]:
        """Of all that it was mapped to."""
        with self.live.airflow.login() as api:
            found = [t for t in api.task_states(self.dag_id, self.run_id) if t.task_id == task_id]
        return [t.state for t in sorted(found, key=lambda t: t.map_index)]


def trigger(live: LiveAirflow, dag_id: str, form: dict[str, Any] | None = None) -> Asked:
    with live.airflow.login("op") as op:
        return Asked(live, dag_id, op.trigger(dag_id, form))


def test_somebody_accepts_what_stands_at_a_closed_gate_and_the_batch_says_who_and_why(live: LiveAirflow) -> None:
    stream = live.declare("bluff", FEW, flows=["ingest"])
    stream.send(*(recorded(f"b{n}", start_ns=START_NS) for n in range(2)))
    run = trigger(live, "ingest_bluff")
    asked = run.question()
    assert stream.published() == []
    assert "Without an answer: **Stop**" in asked["body"]
    plan_id = stream.newest_folder()
    docs = f"{live.airflow.url}/wavestitch/docs/bluff/{plan_id}/index.html"
    assert f"({docs})" in asked["body"]
    assert str(live.folder) not in asked["body"]
    assert "expect_table_row_count_to_be_between" in live.page("viewer", docs)
    with pytest.raises(BadInput, match="403"):
        run.answer("viewer", "Accept", "whatever")
    # Without a reason it is asked again: nothing was decided.
    run.answer("op", "Accept", None)
    assert run.question(times=2)["response_received"] is False
    run.answer("op", "Accept", "two of them today")
    assert run.ended() == "success"
    assert stream.published() == ["b0", "b1"]
    assert stream.note() == "gate: accept; two of them today (op)"
    # Once, although it was asked again; with the page where it is answered, and the one to look at before that.
    (told,) = live.told(run.run_id)
    assert told["subject"] == "bluff: the gate is closed. Publish the batch, hold it, or stop?"
    assert f"({docs})" in told["text"]
    assert (
        told["facts"]["page"]
        == f"{live.airflow.url}/dags/ingest_bluff/runs/{quote(run.run_id)}/tasks/ask/required_actions"
    )


def test_where_nobody_answers_in_time_the_stream_parks_and_goes_on(live: LiveAirflow) -> None:
    stream = live.declare("dell", {**FEW, "gate_timeout": "1 s", "gate_default": "park"}, flows=["ingest"])
    stream.send(*(recorded(f"d{n}", start_ns=START_NS) for n in range(2)))
    assert trigger(live, "ingest_dell").ended() == "success"
    assert stream.published() == []
    assert stream.positions() == stream.ends()
    assert stream.note() == "gate: park; nobody answered in time"


DAY = {"interval": "2020-01-01T00:00:00Z/2020-01-02T00:00:00Z"}
CHAINED: dict[str, Any] = {
    **FEW,
    "limits": {"max_clock_skew": "36500 d", "max_batch_records": 4},
    "reading": {"min_slice": 1},
}


def send_chain(stream: LiveStream) -> None:
    """Of a first batch two waveforms, at which the gate closes, and of a second one."""
    stream.send(*(recorded(f"c{n}", start_ns=START_NS) for n in range(2)), recorded("c2", start_ns=START_NS, chunks=4))


def test_a_batch_of_a_backfill_waits_at_its_gate_for_somebody_and_those_behind_it_for_the_answer(
    live: LiveAirflow,
) -> None:
    stream = live.declare("scarp", {**CHAINED, "on_closed_gate": "park"}, flows=["backfill"])
    send_chain(stream)
    run = trigger(live, "backfill_scarp", DAY)
    asked = run.question()
    assert asked["options"] == ["Accept", "Stop"]
    assert "Park" not in asked["body"]
    assert "the batches behind this one read nothing until it is accepted" in asked["body"]
    with live.airflow.login() as api:
        first, second = api.xcom(run.dag_id, run.run_id, "plan")
    docs = f"{live.airflow.url}/wavestitch/docs/scarp/{first}/index.html"
    assert f"({docs})" in asked["body"]
    assert "expect_table_row_count_to_be_between" in live.page("viewer", docs)
    landing = stream.deployment.settings.landing / "scarp"
    assert comes_true(lambda: run.states("batch.read") == ["success", "up_for_reschedule"])
    assert [bool(list((landing / plan).glob("slice-*"))) for plan in (first, second)] == [True, False]
    with pytest.raises(BadInput, match="403"):
        run.answer("viewer", "Accept", "whatever")
    with pytest.raises(BadInput, match="Park"):
        run.answer("op", "Park", "whatever")
    run.answer("op", "Accept", "two of them that day")
    assert run.ended() == "success"
    assert stream.published() == ["c0", "c1", "c2"]
    assert run.states("batch.ask") == ["success", "skipped"]
    notes = {row.plan_id: row.note for row in stream.deployment.tables("scarp").batches()}
    assert (notes[first], notes[second]) == ("gate: accept; two of them that day (op)", "")
    (told,) = live.told(run.run_id)
    assert told["subject"] == "scarp: the gate is closed. Publish the batch, or stop?"
    assert told["facts"]["page"].endswith("/tasks/batch.ask/mapped/0/required_actions")


def test_where_nobody_answers_for_a_backfill_in_time_it_stops_and_those_behind_it_say_why(live: LiveAirflow) -> None:
    stream = live.declare("cleft", {**CHAINED, "gate_timeout": "1 s", "gate_default": "park"}, flows=["backfill"])
    send_chain(stream)
    run = trigger(live, "backfill_cleft", DAY)
    assert run.ended() == "failed"
    assert run.states("batch.answered") == ["failed", "upstream_failed"]
    assert run.states("batch.read") == ["success", "failed"]
    assert (stream.published(), stream.positions()) == ([], {0: 0})
