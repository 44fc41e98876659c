"""The places that a batch read, whatever order its rows are in."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.builders.ranges import span
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.read_places import RangePlaces, ReadPlaces, spans_of


def table(places: list[tuple[int, int]]) -> ChunkTable:
    none = np.full(len(places), -1, np.int32)
    zeros = np.zeros(len(places), np.int64)
    columns: dict[str, Any] = {
        **dict.fromkeys(("seq", "whole_count", "waveform", "meta", "digest", "file", "row"), none),
        **dict.fromkeys(("timestamp_ms", "crc", "length"), zeros),
    }
    return replace(
        ChunkTable.of([]),
        **columns,
        partition=np.array([p for p, _ in places], np.int32),
        offset=np.array([o for _, o in places], np.int64),
        piece=np.zeros((len(places), 32), np.uint8),
    )


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("shuffled", [False, True])
def test_they_are_the_set_of_the_rows_places(shuffled: bool, twice: bool) -> None:
    chance = random.Random(3)
    places = sorted({(chance.randrange(3) * 2, chance.randrange(40)) for _ in range(60)}) * (1 + twice)
    if shuffled:
        chance.shuffle(places)
    found = ReadPlaces("t", table(places))
    assert set(found) == {("t", p, o) for p, o in places}
    assert len(found) == len(set(places))
    for p in range(6):
        for o in range(-1, 42):
            assert (("t", p, o) in found) == ((p, o) in set(places))
    assert ("other", *places[0]) not in found
    by_partition = {p: [o for q, o in places if q == p] for p, _ in places}
    assert found.spans() == {
        Partition(p): (Offset(min(some)), Offset(max(some) + 1)) for p, some in by_partition.items()
    }


def test_of_nothing_there_is_none() -> None:
    found = ReadPlaces("t", table([]))
    assert not set(found)
    assert found.spans() == {}
    assert ("t", 0, 0) not in found


@pytest.mark.parametrize(
    ("ranges", "spans"),
    [
        ([span(0, 3, 5)], {0: (3, 5)}),
        ([span(0, 3, 5), span(0, 7, 9)], {0: (3, 9)}),
        ([span(0, 7, 9), span(0, 3, 5), span(0, 5, 5)], {0: (3, 9)}),
        ([span(2, 7, 9), span(0, 3, 5), span(2, 0, 2), span(2, 4, 6), span(0, 4, 6)], {0: (3, 6), 2: (0, 9)}),
        ([span(1, 4, 4)], {}),
        ([], {}),
    ],
)
def test_all_offsets_of_ranges_are_the_set_of_their_places(
    ranges: list[OffsetRange], spans: dict[int, tuple[int, int]]
) -> None:
    found = RangePlaces("t", ranges)
    wanted = {("t", r.partition, Offset(o)) for r in ranges for o in range(r.start, r.end)}
    assert (set(found), len(found), found.spans()) == (wanted, len(wanted), spans)
    for p in range(-1, 4):
        for o in range(-1, 11):
            assert (("t", p, o) in found) == (("t", p, o) in wanted)
            assert ("other", p, o) not in found
    no_place: object = "t"
    assert no_place not in found
    assert spans_of(found) == ({"t"}, spans)
    assert spans_of(wanted) == ({"t"} if wanted else set(), spans)


def test_places_of_several_topics_are_named_with_the_offsets_of_all_of_them() -> None:
    places = [("t", Partition(0), Offset(4)), ("s", Partition(0), Offset(2)), ("s", Partition(3), Offset(1))]
    assert spans_of(places) == ({"s", "t"}, {0: (2, 5), 3: (1, 2)})
    of_rows = ReadPlaces("t", table([(0, 4), (0, 2)]))
    assert spans_of(of_rows) == ({"t"}, {0: (2, 5)})
