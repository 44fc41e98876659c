"""How much may be held, at its edges: what fits exactly, what is beyond, and what is said of where it comes from."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.records import metadata
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.domain.held_world import ONE, OTHER, TWO, T, World
from tests.domain.test_junk import BESIDE, KEPT, Flooded
from tests.fakes.batch import Bench
from tests.fakes.fake_log import FakeLog
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held import HeldKey
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.held_quota import places_of, said_of_junk, said_of_places
from wavestitch.contracts.quantities import EpochMs, Generation
from wavestitch.contracts.stream import Limits

CHUNK = len(ONE) + len(metadata(T))
"""What an open chunk counts for."""


def limited(**limits: Any) -> World:
    world = World()
    world.stream = world.stream.model_copy(update={"limits": Limits(**limits)})
    return world


# records that are no chunks


def test_bytes_that_fill_the_room_exactly_are_kept_and_then_none_is() -> None:
    world = Flooded()
    world.misdirect(b"first", b"fives")
    world.ingest()
    assert sum(BESIDE + len(value) for value, _ in world.junk().values() if value) == KEPT
    world.misdirect(b"")
    world.ingest()
    assert [stored for _, stored in world.junk().values()] == [True, True, False]


def test_after_the_first_that_finds_no_room_none_is_kept_however_small() -> None:
    world = Flooded()
    world.misdirect(b"first", b"longer", b"")
    world.ingest()
    assert [stored for _, stored in world.junk().values()] == [True, False, False]


# chunks


def test_bytes_are_limited_by_themselves() -> None:
    world = limited(max_held_bytes=2 * CHUNK)
    world.send("a", 0, ONE)
    world.send("b", 0, ONE)
    world.ingest()
    world.send("c", 0, ONE)
    allowed = f"allowed are {Limits().max_held_rows} and {2 * CHUNK}. Most of the new ones, 1, are of partition 0"
    with pytest.raises(Refused, match=rf"3 rows in {3 * CHUNK} bytes would be held; {allowed}, offsets 2 to 2 "):
        world.ingest()


def test_beyond_a_limit_of_bytes_that_was_lowered_it_may_only_shrink() -> None:
    world = World()
    for n in range(3):
        world.send(f"w{n}", 0, ONE)
    world.ingest()
    world.stream = world.stream.model_copy(update={"limits": Limits(max_held_bytes=CHUNK)})
    world.send("w0", 1, TWO)
    world.send("x", 0, ONE)
    world.ingest()
    assert set(world.published()) == {"w0"}
    world.send("y", 0, ONE)
    with pytest.raises(Refused, match=rf"4 rows in {4 * CHUNK} bytes"):
        world.ingest()


def test_the_partition_that_most_come_from_is_named_with_its_offsets_and_reasons() -> None:
    world = World()
    world.bench = Bench(FakeLog("waves", 3))
    world.stream = make_stream(limits={"max_held_rows": 3})
    send = world.bench.log
    send_chunk(send, "a", at_ms=T, partition=0, count=2)
    send_chunk(send, "good", at_ms=T, partition=1)
    send_chunk(send, "b", at_ms=T, partition=1, count=2)
    send_chunk(send, "c", 0, ONE, at_ms=T, partition=1, count=2)
    send_chunk(send, "c", 0, OTHER, at_ms=T, partition=1, count=2)
    send_chunk(send, "d", at_ms=T, partition=1, count=2)
    send_chunk(send, "good too", at_ms=T, partition=1)
    send_chunk(send, "also good", at_ms=T, partition=2)
    with pytest.raises(Refused) as refused:
        world.ingest()
    said = str(refused.value)
    assert "Most of the new ones, 4, are of partition 1, offsets 1 to 4 (2 open, 2 conflict): stop" in said
    assert "`wavestitch run ecg --partitions 2 --until 2:1`, take in what" in said
    assert "`wavestitch run ecg --until 0:0,1:1,2:1`, or skip all up to there" in said
    assert "`wavestitch rewind ecg --to 1:5 --accept-skip 1:0-5 --apply`" in said
    assert "restore" not in said
    assert {name: refused.value.facts[name] for name in ("partition", "first", "last")} == {
        "partition": 1,
        "first": 1,
        "last": 4,
    }


# what is said


def key(partition: int, offset: int) -> HeldKey:
    return ("topic", partition, offset), ("", 0, b"")  # type: ignore[return-value]


def test_places_are_counted_by_partition_from_the_first_offset_to_behind_the_last() -> None:
    assert places_of([]) == {}
    found = places_of([key(10, 7), key(2, 9), key(2, 3), key(2, 5)])
    assert found == {"2": [3, 3, 10], "10": [1, 7, 8]}
    assert list(found) == ["2", "10"]


def test_places_are_said_with_their_sum() -> None:
    assert said_of_places({}) == ""
    said = said_of_places({"2": [3, 3, 10], "10": [1, 7, 8]})
    assert said.startswith("4 records that are no chunks were held without their bytes")
    assert "(3 of partition 2, offsets 3 to 9; 1 of partition 10, offsets 7 to 7): stop" in said


def row(plan_id: str, **without_bytes: list[int]) -> BatchRow:
    return BatchRow(
        plan_id, "d", 2, Generation(1), "ingest", "ecg", EpochMs(0), without_bytes={"0": [1, 5, 6]} | without_bytes
    )


def mark(junk_bytes: int) -> HeldMark:
    return HeldMark(1, 1, 1, "", junk_bytes=junk_bytes)


def test_that_no_bytes_are_kept_any_more_is_said_from_where_the_limit_is_reached_or_was() -> None:
    stream = make_stream(limits={"max_junk_bytes": 100})
    full = BatchRow("p", "d", 2, Generation(1), "ingest", "ecg", EpochMs(0))
    assert said_of_junk(stream, None, [row("a" * 40)]) == ""
    assert said_of_junk(stream, mark(99), [full]) == ""
    reached = said_of_junk(stream, mark(100), [full])
    assert reached.startswith("records that are no chunks take 100 bytes of the 100 that limits.max_junk_bytes allows")
    assert "By batch" not in reached
    assert "passes them. They expire" in reached
    once = said_of_junk(stream, mark(99), [full, row("a" * 40), row("b" * 40)])
    assert f"passes them. By batch {'a' * 16}, 1 records that are no chunks were held without their bytes" in once
