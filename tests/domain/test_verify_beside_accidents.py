"""A range is verified where the log was cut off, copies contradict each other, records are large, an ingest goes on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.domain.held_world import ONE, OTHER, TWO, T, World
from tests.domain.test_verify_range import alter, found, two_published, verify
from tests.fakes.batch import Carrying
from tests.fakes.fake_comparing import FakeComparing
from tests.fakes.faults import Steps
from tests.fakes.kept_partition import Visibility
from wavestitch.batch.carry import Silent
from wavestitch.batch.verify import Verified, VerifyRequest, verified_to_json, verify_range
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Limits
from wavestitch.contracts.verification import Agreement


@pytest.fixture
def world() -> World:
    return World()


def ended(done: Verified) -> int:
    code = verified_to_json(done)["exit_code"]
    assert isinstance(code, int)
    return code


@pytest.mark.parametrize("asked", [(), (span(0, 0, 4),), (span(0, 2, 4),)])
def test_a_row_whose_offsets_were_cut_off_is_not_found_which_is_an_error(
    world: World, asked: Sequence[OffsetRange]
) -> None:
    for wid in ("v", "w"):  # each by a batch of its own: where it ended is proven
        for seq, value in enumerate((ONE, TWO)):
            world.send(wid, seq, value)
        world.ingest()
    world.bench.log.truncate(Partition(0), Offset(2))
    done = verify(world, *asked)
    assert found(done)["w"] is Agreement.NOT_FOUND
    (one,) = [one for one in done.waveforms if one.found is Agreement.NOT_FOUND]
    assert one.why == "its row names partition 0 offset 2, partition 0 offset 3; the log ends at 2 there"
    assert done.cut == (span(0, 2, 4),)
    assert (
        "partition 0 [2, 4) is not what ingests have read, or not proven to be: the log was cut off" in done.remarks[0]
    )
    assert ended(done) == 6


@pytest.mark.parametrize("anew", [0, 5])
def test_where_nothing_of_the_table_lay_a_log_that_was_cut_off_is_named_and_no_proof(world: World, anew: int) -> None:
    two_published(world)
    send_chunk(world.bench.log, "given up", at_ms=T, seen=Visibility.ABORTED)
    world.ingest()
    world.bench.log.truncate(Partition(0), Offset(4))
    for n in range(anew):
        world.send(f"new{n}", 0, ONE, count=1)
    done = verify(world)
    assert {found(done)[i] for i in ("v", "w")} == {Agreement.SAME}
    assert done.cut == (span(0, 4, 5),)
    assert ended(done) == (6 if anew else 7), "what was written anew before the position is nowhere"


def test_what_no_ingest_has_read_is_not_told_as_cut_off(world: World) -> None:
    two_published(world)
    world.bench.log.truncate(Partition(0), Offset(4))
    world.send("late", 0, ONE, count=1)
    done = verify(world, span(0, 0, 9))
    assert (done.cut, ended(done)) == ((), 0)


# --- copies that contradict each other


def contradicted(world: World) -> None:
    world.send("w", 0, ONE)
    world.send("w", 1, TWO)
    world.ingest()
    world.send("w", 0, ONE)
    world.send("w", 1, OTHER)
    world.ingest()
    assert (world.published(), world.held()) == ({"w": ONE + TWO}, {"w": {"conflict"}})


@pytest.mark.parametrize(
    ("gone", "asked", "said"),
    [
        (0, span(0, 0, 4), Agreement.SAME),
        (2, span(0, 0, 4), Agreement.MISSING_IN_KAFKA),
        (1, span(0, 0, 4), Agreement.SAME),
        (0, span(0, 2, 4), Agreement.OUTSIDE),
    ],
)
def test_a_copy_that_contradicts_the_published_one_says_nothing_of_the_row(
    world: World, gone: int, asked: OffsetRange, said: Agreement
) -> None:
    contradicted(world)
    world.bench.log.retain_from(Partition(0), Offset(gone))
    assert found(verify(world, asked)) == {"w": said}


def test_a_row_that_lacks_its_last_chunk_differs_also_where_its_chunks_came_again(world: World) -> None:
    for _ in range(2):
        for seq, value in enumerate((ONE, TWO)):
            world.send("w", seq, value, count=2 if seq else None)
    world.ingest()
    (row,) = [row for _, row in world.bench.tables.rows]
    alter(world, "w", chunks=row.chunks[:-1], topic_ids=row.topic_ids[:-1])
    assert found(verify(world, span(0, 0, 4))) == {"w": Agreement.DIFFERS}


@pytest.mark.parametrize("most", [2, 3, 4])
@pytest.mark.parametrize("pick", ["first", "last"])
def test_the_copy_that_an_operator_picked_is_compared_however_the_range_is_cut(
    world: World, most: int, pick: str
) -> None:
    world.send("w", 0, ONE)
    world.send("w", 1, TWO)
    world.send("w", 1, OTHER)
    world.send("w", 0, ONE)
    world.ingest()
    world.decide(HeldAction.PICK, "w", pick=pick)
    assert world.published() == {"w": ONE + (TWO if pick == "first" else OTHER)}
    world.stream = world.stream.model_copy(update={"limits": Limits(max_batch_records=most)})
    assert found(verify(world)) == {"w": Agreement.SAME}


# --- beside an ingest


def test_an_ingest_that_ends_after_the_snapshot_was_taken_does_not_matter(world: World) -> None:
    two_published(world)
    edges = FakeComparing(world.bench, world.stream, world.now_ms, Carrying())
    assert edges.snapshot.head == world.bench.tables.head()
    world.send("late", 0, ONE, count=1)
    world.ingest()
    done = verify_range(edges, VerifyRequest(), watcher=Silent())
    assert found(done) == {"v": Agreement.SAME, "w": Agreement.SAME}


def test_who_verifies_does_not_ask_the_group(world: World) -> None:
    """So it needs no right to, and no tag of it keeps anybody from looking."""
    two_published(world)
    edges = FakeComparing(world.bench, world.stream, world.now_ms, Carrying())
    run = Steps(lambda: verify_range(edges, VerifyRequest(), watcher=Silent()))
    run.finish()
    assert run.error is None
    assert not {"log.group_offsets", "log.members", "log.commit_group"} & set(run.trace)


# --- large records


def test_a_range_whose_records_are_larger_than_the_newest_is_read_in_smaller_batches(world: World) -> None:
    world.stream = world.stream.model_copy(update={"limits": Limits(max_batch_bytes=60_000, max_waveform_bytes=8_000)})
    for n in range(60):
        world.send(f"large{n}", 0, ONE * 700, count=1)
    world.send("across", 0, ONE * 700)
    while len(world.published()) < 60:
        with suppress(Refused):  # at its budget: the next one covers less
            world.ingest()
    for n in range(60):
        world.send(f"small{n}", 0, ONE, count=1)
    world.send("across", 1, ONE)
    while len(world.published()) < 121:
        world.ingest()
    world.bench.stops.clear()
    edges = FakeComparing(world.bench, world.stream, world.now_ms, Carrying())
    done = verify_range(edges, VerifyRequest(), watcher=Silent())
    assert done.counts["same"] == 121
    assert ended(done) == 0
    assert world.bench.stops, "a reader has stopped, and the rest was read in smaller batches"


def test_one_waveform_that_no_batch_has_room_for_is_refused_by_the_limit(world: World) -> None:
    world.send("w", 0, ONE * 900)
    world.send("w", 1, ONE * 900)
    world.ingest()
    world.stream = world.stream.model_copy(update={"limits": Limits(max_batch_bytes=3_000, max_waveform_bytes=1_000)})
    edges = FakeComparing(world.bench, world.stream, world.now_ms, Carrying())
    with pytest.raises(Refused, match=r"limits\.max_batch_bytes"):
        verify_range(edges, VerifyRequest(), watcher=Silent())
