"""Everything that is held can be decided: redrive, accept, pick, discard, restore, each a batch without Kafka.

On the memory edges, by the product's own steps; all guarantees hold after every decision.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.builders.records import metadata
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges, carry_through, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.sight import look_around
from tests.guarantees import Balanced, Fenced, NoDuplicates, NoInvention, NoLoss
from wavestitch.batch.held_decision import carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection, select_held
from wavestitch.batch.history import history_of
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import Read
from wavestitch.batch.rewind import apply_rewind, plan_rewind
from wavestitch.batch.rewind_target import Target
from wavestitch.batch.steps import step_publish, step_reassemble, step_validate
from wavestitch.cli_held import held_selection
from wavestitch.contracts.errors import BadInput, GateClosed, Refused, Terminal
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.held_mark import HeldMark, held_bytes
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Limits

T = 1_767_614_400_000
ONE, TWO, OTHER = b"\x01\x00", b"\x02\x00", b"\x07\x00"


class World:
    def __init__(self) -> None:
        self.bench = Bench(FakeLog("waves", 1))
        self.stream = make_stream()
        self.now_ms = T
        self.guarantees: tuple[Any, ...] = (NoLoss(), NoDuplicates(), NoInvention(), Fenced(), Balanced())

    def send(
        self, wid: str, seq: int, value: bytes, *, count: int | None = 2, at: int = T, meta: bytes | None = None
    ) -> None:
        send_chunk(self.bench.log, wid, seq, value, at_ms=at, start_ms=T, count=count, meta=meta)

    def ingest(self, **how: Any) -> Any:
        self.now_ms += 1
        done = run_batch(self.bench, self.stream, PlanRequest(), clock_ms=self.now_ms, how=Carrying(**how))
        self.check()
        return done

    def decide(self, action: HeldAction, *ids: str, pick: str = "", how: Carrying | None = None) -> Any:
        self.now_ms += 1
        edges = FakeEdges(self.bench, self.stream, self.now_ms, how or Carrying())
        found = plan_held(edges, action, Selection(ids=ids), who="ops", why="looked at it", pick=pick)
        done = carry_out(edges, found.plan)
        self.check()
        return done

    def check(self) -> None:
        sight = look_around(self.bench, allowed_lateness_ms=self.stream.allowed_lateness * 1000)
        for guarantee in self.guarantees:
            guarantee.check(sight)
        held = [h for one in select_held(self.bench.tables, self.stream, Selection()) for h in one.held]
        counts = dict(Counter(h.counted_as for h in held))
        mark = self.bench.tables.snapshots[-1].held
        assert (dict(mark.counts) if mark is not None else {}) == counts | self.junk_counts(), (
            "the head counts what is held"
        )
        size = sum(held_bytes(h.chunk, h.counted_as) for h in held)
        assert (mark.chunk_bytes if mark is not None else 0) == size, "the head knows the bytes of what is held"

    def mark(self) -> HeldMark:
        mark = self.bench.tables.snapshots[-1].held
        assert mark is not None
        return mark

    def junk_counts(self) -> dict[str, int]:
        return dict(Counter(r.held.reason.value for r in self.bench.tables.held_rows() if r.held.chunk.reason))

    def published(self) -> dict[str, bytes]:
        return {row.waveform_id: row.samples for _, row in self.bench.tables.rows}

    def held(self) -> dict[str, set[str]]:
        found = select_held(self.bench.tables, self.stream, Selection())
        return {one.waveform_id: {s.value for s in one.states} for one in found}


@pytest.fixture
def world() -> World:
    return World()


def parked(world: World) -> None:
    world.send("w", 0, ONE)
    world.send("w", 1, TWO)
    world.ingest(park=True)


def conflicting(world: World) -> None:
    world.send("w", 0, ONE)
    world.send("w", 1, TWO)
    world.send("w", 1, OTHER)
    world.ingest()


class TestParked:
    def test_what_was_parked_stays_held_whatever_comes_again(self, world: World) -> None:
        parked(world)
        world.send("w", 1, TWO)
        world.ingest()
        world.send("w", 0, OTHER)
        world.ingest()
        assert world.published() == {}
        assert world.held() == {"w": {"parked"}}

    def test_it_is_published_once_somebody_redrives_it(self, world: World) -> None:
        parked(world)
        world.bench.log.retain_from(0, 2)
        world.decide(HeldAction.REDRIVE, "w")
        assert world.published() == {"w": ONE + TWO}
        assert world.held() == {}
        assert world.bench.tables.snapshots[-1].note == "redrive by ops: looked at it"

    def test_positions_do_not_move(self, world: World) -> None:
        parked(world)
        before = world.bench.tables.snapshots[-1].positions
        world.decide(HeldAction.REDRIVE, "w")
        assert world.bench.tables.snapshots[-1].positions == before


class TestRedrive:
    def test_a_waveform_that_failed_an_expectation_is_judged_again(self, world: World) -> None:
        world.send("w", 0, ONE)
        world.send("w", 1, TWO)
        world.ingest(failing={"w"})
        assert world.held() == {"w": {"failed_expectation"}}
        world.decide(HeldAction.REDRIVE, "w", how=Carrying(failing={"w"}))
        assert world.held() == {"w": {"failed_expectation"}}
        world.decide(HeldAction.REDRIVE, "w")
        assert world.published() == {"w": ONE + TWO}

    def test_the_present_definition_decides(self, world: World) -> None:
        world.stream = world.stream.model_copy(update={"limits": Limits(max_chunks=1)})
        world.send("w", 0, ONE)
        world.send("w", 1, TWO)
        world.ingest()
        assert world.held() == {"w": {"too_large"}}
        world.stream = world.stream.model_copy(update={"limits": Limits()})
        world.decide(HeldAction.REDRIVE, "w")
        assert world.published() == {"w": ONE + TWO}


class TestAccept:
    def test_a_failed_expectation(self, world: World) -> None:
        world.send("w", 0, ONE)
        world.send("w", 1, TWO)
        world.ingest(failing={"w"})
        world.decide(HeldAction.ACCEPT, "w", how=Carrying(failing={"w"}))
        assert world.published() == {"w": ONE + TWO}

    def test_an_implausible_time(self, world: World) -> None:
        meta = metadata(T + 400 * 86_400_000)
        world.send("w", 0, ONE, meta=meta)
        world.send("w", 1, TWO, meta=meta)
        world.ingest()
        assert world.held() == {"w": {"implausible_time"}}
        world.decide(HeldAction.ACCEPT, "w")
        assert world.published() == {"w": ONE + TWO}

    def test_never_what_is_not_whole(self, world: World) -> None:
        meta = metadata(T + 400 * 86_400_000)
        world.send("w", 0, ONE, meta=meta)
        world.ingest()
        assert world.held() == {"w": {"implausible_time"}}
        with pytest.raises(Refused, match="'w' is open, which nobody can accept"):
            world.decide(HeldAction.ACCEPT, "w")

    def test_never_a_conflict(self, world: World) -> None:
        conflicting(world)
        with pytest.raises(Refused, match="conflict, which nobody can accept"):
            world.decide(HeldAction.ACCEPT, "w")


class TestPick:
    @pytest.mark.parametrize(("copy", "bytes_"), [("first", ONE + TWO), ("last", ONE + OTHER), ("0:2", ONE + OTHER)])
    def test_of_a_conflict_one_copy_is_published_and_the_others_are_tombstones(
        self, world: World, copy: str, bytes_: bytes
    ) -> None:
        conflicting(world)
        world.decide(HeldAction.PICK, "w", pick=copy)
        assert world.published() == {"w": bytes_}
        assert world.held() == {"w": {"discarded"}}

    def test_the_other_copy_comes_again_and_changes_nothing(self, world: World) -> None:
        conflicting(world)
        world.decide(HeldAction.PICK, "w", pick="first")
        world.send("w", 1, OTHER)
        done = world.ingest()
        assert world.published() == {"w": ONE + TWO}
        assert world.held() == {"w": {"discarded"}}
        assert world.bench.tables.history[-1].counts["replay"] == 1, done

    def test_somebody_who_took_an_id_first_cannot_lock_its_owner_out(self, world: World) -> None:
        world.send("w", 0, OTHER, meta=metadata(T, note="not mine"))
        world.ingest()
        world.send("w", 0, ONE)
        world.send("w", 1, TWO)
        world.ingest()
        assert world.held() == {"w": {"conflict"}}
        world.decide(HeldAction.PICK, "w", pick="0:1")
        assert world.published() == {"w": ONE + TWO}

    def test_a_place_where_nothing_is_held_is_refused(self, world: World) -> None:
        conflicting(world)
        with pytest.raises(Refused, match="has no chunk at 0:9"):
            world.decide(HeldAction.PICK, "w", pick="0:9")

    def test_what_is_no_conflict_cannot_be_picked(self, world: World) -> None:
        parked(world)
        with pytest.raises(Refused, match="is no conflict"):
            world.decide(HeldAction.PICK, "w", pick="first")


class TestDiscard:
    def test_no_replay_brings_it_back(self, world: World) -> None:
        world.send("w", 0, ONE)
        world.ingest()
        world.decide(HeldAction.DISCARD, "w")
        world.send("w", 0, ONE)
        world.send("w", 1, TWO)
        world.ingest()
        assert world.published() == {}
        assert world.held() == {"w": {"discarded"}}

    @pytest.mark.parametrize("make", [parked, conflicting])
    def test_restore_undoes_it(self, world: World, make: Any) -> None:
        make(world)
        before = world.held()
        world.decide(HeldAction.DISCARD, "w")
        assert world.held() == {"w": {"discarded"}}
        world.decide(HeldAction.RESTORE, "w")
        assert world.held() == before

    def test_an_open_waveform_that_is_restored_waits_again_and_becomes_whole(self, world: World) -> None:
        world.send("w", 0, ONE)
        world.ingest()
        world.decide(HeldAction.DISCARD, "w")
        world.decide(HeldAction.RESTORE, "w")
        assert world.held() == {"w": {"open"}}
        world.send("w", 1, TWO)
        world.ingest()
        assert world.published() == {"w": ONE + TWO}

    def test_what_contradicts_a_published_waveform_can_only_be_discarded(self, world: World) -> None:
        world.send("w", 0, ONE)
        world.send("w", 1, TWO)
        world.ingest()
        world.send("w", 1, OTHER)
        world.ingest()
        assert world.held() == {"w": {"conflict"}}
        for action, pick in ((HeldAction.REDRIVE, ""), (HeldAction.ACCEPT, ""), (HeldAction.PICK, "first")):
            with pytest.raises(Refused, match="can only be discarded"):
                world.decide(action, "w", pick=pick)
        world.decide(HeldAction.DISCARD, "w")
        assert world.held() == {"w": {"discarded"}}
        assert world.published() == {"w": ONE + TWO}


class TestPlanning:
    def test_carried_out_twice_it_is_one_head(self, world: World) -> None:
        parked(world)
        edges = FakeEdges(world.bench, world.stream, T + 9, Carrying())
        found = plan_held(edges, HeldAction.REDRIVE, Selection(ids=("w",)), who="ops", why="ok")
        carry_out(edges, found.plan)
        heads = len(world.bench.tables.snapshots)
        carry_out(edges, found.plan)
        assert len(world.bench.tables.snapshots) == heads

    def test_a_batch_that_commits_between_plan_and_decision_is_decided_upon(self, world: World) -> None:
        conflicting(world)
        edges = FakeEdges(world.bench, world.stream, T + 9, Carrying())
        found = plan_held(edges, HeldAction.DISCARD, Selection(ids=("w",)), who="ops", why="ok")
        world.send("w", 0, OTHER)
        world.ingest()
        carry_out(edges, found.plan)
        world.check()
        assert world.held() == {"w": {"discarded"}}

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
        wanted = held_selection(history, None, None, "", first, end, None, "")
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


class TestPickNamesOneCopy:
    def test_a_pick_among_other_copies_than_it_was_planned_on_publishes_nothing(self):
        world = World()
        late = b"\x09\x00"
        world.send("w", 0, ONE, at=T)
        world.send("w", 1, TWO, at=T + 1)
        world.send("w", 1, OTHER, at=T + 2)
        world.ingest()
        edges = FakeEdges(world.bench, world.stream, world.now_ms + 1, Carrying())
        plan = plan_held(edges, HeldAction.PICK, Selection(ids=("w",)), who="ops", why="it is", pick="last").plan
        edges.begin(plan)
        stitched = step_reassemble(edges, plan.plan_id, Read((), 0, 0, 0.0))
        validated = step_validate(edges, plan.plan_id, stitched, gate="stop", why="it is")
        world.send("w", 1, late, at=T + 3)
        world.ingest()
        with pytest.raises(Terminal, match=r"changed since last was picked.*plan again"):
            step_publish(edges, plan.plan_id, stitched, validated)
        assert world.published() == {}
        world.decide(HeldAction.PICK, "w", pick="last")
        assert world.published() == {"w": ONE + late}
        world.check()

    def test_a_place_that_two_topics_have_is_refused_and_named_with_its_topic_it_is_picked(self):
        world = World()
        for n, samples in enumerate((ONE, TWO)):
            world.send("w", 0, samples, count=1, at=T + n)
        world.ingest()
        old = world.bench.tables.head().topic_id
        world.bench.log.recreate(1)
        found = plan_rewind(
            world.stream,
            Target(word="new-topic"),
            log=world.bench.log,
            tables=world.bench.tables,
            who="ops",
            why="made anew",
        )
        apply_rewind(world.stream, found, accept_skip=True, log=world.bench.log, tables=world.bench.tables)
        world.send("w", 0, OTHER, count=1, at=T + 5)
        world.ingest()
        with pytest.raises(Refused, match=f"of 2 topics; name the one that is meant, as .*{old}:0:0"):
            world.decide(HeldAction.PICK, "w", pick="0:0")
        new = world.bench.tables.head().topic_id
        world.decide(HeldAction.PICK, "w", pick=f"{new}:0:0")
        assert world.published() == {"w": OTHER}


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


@pytest.mark.parametrize("action", [HeldAction.ACCEPT, HeldAction.REDRIVE])
def test_what_ends_beyond_what_time_can_say_is_no_decision_but_to_let_it_go(world: World, action: HeldAction) -> None:
    said = json.loads(metadata(T))
    said["sampling_rate_hz"] = 1e-6
    said.pop("sample_count", None)
    world.send("w", 0, ONE * 4000, count=1, meta=json.dumps(said).encode())
    world.ingest()
    assert world.held() == {"w": {"implausible_time"}}
    with pytest.raises(Refused, match=r"4000 samples at 1e-06 Hz end beyond what time can say"):
        world.decide(action, "w")
    world.decide(HeldAction.DISCARD, "w")


def test_after_a_leak_what_the_owner_sends_again_is_published_by_restore_and_redrive(world: World) -> None:
    """A discarded id takes nothing in by itself; what the threat model advises publishes it."""
    world.send("w", 0, ONE)
    world.ingest()
    world.decide(HeldAction.DISCARD, "w")
    world.send("w", 0, ONE)
    world.send("w", 1, TWO)
    world.ingest()
    assert world.published() == {}
    assert world.mark().counts == {"discarded": 1, "after_discard": 1}
    world.decide(HeldAction.RESTORE, "w")
    world.decide(HeldAction.REDRIVE, "w")
    assert world.published() == {"w": ONE + TWO}
