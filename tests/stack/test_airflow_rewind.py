"""Rewind in a real Airflow, by REST: previewed, approved of by somebody, done as previewed, undone after an ingest."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from tests.faults.in_process import run_here
from tests.stack.live_airflow import SECONDS, LiveAirflow, LiveStream, comes_true, recorded
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.run import RunOptions
from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.contracts.quantities import Offset, Partition

START_NS = 1_577_836_800_000_000_000
DECLARED: dict[str, Any] = {"limits": {"max_clock_skew": "36500 d"}}


def ingest(stream: LiveStream, request: PlanRequest | None = None) -> dict[str, Any]:
    return run_here(stream.deployment, stream.name, RunOptions(request or PlanRequest()))


def waits(live: LiveAirflow, stream: str, run_id: str) -> None:
    """Until its approval waits for somebody."""

    def pending() -> bool:
        states = {}
        with suppress(Transient):  # a busy machine: the server answers later
            states = {t.task_id: t.state for t in api.task_states(f"rewind_{stream}", run_id)}
        assert states.get("preview") != "failed", "the preview failed"
        return states.get("approve") == "awaiting_input"

    with live.airflow.login() as api:
        assert comes_true(pending)
    live.wait_asked(f"rewind_{stream}", run_id, "approve")


def answer(live: LiveAirflow, user: str, stream: str, run_id: str, chosen: str, **accepted: bool) -> None:
    path = f"/api/v2/dags/rewind_{stream}/dagRuns/{run_id}/taskInstances/approve/-1/hitlDetails"
    said = {"accept_skip": False, "accept_missing": False, **accepted}
    with live.airflow.login(user) as api:
        api.request("PATCH", path, json={"chosen_options": [chosen], "params_input": said})


def ask(live: LiveAirflow, stream: str, to: str, user: str = "op") -> str:
    with live.airflow.login(user) as api:
        run_id = api.trigger(f"rewind_{stream}", {"to": to, "why": "to see"})
    waits(live, stream, run_id)
    return run_id


def ended(live: LiveAirflow, stream: str, run_id: str) -> str:
    with live.airflow.login() as api:
        return api.wait(f"rewind_{stream}", run_id, seconds=SECONDS)


def shown(live: LiveAirflow, stream: str, run_id: str) -> str:
    with live.airflow.login() as api:
        return str(api.xcom(f"rewind_{stream}", run_id, "preview", key="shown"))


def test_a_rewind_is_previewed_approved_of_and_undone_while_another_one_waits(live: LiveAirflow) -> None:
    reef = live.declare("reef", DECLARED, flows=["rewind"])
    dune = live.declare("dune", {**DECLARED, "rewind_approval": "other"}, flows=["rewind"])
    for stream in (reef, dune):
        stream.send(*(recorded(f"{stream.name}{n}", start_ns=START_NS) for n in range(2)))
        ingest(stream)
    assert reef.positions() == {0: 4}
    before = reef.published()

    waiting = ask(live, "dune", "earliest", user="op")
    with pytest.raises(BadInput, match="403"), live.airflow.login("viewer") as viewer:
        viewer.trigger("rewind_reef", {"to": "earliest", "why": "to see"})
    run_id = ask(live, "reef", "shift:-4")
    text = shown(live, "reef", run_id)
    assert "4 offsets are read again" in text
    assert "| 0 | 4 | 0 | 0 to 4 | 4 |" in text
    (told,) = live.told(run_id)
    assert told["subject"] == "Rewind reef?"
    assert text in told["text"]
    with pytest.raises(BadInput, match="403"):
        answer(live, "viewer", "reef", run_id, "Approve")

    # A batch commits in between: the previewed offsets are where it goes all the same.
    reef.send(recorded("reef-late", start_ns=START_NS))
    ingest(reef)
    assert reef.positions() == {0: 6}
    answer(live, "admin", "reef", run_id, "Approve")
    assert ended(live, "reef", run_id) == "success"
    assert reef.positions() == {0: 0}
    with live.airflow.login() as api:
        done = api.xcom("rewind_reef", run_id, "apply")
    assert (done["asked_by"], done["approved_by"]) == ("op", "admin")
    head = reef.deployment.tables("reef").head()
    assert head is not None
    assert head.note == "rewind to shift:-4 by op, approved by admin: to see"

    # The next batch publishes nothing again, and the undo returns to where the stream stood, also after it.
    again = ingest(reef, PlanRequest(until={Partition(0): Offset(2)}))
    assert again["published"]["waveforms"]["published"] == 0
    back = ask(live, "reef", done["undo"])
    answer(live, "admin", "reef", back, "Approve", accept_skip=True)
    assert ended(live, "reef", back) == "success"
    assert reef.positions() == {0: 6}
    assert reef.published() == sorted([*before, "reef-late"])

    # Who asked may not approve where the stream says so; nothing moved, and a rejected one moves nothing either.
    answer(live, "op", "dune", waiting, "Approve")
    assert ended(live, "dune", waiting) == "failed"
    rejected = ask(live, "dune", "earliest")
    answer(live, "admin", "dune", rejected, "Reject")
    assert ended(live, "dune", rejected) == "success"
    with live.airflow.login() as api:
        assert {t.task_id: t.state for t in api.task_states("rewind_dune", rejected)}["apply"] == "skipped"
    assert dune.positions() == {0: 4}
