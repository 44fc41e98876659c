"""Decisions about what is held are planned, shown and carried out: on what, once, and beside what else goes on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tests.builders.records import metadata
from tests.domain.held_world import ONE, OTHER, TWO, T, World, conflicting, parked
from tests.fakes.batch import Carrying, FakeEdges, carry_through
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_request import held_selection
from wavestitch.batch.held_waveforms import Selection, select_held
from wavestitch.batch.history import history_of
from wavestitch.contracts.errors import BadInput, GateClosed, Refused, Terminal
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Limits


@pytest.fixture
def world() -> World:
    return World()


class TestPlanning:
    def test_carried_out_twice_it_is_one_head(self, world: World) -> None:
        parked(world)
        edges = FakeEdges(world.bench, world.stream, T + 9, Carrying())
        found = plan_held(edges, HeldAction.REDRIVE, Selection(ids=("w",)), who="ops", why="ok")
        carry_out(edges, found.plan)
        heads = len(world.bench.tables.snapshots)
        carry_out(edges, found.plan)
        assert len(world.bench.tables.snapshots) == heads

    @pytest.mark.parametrize("action", [HeldAction.REDRIVE, HeldAction.ACCEPT, HeldAction.DISCARD])
    def test_what_a_batch_adds_between_plan_and_decision_is_not_decided_upon(
        self, world: World, action: HeldAction
    ) -> None:
        parked(world)
        edges = FakeEdges(world.bench, world.stream, T + 9, Carrying())
        found = plan_held(edges, action, Selection(ids=("w",)), who="ops", why="ok")
        world.send("w", 0, OTHER)
        world.ingest()
        with pytest.raises(Terminal, match=f"changed since this {action.value} was planned; nothing was published"):
            carry_out(edges, found.plan)
        world.check()
        assert (world.published(), world.held()) == ({}, {"w": {"parked"}})

    def test_what_a_batch_adds_to_others_between_plan_and_decision_does_not_matter(self, world: World) -> None:
        conflicting(world)
        edges = FakeEdges(world.bench, world.stream, T + 9, Carrying())
        found = plan_held(edges, HeldAction.DISCARD, Selection(ids=("w",)), who="ops", why="ok")
        world.send("v", 0, OTHER)
        world.ingest()
        carry_out(edges, found.plan)
        world.check()
        assert world.held() == {"v": {"open"}, "w": {"discarded"}}

    def test_the_preview_counts_and_nothing_is_changed(self, world: World) -> None:
        conflicting(world)
        edges = FakeEdges(world.bench, world.stream, T + 9, Carrying())
        before = list(world.bench.tables.snapshots)
        found = plan_held(edges, HeldAction.DISCARD, Selection(reasons=frozenset({Reason.CONFLICT})), who="o", why="y")
        assert (found.waveforms, found.chunks, found.bytes, found.reasons) == (1, 3, 6, {"conflict": 3})
        assert world.bench.tables.snapshots == before

    def test_there_is_a_cap_unless_somebody_says_all(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("wavestitch.batch.held_decision.MOST", 2)
        for n in range(3):
            world.send(f"w{n}", 0, ONE)
        world.ingest()
        edges = FakeEdges(world.bench, world.stream, T + 9, Carrying())
        capped = plan_held(edges, HeldAction.DISCARD, Selection(), who="o", why="y")
        assert (capped.waveforms, capped.more) == (2, True)
        whole = plan_held(edges, HeldAction.DISCARD, Selection(), who="o", why="y", everything=True)
        assert (whole.waveforms, whole.more) == (3, False)

    @pytest.mark.parametrize(
        ("wanted", "ids"),
        [
            (Selection(source="other"), []),
            (Selection(until_ms=EpochMs(T)), []),
            (Selection(since_ms=EpochMs(T)), ["w"]),
            (Selection(reasons=frozenset({Reason.PARKED})), []),
            (Selection(decisions=frozenset({"none"})), []),
            (Selection(after="w"), []),
            (Selection(ids=("w", "nobody")), ["w"]),
        ],
    )
    def test_what_is_meant_is_selected(self, world: World, wanted: Selection, ids: list[str]) -> None:
        conflicting(world)
        assert [w.waveform_id for w in select_held(world.bench.tables, world.stream, wanted)] == ids

    @pytest.mark.parametrize(("since", "until", "ids"), [(0, 1, ["w"]), (1, 2, []), (-1, 0, [])])
    def test_times_that_people_write_are_record_times(
        self, world: World, since: int, until: int, ids: list[str]
    ) -> None:
        conflicting(world)
        (one,) = select_held(world.bench.tables, world.stream, Selection())
        first, end = (datetime.fromtimestamp(one.newest_ms // 1000 + s, UTC).isoformat() for s in (since, until))
        history = history_of(FakeEdges(world.bench, world.stream, T + 9, Carrying()))
        wanted = held_selection(history, since=first, until=end)
        assert [w.waveform_id for w in select_held(world.bench.tables, world.stream, wanted)] == ids

    def test_a_reason_must_be_given(self, world: World) -> None:
        parked(world)
        edges = FakeEdges(world.bench, world.stream, T + 9, Carrying())
        with pytest.raises(BadInput, match="say why"):
            plan_held(edges, HeldAction.DISCARD, Selection(ids=("w",)), who="ops", why=" ")


class TestWaiting:
    def test_record_times_decades_away_do_not_keep_chunks_open_for_ever(self, world: World) -> None:
        century = T + 30 * 365 * 86_400_000
        world.send("w", 0, ONE, at=century, meta=metadata(century))
        world.ingest()
        assert world.held() == {"w": {"implausible_time"}}
        world.send("w", 1, TWO, at=century, meta=metadata(century))
        world.ingest()
        assert world.published() == {"w": ONE + TWO}, "a late chunk heals it all the same"

    def test_a_held_set_that_lost_a_row_is_not_believed(self, world: World) -> None:
        conflicting(world)
        tables = world.bench.tables
        mark = tables.snapshots[-1].held
        assert mark is not None
        tables.held_snapshots[mark.snapshot_id] = tables.held_snapshots[mark.snapshot_id][:-1]
        world.send("x", 0, ONE)
        with pytest.raises(Exception, match="the head vouches for 3 rows"):
            world.ingest()

    def test_a_missing_history_row_changes_nothing(self, world: World) -> None:
        world.send("w", 0, ONE)
        world.ingest()
        world.bench.tables.history = []
        world.bench.tables.expired = len(world.bench.tables.snapshots) - 1
        world.send("w", 1, TWO)
        world.ingest()
        assert world.published() == {"w": ONE + TWO}
        assert replace(world.bench.tables.snapshots[-1].held, counts={}).rows == 1


class TestPlannedBeforeAnotherOneWasStopped:
    """Two operators plan redrives; the gate closes before one of them, and the other one covers more and would pass."""

    @pytest.fixture
    def world(self):
        world = World()
        for wid in "wuvz":
            world.send(wid, 0, ONE)
            world.send(wid, 1, TWO)
        world.ingest(park=True)
        return world

    def edges(self, world, **how):
        return FakeEdges(world.bench, world.stream, world.now_ms + 1, Carrying(spoiled={"w"}, **how))

    def plan(self, world, *ids):
        return plan_held(self.edges(world), HeldAction.REDRIVE, Selection(ids=ids), who="ops", why="again").plan

    def test_a_redrive_of_its_waveforms_does_not_publish_past_it(self, world):
        wide, beside, narrow = self.plan(world, "w", "u", "v"), self.plan(world, "z"), self.plan(world, "w")
        with pytest.raises(GateClosed):
            carry_out(self.edges(world), narrow)
        with pytest.raises(Refused, match="no batch that would publish what it stopped goes past it"):
            carry_out(self.edges(world), wide)
        assert world.published() == {}
        carry_out(self.edges(world), beside)
        assert set(world.published()) == {"z"}, "what it is not about goes on"
        carry_through(world.bench, narrow, Carrying(spoiled={"w"}, gate="accept"))
        assert set(world.published()) == {"z", "w"}
        carry_out(self.edges(world), wide)
        assert set(world.published()) == {"z", "w", "u", "v"}
        world.check()


def test_a_quota_counts_what_is_held_and_not_what_was_released_since():
    world = World()
    world.stream = world.stream.model_copy(update={"limits": Limits(max_held_rows=3)})
    world.send("w0", 0, ONE)
    for n in range(1, 6):
        world.ingest()
        world.send(f"w{n - 1}", 1, TWO, at=T + n)
        world.send(f"w{n}", 0, ONE, at=T + n)
    mark = world.bench.tables.head().held
    assert (mark.rows, sum(mark.counts.values())) == (5, 1)
