"""Another definition of a stream beside what its batches made of a range: nothing is changed by looking."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.ranges import span
from tests.domain.held_world import ONE, OTHER, TWO, World
from tests.domain.test_verify_range import state, two_published
from tests.fakes.batch import Carrying
from tests.fakes.fake_comparing import FakeComparing
from wavestitch.batch.carry import Silent
from wavestitch.batch.compare import DefinitionCompared, compare_definition
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.definition_change import Change, exit_code_of_changes
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Limits


def compare(world: World, *ranges: OffsetRange, how: Carrying | None = None, **otherwise: Any) -> DefinitionCompared:
    """With a definition that says these things otherwise."""
    other = world.stream.model_copy(update=otherwise)
    edges = FakeComparing(world.bench, other, world.now_ms, how or Carrying())
    before = state(world)
    done = compare_definition(edges, world.stream, VerifyRequest(ranges=ranges), watcher=Silent())
    assert state(world) == before, "comparing changed something"
    return done


def found(done: DefinitionCompared) -> dict[str, Change]:
    return {one.waveform_id: one.change for one in done.waveforms}


def test_a_definition_that_decides_the_same_changes_nothing() -> None:
    world = World()
    two_published(world)
    done = compare(world, allowed_lateness=7200)
    assert found(done) == {"v": Change.SAME, "w": Change.SAME}
    assert done.otherwise == ("allowed_lateness: 3600 -> 7200",)
    assert exit_code_of_changes(done.counts) == 0


def test_what_a_lower_limit_refuses_is_newly_failing_and_what_a_higher_one_lets_through_is_newly_published() -> None:
    world = World()
    two_published(world)
    done = compare(world, limits=Limits(max_chunks=1))
    assert set(found(done).values()) == {Change.NEWLY_FAILING}
    assert all(one.why.startswith("too_large") and one.plan_id for one in done.waveforms)
    other = World()
    other.stream = other.stream.model_copy(update={"limits": Limits(max_chunks=1)})
    other.send("w", 0, ONE)
    other.send("w", 1, TWO)
    other.send("one", 0, ONE, count=1)
    other.ingest()
    done = compare(other, limits=Limits())
    assert found(done) == {"one": Change.SAME, "w": Change.NEWLY_PUBLISHED}
    assert exit_code_of_changes(done.counts) == 6


def test_what_another_expectation_refuses_is_newly_failing_by_its_reason() -> None:
    world = World()
    two_published(world)
    done = compare(world, how=Carrying(failing={"w"}))
    assert found(done) == {"v": Change.SAME, "w": Change.NEWLY_FAILING}
    assert [one.why for one in done.waveforms if one.why] == ["failed_expectation: the gate says no"]


def test_a_conflict_is_published_by_no_definition_and_a_discard_stays() -> None:
    world = World()
    for value in (TWO, OTHER):
        world.send("two truths", 1, value)
    world.send("two truths", 0, ONE)
    for seq, value in enumerate((ONE, TWO)):
        world.send("given up", seq, value)
    world.ingest(park=True)
    world.decide(HeldAction.DISCARD, "given up")
    done = compare(world, limits=Limits(max_chunks=9))
    assert found(done) == {"given up": Change.DISCARDED, "two truths": Change.NOT_PUBLISHED}
    assert exit_code_of_changes(done.counts) == 0


def test_what_retention_took_is_gone_and_a_range_above_the_limits_is_several_batches() -> None:
    world = World()
    two_published(world)
    world.bench.log.retain_from(Partition(0), Offset(1))
    done = compare(world, span(0, 0, 4), limits=Limits(max_batch_records=2))
    assert found(done) == {"v": Change.GONE, "w": Change.SAME}
    assert done.lost == (span(0, 0, 1),)
    assert exit_code_of_changes(done.counts) == 7


SMALL = Limits(max_chunks=1)


def held_as_too_large() -> World:
    world = World()
    world.stream = world.stream.model_copy(update={"limits": SMALL})
    world.send("w", 0, ONE)
    world.send("w", 1, TWO)
    world.ingest()
    assert world.held() == {"w": {"too_large"}}
    return world


def test_of_what_is_held_and_was_read_in_part_nothing_is_said() -> None:
    """A redrive takes all that is held, whatever range was looked at."""
    world = held_as_too_large()
    done = compare(world, span(0, 1, 2), limits=Limits())
    assert found(done) == {"w": Change.OUTSIDE}
    assert exit_code_of_changes(done.counts) == 7


def test_of_what_is_held_and_gone_from_the_log_in_part_nothing_is_said() -> None:
    world = held_as_too_large()
    world.bench.log.retain_from(Partition(0), Offset(1))
    done = compare(world, span(0, 0, 2), limits=Limits())
    assert found(done) == {"w": Change.GONE}
    assert exit_code_of_changes(done.counts) == 7
    world.stream = world.stream.model_copy(update={"limits": Limits()})
    world.decide(HeldAction.REDRIVE, "w")
    assert world.published() == {"w": ONE + TWO}, "which is why it may not be told as never published"


@pytest.mark.parametrize("most", [2, 3, 100])
def test_what_another_copy_contradicts_is_newly_published_by_no_definition_however_the_range_is_cut(most: int) -> None:
    world = held_as_too_large()
    world.send("w", 0, ONE)
    world.send("w", 1, OTHER)
    world.ingest()
    limits = Limits(max_batch_records=most)
    assert found(compare(world, limits=limits)) == {"w": Change.NOT_PUBLISHED}
    assert found(compare(world, span(0, 0, 2), limits=limits)) == {"w": Change.OUTSIDE}
    world.stream = world.stream.model_copy(update={"limits": limits})
    world.decide(HeldAction.REDRIVE, "w")
    assert world.published() == {}


def test_why_it_would_still_be_refused_is_the_word_of_the_other_definition() -> None:
    world = World()
    two_sent(world)
    world.ingest(failing={"v"})
    (one,) = [w for w in compare(world, limits=SMALL).waveforms if w.waveform_id == "v"]
    assert one.change is Change.NOT_PUBLISHED
    assert one.why.startswith("too_large: ")


def test_a_row_that_somebody_deleted_is_no_work_of_a_definition() -> None:
    world = World()
    two_published(world)
    del world.bench.tables.rows[0]
    done = compare(world)
    assert sorted(found(done).values()) == [Change.MISSING, Change.SAME]
    assert exit_code_of_changes(done.counts) == 7


def test_a_waveform_that_was_sent_twice_is_published_once_by_whatever_definition() -> None:
    world = World()
    for _ in range(2):
        two_published(world)
    done = compare(world, limits=Limits(max_batch_records=3))
    assert found(done) == {"v": Change.SAME, "w": Change.SAME}
    assert done.records["published"] == 8


def two_sent(world: World) -> None:
    for wid in ("v", "w"):
        world.send(wid, 0, ONE)
        world.send(wid, 1, TWO)
