"""Which chunks belong to the copy that an operator picks; which waveforms a look counts whole."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.table_rows import facts
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.held import IdsLook
from wavestitch.contracts.held_choice import pick_copy
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.reasons import Reason


def chunk(at: int, seq: int, **said: Any) -> ChunkFacts:
    """From offset `at`, with bytes of its sequence number's own unless said otherwise."""
    return facts(0, at, b"%d" % seq)._replace(seq=seq, **said)


@pytest.mark.parametrize(
    ("chunks", "kept"),
    [
        ([chunk(0, 0, count=2), chunk(1, 1)], [0, 1]),
        ([chunk(0, 0), chunk(1, 1, count=2)], [0, 1]),
        ([chunk(0, 0), chunk(1, 1, count=2), chunk(2, 2)], [0, 1]),
        ([chunk(0, 0, count=3), chunk(1, 1), chunk(2, 2)], [0, 1, 2]),
        ([chunk(0, 0, count=2), chunk(1, 1, count=3)], [0]),
        ([chunk(0, 0), chunk(1, 1, count=2), chunk(2, 1, count=3)], [0, 1]),
        ([chunk(0, 0), chunk(1, 1, count=2), chunk(2, 1, count=2)], [0, 1, 2]),
        ([chunk(0, 0), chunk(1, 1), chunk(2, 0, count=1)], [0, 1]),
        ([chunk(0, 0), chunk(1, 1), chunk(2, 0, count=2)], [0, 1, 2]),
        ([chunk(0, 0), chunk(1, 0, count=1)], [0, 1]),
        ([chunk(0, 0), chunk(1, 0, count=0)], [0]),
        ([chunk(0, 0, digest="a"), chunk(1, 1), chunk(2, 2, digest="b"), chunk(3, 3, digest="a")], [0, 1, 3]),
        ([chunk(0, 0), chunk(1, 1, digest="a"), chunk(2, 2, digest="b")], [0, 1]),
        ([chunk(0, 0), chunk(1, 1, meta="{}"), chunk(2, 2)], [0, 2]),
        ([chunk(0, 0), chunk(1, 0, piece=b"x" * 32), chunk(2, 1)], [0, 2]),
    ],
)
def test_what_agrees_with_the_first_belongs_to_it(chunks: list[ChunkFacts], kept: list[int]) -> None:
    found, dropped = pick_copy(reversed(chunks), "first")
    assert [c.offset for c in found] == kept
    assert sorted(c.offset for c in (*found, *dropped)) == list(range(len(chunks)))


@pytest.mark.parametrize(
    ("look", "counts_all"),
    [
        (IdsLook(), True),
        (IdsLook(ids=frozenset({"w"})), True),
        (IdsLook(frozenset({Reason.OPEN})), False),
        (IdsLook(since_ms=EpochMs(0)), False),
        (IdsLook(frozenset({Reason.OPEN}), EpochMs(0)), False),
    ],
)
def test_a_look_counts_all_rows_of_a_waveform_where_it_asks_for_no_kind_of_them(
    look: IdsLook, *, counts_all: bool
) -> None:
    assert look.counts_all is counts_all
