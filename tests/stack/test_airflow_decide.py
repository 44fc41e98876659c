"""What is held is decided about in a real Airflow, by REST: previewed, approved of, carried out without the log."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from tests.builders.published_bytes import published_bytes
from tests.faults.in_process import run_here
from tests.stack.live_airflow import SECONDS, LiveAirflow, recorded
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.run import RunOptions
from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.local.process import wait_until

START_NS = 1_577_836_800_000_000_000
FEW: dict[str, Any] = {
    "limits": {"max_clock_skew": "36500 d"},
    "expectations": [{"type": "expect_table_row_count_to_be_between", "kwargs": {"max_value": 1}}],
}
DAG = "decide_mire"


def waits(live: LiveAirflow, run_id: str) -> str:
    """Until its approval waits for somebody; the text that is put before them."""

    def pending() -> bool:
        states = {}
        with suppress(Transient):  # a busy machine: the server answers later
            states = {t.task_id: t.state for t in api.task_states(DAG, run_id)}
        assert states.get("preview") != "failed", "the preview failed"
        return states.get("approve") == "awaiting_input"

    with live.airflow.login() as api:
        assert wait_until(pending, seconds=SECONDS)
        live.wait_asked(DAG, run_id, "approve")
        return str(api.xcom(DAG, run_id, "preview", key="shown"))


def answer(live: LiveAirflow, user: str, run_id: str, chosen: str) -> None:
    path = f"/api/v2/dags/{DAG}/dagRuns/{run_id}/taskInstances/approve/-1/hitlDetails"
    with live.airflow.login(user) as api:
        api.request("PATCH", path, json={"chosen_options": [chosen], "params_input": {}})


def test_what_was_parked_is_redriven_bit_for_bit_after_its_topic_lost_it_by_whom_and_why(live: LiveAirflow) -> None:
    mire = live.declare("mire", FEW, flows=["decide"])
    sent = {name: recorded(name, start_ns=START_NS) for name in ("m0", "m00")}
    mire.send(*sent.values())
    run_here(mire.deployment, "mire", RunOptions(PlanRequest(), gate="park", why="two at once"))
    assert mire.published() == []
    positions = mire.positions()
    mire.delete_records(mire.ends())

    form = {"action": "redrive", "why": "one is enough", "ids": ["m00"], "reasons": ["parked"]}
    with pytest.raises(BadInput, match="403"), live.airflow.login("viewer") as viewer:
        viewer.trigger(DAG, form)
    with live.airflow.login("op") as op:
        run_id = op.trigger(DAG, form)
    shown = waits(live, run_id)
    assert "**1 waveforms**: 2 chunks (2 `parked`)" in shown
    assert "`m00`" in shown
    assert "`m0`" not in shown
    with pytest.raises(BadInput, match="403"):
        answer(live, "viewer", run_id, "Approve")
    answer(live, "admin", run_id, "Approve")
    with live.airflow.login() as api:
        assert api.wait(DAG, run_id, seconds=SECONDS) == "success"
    expected = b"".join(bytes(chunk.value) for chunk in sent["m00"])
    assert published_bytes(mire.deployment.tables("mire")) == [("m00", expected)]
    assert mire.positions() == positions
    assert mire.note() == "redrive by op, approved by admin: one is enough"
