"""Everything that is held can be decided: redrive, accept, pick, discard, restore, each a batch without Kafka.

On the memory edges, by the product's own steps; all guarantees hold after every decision.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders.records import metadata
from tests.domain.held_world import ONE, OTHER, TWO, T, World, conflicting, parked
from tests.fakes.batch import Carrying, FakeEdges
from wavestitch.batch.held_decision import plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.results import Read
from wavestitch.batch.rewind import apply_rewind, plan_rewind
from wavestitch.batch.rewind_target import Target
from wavestitch.batch.steps import step_publish, step_reassemble, step_validate
from wavestitch.contracts.errors import Refused, Terminal
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Limits


@pytest.fixture
def world() -> World:
    return World()


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
        world.bench.log.retain_from(Partition(0), Offset(2))
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


def test_what_became_whole_while_it_was_discarded_and_may_wait_no_longer_is_published_by_a_redrive(
    world: World,
) -> None:
    """A restore publishes nothing; in time, the next ingest does that."""
    world.send("w", 0, ONE)
    world.ingest()
    world.decide(HeldAction.DISCARD, "w")
    world.send("w", 1, TWO)
    world.ingest()
    world.now_ms = T + 10**7
    world.send("v", 0, ONE, at=world.now_ms)
    world.ingest()
    world.decide(HeldAction.RESTORE, "w")
    assert world.held()["w"] == {"incomplete"}
    world.ingest()
    assert world.published() == {}
    world.decide(HeldAction.REDRIVE, "w")
    assert world.published() == {"w": ONE + TWO}


def test_what_became_whole_while_it_was_discarded_and_may_still_wait_is_published_by_the_next_ingest(
    world: World,
) -> None:
    world.send("w", 0, ONE)
    world.ingest()
    world.decide(HeldAction.DISCARD, "w")
    world.send("w", 1, TWO)
    world.ingest()
    world.decide(HeldAction.RESTORE, "w")
    assert world.held() == {"w": {"open"}}
    world.send("v", 0, ONE)
    world.ingest()
    assert world.published() == {"w": ONE + TWO}
