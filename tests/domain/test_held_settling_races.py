"""Settling the held table beside other runs, effect by effect, on the memory edges: nothing that a head names goes."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.domain.held_world import ONE, World
from tests.fakes.batch import Carrying, FakeEdges, run_batch
from tests.fakes.fake_tables import FakeTables
from tests.fakes.faults import Fault, Steps
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import PlanRequest
from wavestitch.contracts.errors import Altered, Transient
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.quantities import EpochMs


@pytest.fixture
def world() -> World:
    """A chunk of v is held; another of w was sent."""
    made = World()
    made.send("v", 0, ONE)
    made.ingest()
    made.send("w", 0, ONE)
    return made


def batch(world: World) -> Steps:
    clock_ms = EpochMs(world.now_ms + 1)
    return Steps(partial(run_batch, world.bench, world.stream, PlanRequest(), clock_ms=clock_ms))


def decision(world: World) -> Steps:
    edges = FakeEdges(world.bench, world.stream, EpochMs(world.now_ms + 2), Carrying())
    plan = plan_held(edges, HeldAction.DISCARD, Selection(ids=("v",)), who="ops", why="a race").plan
    return Steps(partial(carry_out, edges, plan))


def up_to(run: Steps, at: str) -> None:
    while run.at != at:
        assert run.advance(), f"it ended before {at}: {run.error!r}"


def end(run: Steps) -> None:
    run.finish()
    assert run.error is None, repr(run.error)


def settles_late(world: World) -> None:
    """A batch has committed and looks at what is staged; an operator's decision is, and is committed meanwhile."""
    first = batch(world)
    up_to(first, "tables.held_main")
    second = decision(world)
    up_to(second, "tables.commit")
    up_to(first, "tables.settle_held")
    end(second)
    end(first)


def test_who_settles_late_takes_nothing_of_a_decision_that_was_committed_meanwhile(world: World) -> None:
    settles_late(world)
    world.check()
    assert world.held() == {"v": {"discarded"}, "w": {"open"}}
    head = world.bench.tables.head()
    assert head is not None
    assert head.held is not None
    assert world.bench.tables.held_main == head.held.snapshot_id


def test_a_settling_that_takes_away_what_was_staged_when_it_looked_is_found_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The break that was there once, as a seeded bug."""

    def wrong(self: Any) -> None:
        with self.act("tables.held_main", error=Transient):
            staged = {tip for tip, _ in self.branches.values()}
        named = {h.held.snapshot_id for h in self.heads() if h.held is not None}
        with self.act("tables.settle_held", error=Transient):
            for lost in staged - {below for i in named for below in self._below(i)}:
                self.held_snapshots.pop(lost)

    monkeypatch.setattr(FakeTables, "settle_held", wrong)
    settles_late(world)
    with pytest.raises(Altered, match="which is not there"):
        world.held()


@pytest.mark.parametrize("at", ["tables.held_main", "tables.heads", "tables.settle_held"])
@pytest.mark.parametrize("fault", [Fault.KILL_BEFORE, Fault.KILL_AFTER])
def test_a_death_anywhere_while_settling_costs_nothing_and_is_made_good_by_whoever_comes_next(
    world: World, at: str, fault: Fault
) -> None:
    dying = batch(world)
    up_to(dying, "tables.held_main")
    up_to(dying, at)
    dying.advance(fault)
    assert dying.done
    assert world.held() == {"v": {"open"}, "w": {"open"}}
    world.decide(HeldAction.DISCARD, "w")
    tables = world.bench.tables
    assert tables.snapshots[-1].held is not None
    assert tables.held_main == tables.snapshots[-1].held.snapshot_id
    assert tables.branches == {}
