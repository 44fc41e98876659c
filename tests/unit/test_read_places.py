"""The places that a batch read, whatever order its rows are in."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.read_places import ReadPlaces


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
