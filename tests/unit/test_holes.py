"""An offset that was planned and not delivered is explained or fails the batch by name (I8)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavestitch.contracts.errors import DataLost, Transient
from wavestitch.contracts.holes import (
    MOST_ADJACENT_MARKERS,
    HoleFinder,
    Interval,
    doubtful_holes,
    explain_holes,
    lost_to_retention,
)
from wavestitch.contracts.offset_range import OffsetRange

SLICE = OffsetRange(3, 100, 1000)
LONG = (200, 200 + MOST_ADJACENT_MARKERS + 1)


def explain(holes: list[Interval], **changes: object) -> list[list[int]]:
    usual: dict[str, object] = {
        "topic": "ecg",
        "slice_": SLICE,
        "transactional": True,
        "uncommitted": {},
        "committed": [],
    }
    return explain_holes(holes, **{**usual, **changes})  # type: ignore[arg-type]


@given(st.sets(st.integers(0, 80)), st.integers(0, 40), st.integers(0, 40))
def test_holes_are_exactly_the_offsets_that_did_not_come(offsets: set[int], start: int, size: int) -> None:
    end = start + size
    delivered = sorted(o for o in offsets if start <= o < end)
    finder = HoleFinder(start)
    for o in delivered:
        finder.add(o)
    holes = finder.close(end)
    assert sorted(o for a, b in holes for o in range(a, b)) == sorted(set(range(start, end)) - set(delivered))
    assert all(a < b for a, b in holes)
    assert all(before[1] < after[0] for before, after in pairwise(holes)), "two that touch"


def test_without_transactions_any_hole_fails_and_says_what_to_set() -> None:
    with pytest.raises(DataLost) as lost:
        explain([(105, 106)], transactional=False)
    assert "topic ecg partition 3 [100, 1000): offsets [105, 106) hold no record" in lost.value.message
    assert "set `transactional: true` in the stream's file" in lost.value.message
    assert lost.value.facts == {"topic": "ecg", "partition": 3, "offsets": [[105, 106]]}


def test_no_hole_needs_no_explanation() -> None:
    assert explain([], transactional=False) == []


def test_a_short_hole_between_records_can_be_markers() -> None:
    assert doubtful_holes([(105, 106)], end=SLICE.end) == []
    assert explain([(105, 106)]) == [[105, 106]]


def test_a_hole_at_the_end_and_a_long_one_are_read_again() -> None:
    assert doubtful_holes([(105, 106), LONG, (999, 1000)], end=SLICE.end) == [LONG, (999, 1000)]


def test_a_long_hole_of_records_that_only_uncommitted_readers_see_was_aborted() -> None:
    assert explain([LONG], uncommitted={LONG: [(LONG[1] - 1, LONG[1])]}) == [list(LONG)]


def test_a_long_run_that_nobody_sees_is_lost() -> None:
    with pytest.raises(DataLost) as lost:
        explain([LONG], uncommitted={LONG: [LONG]})
    assert f"offsets [{LONG[0]}, {LONG[1]}) hold no record for any reader" in lost.value.message
    assert lost.value.facts["offsets"] == [list(LONG)]


def test_a_hole_that_a_second_reader_fills_was_jumped_and_is_read_again_another_time() -> None:
    with pytest.raises(Transient, match=r"offsets \[999, 1000\) were skipped by the first reading"):
        explain([(999, 1000)], uncommitted={(999, 1000): []}, committed=[(999, 1000)])


def test_many_holes_are_named_in_part_and_counted() -> None:
    with pytest.raises(DataLost, match=r"\[100, 101\), .* and 95 more hold no record"):
        explain([(n, n + 1) for n in range(100, 300, 2)], transactional=False)


def test_retention_names_what_it_took_and_not_what_was_read_before() -> None:
    lost = lost_to_retention(topic="ecg", slice_=SLICE, position=150, log_start=170)
    assert lost.facts["offsets"] == [[150, 170]]
    assert lost_to_retention(topic="ecg", slice_=SLICE, position=150, log_start=5000).facts["offsets"] == [[150, 1000]]
