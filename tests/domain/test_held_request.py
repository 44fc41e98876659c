"""What a form says about held waveforms becomes the selection that is meant, field by field."""

from __future__ import annotations

from typing import Any

from tests.domain.held_world import ONE, World, parked
from tests.fakes.batch import Carrying, FakeEdges
from wavestitch.batch.held_request import selection_of_form
from wavestitch.batch.held_waveforms import Selection, select_held
from wavestitch.batch.history import history_of
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.reasons import Reason

EMPTY: dict[str, Any] = dict.fromkeys(("ids", "reasons", "source", "since", "until", "batch"))


def meant(world: World, **said: Any) -> Selection:
    edges = FakeEdges(world.bench, world.stream, world.now_ms, Carrying())
    return selection_of_form(history_of(edges), {**EMPTY, **said})


def test_a_form_that_says_nothing_means_all_that_is_held() -> None:
    assert meant(World()) == Selection()


def test_each_field_of_a_form_narrows_what_is_meant() -> None:
    world = World()
    parked(world)
    (row,) = world.bench.tables.history
    found = meant(
        world,
        ids=["w", "v"],
        reasons=["parked", "open"],
        source=" s ",
        since="2026-01-05T12:00:00Z",
        until=" 2026-01-05T13:00:00Z ",
        batch=row.plan_id,
    )
    assert found == Selection(
        ids=("w", "v"),
        reasons=frozenset({Reason.PARKED, Reason.OPEN}),
        source="s",
        since_ms=EpochMs(1_767_614_400_000),
        until_ms=EpochMs(1_767_618_000_000),
        decisions=frozenset({row.decision}),
    )


def test_a_reason_that_is_ticked_keeps_what_is_held_for_others_out() -> None:
    world = World()
    parked(world)
    world.send("half", 0, ONE)
    world.ingest()
    found = select_held(world.bench.tables, world.stream, meant(world, reasons=["parked"]))
    assert [one.waveform_id for one in found] == ["w"]
