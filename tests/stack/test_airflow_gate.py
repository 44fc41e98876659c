"""A closed gate is answered in Airflow: by somebody, with a reason, or after a time-out as the stream says itself."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import quote

import pytest

from tests.stack.live_airflow import SECONDS, LiveAirflow, recorded
from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.local.process import wait_until

START_NS = 1_577_836_800_000_000_000
FEW: dict[str, Any] = {
    "limits": {"max_clock_skew": "36500 d"},
    "expectations": [{"type": "expect_table_row_count_to_be_between", "kwargs": {"max_value": 1}}],
}


def trigger(live: LiveAirflow, stream: str) -> str:
    with live.airflow.login("op") as op:
        return op.trigger(f"ingest_{stream}")


def question(live: LiveAirflow, stream: str, run_id: str, *, times: int = 1) -> dict[str, Any]:
    """Once it is asked, so many times."""
    path = f"/api/v2/dags/ingest_{stream}/dagRuns/{run_id}/taskInstances/ask/-1/hitlDetails"
    with live.airflow.login("op") as op:

        def asked() -> bool:
            with suppress(Transient):
                return any(t.state == "awaiting_input" for t in op.task_states(f"ingest_{stream}", run_id))
            return False

        assert wait_until(asked, seconds=SECONDS), op.task_states(f"ingest_{stream}", run_id)
        live.wait_asked(f"ingest_{stream}", run_id, "ask", times=times)
        return dict(op.request("GET", path))


def answer(live: LiveAirflow, user: str, stream: str, run_id: str, chosen: str, why: str | None) -> None:
    path = f"/api/v2/dags/ingest_{stream}/dagRuns/{run_id}/taskInstances/ask/-1/hitlDetails"
    with live.airflow.login(user) as api:
        api.request("PATCH", path, json={"chosen_options": [chosen], "params_input": {"why": why}})


def ended(live: LiveAirflow, stream: str, run_id: str) -> str:
    with live.airflow.login() as api:
        return api.wait(f"ingest_{stream}", run_id, seconds=SECONDS)


def test_somebody_accepts_what_stands_at_a_closed_gate_and_the_batch_says_who_and_why(live: LiveAirflow) -> None:
    stream = live.declare("bluff", FEW, flows=["ingest"])
    stream.send(*(recorded(f"b{n}", start_ns=START_NS) for n in range(2)))
    run_id = trigger(live, "bluff")
    asked = question(live, "bluff", run_id)
    assert stream.published() == []
    assert "Without an answer: **Stop**" in asked["body"]
    plan_id = stream.newest_folder()
    docs = f"{live.airflow.url}/wavestitch/docs/bluff/{plan_id}/index.html"
    assert f"({docs})" in asked["body"]
    assert str(live.folder) not in asked["body"]
    assert "expect_table_row_count_to_be_between" in live.page("viewer", docs)
    with pytest.raises(BadInput, match="403"):
        answer(live, "viewer", "bluff", run_id, "Accept", "whatever")
    # Without a reason it is asked again: nothing was decided.
    answer(live, "op", "bluff", run_id, "Accept", None)
    assert question(live, "bluff", run_id, times=2)["response_received"] is False
    answer(live, "op", "bluff", run_id, "Accept", "two of them today")
    assert ended(live, "bluff", run_id) == "success"
    assert stream.published() == ["b0", "b1"]
    assert stream.note() == "gate: accept; two of them today (op)"
    # Once, although it was asked again; with the page where it is answered, and the one to look at before that.
    (told,) = live.told(run_id)
    assert told["subject"] == "bluff: the gate is closed. Publish the batch, hold it, or stop?"
    assert f"({docs})" in told["text"]
    assert (
        told["facts"]["page"] == f"{live.airflow.url}/dags/ingest_bluff/runs/{quote(run_id)}/tasks/ask/required_actions"
    )


def test_where_nobody_answers_in_time_the_stream_parks_and_goes_on(live: LiveAirflow) -> None:
    stream = live.declare("dell", {**FEW, "gate_timeout": "1 s", "gate_default": "park"}, flows=["ingest"])
    stream.send(*(recorded(f"d{n}", start_ns=START_NS) for n in range(2)))
    run_id = trigger(live, "dell")
    assert ended(live, "dell", run_id) == "success"
    assert stream.published() == []
    assert stream.positions() == stream.ends()
    assert stream.note() == "gate: park; nobody answered in time"
