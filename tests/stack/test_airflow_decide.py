"""What is held is decided about in a real Airflow, by REST: previewed, approved of, carried out without the log."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.published_bytes import published_bytes
from tests.faults.in_process import run_here
from tests.stack.approving import answer, approve, ask
from tests.stack.live_airflow import LiveAirflow, LiveStream, recorded
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.run import RunOptions
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.held import HeldLook, effective_held

START_NS = 1_577_836_800_000_000_000
FEW: dict[str, Any] = {
    "limits": {"max_clock_skew": "36500 d"},
    "expectations": [{"type": "expect_table_row_count_to_be_between", "kwargs": {"max_value": 1}}],
}


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
        viewer.trigger("decide_mire", form)
    run_id, shown = ask(live, "decide_mire", form)
    assert "**1 waveforms**: 2 chunks (2 `parked`)" in shown
    assert "`m00`" in shown
    assert "`m0`" not in shown
    with pytest.raises(BadInput, match="403"):
        answer(live, "viewer", "decide_mire", run_id, "Approve")
    assert approve(live, "decide_mire", run_id) == "success"
    expected = b"".join(bytes(chunk.value) for chunk in sent["m00"])
    assert published_bytes(mire.deployment.tables("mire")) == [("m00", expected)]
    assert mire.positions() == positions
    assert mire.note() == "redrive by op, approved by admin: one is enough"


def rewind_fully(stream: LiveStream) -> None:
    log, tables = stream.deployment.log, stream.deployment.tables(stream.name)
    target = plan_rewind(stream.stream, Target("earliest"), log=log, tables=tables, who="ops", why="all of it again")
    apply_rewind(stream.stream, target, accept_skip=False, log=log, tables=tables)


def held_for(stream: LiveStream) -> dict[str, set[str]]:
    """What `two` is held for."""
    tables = stream.deployment.tables(stream.name)
    head = tables.head()
    assert head is not None
    look = HeldLook(ids=frozenset({"two"}))
    rows = effective_held(tables.held(head.held, look), published={})
    found: dict[str, set[str]] = {}
    for h in rows:
        found.setdefault(h.chunk.waveform_id or "", set()).add(h.reason.value)
    return found


def test_two_streams_are_decided_about_at_once_a_pick_publishes_one_copy_and_a_discard_outlives_a_full_rewind(
    live: LiveAirflow,
) -> None:
    declared = {"limits": FEW["limits"]}
    fen, moss = (live.declare(name, declared, flows=["decide"]) for name in ("fen", "moss"))
    truths = [recorded("two", start_ns=START_NS, shift=shift) for shift in (0, 7)]
    for stream in (fen, moss):
        for truth in truths:
            stream.send(truth)
        run_here(stream.deployment, stream.name, RunOptions(PlanRequest()))
        assert (stream.published(), held_for(stream)) == ([], {"two": {"conflict"}})

    picks, shown = ask(live, "decide_fen", {"action": "pick", "copy": "last", "why": "the first was of a test"})
    assert "asks to **pick** (copy `last`)" in shown
    gives_up, shown = ask(live, "decide_moss", {"action": "discard", "why": "nobody knows which"})
    assert "**1 waveforms**: 4 chunks (4 `conflict`)" in shown
    # Both wait for somebody, and neither for the other: the one that was asked for last is answered first.
    assert approve(live, "decide_moss", gives_up) == "success"
    assert (fen.published(), held_for(fen)) == ([], {"two": {"conflict"}})
    assert approve(live, "decide_fen", picks) == "success"
    picked = b"".join(bytes(chunk.value) for chunk in truths[1])
    assert published_bytes(fen.deployment.tables("fen")) == [("two", picked)]
    assert fen.note() == "pick last by op, approved by admin: the first was of a test"
    assert moss.note() == "discard by op, approved by admin: nobody knows which"
    assert held_for(moss) == {"two": {"discarded"}}

    for stream in (fen, moss):
        rewind_fully(stream)
        done = run_here(stream.deployment, stream.name, RunOptions(PlanRequest()))
        assert done["published"]["waveforms"]["published"] == 0
        assert stream.positions() == stream.ends()
    assert published_bytes(fen.deployment.tables("fen")) == [("two", picked)]
    assert (moss.published(), held_for(moss)) == ([], {"two": {"discarded"}})
