"""Cutting and packing never lose, repeat or invent an offset (I1)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.ranges import span
from wavestitch.contracts.offset_range import (
    OffsetRange,
    bound_ranges,
    cut_links,
    cut_slices,
    joined,
    pack_groups,
    pack_units,
    parse_place,
    without,
)
from wavestitch.contracts.quantities import Partition


@st.composite
def backlogs(draw: st.DrawFn) -> list[OffsetRange]:
    sizes = draw(st.lists(st.integers(0, 5000), min_size=1, max_size=8))
    starts = [draw(st.integers(0, 10_000)) for _ in sizes]
    return [span(p, a, a + n) for p, (a, n) in enumerate(zip(starts, sizes, strict=True))]


def offsets(ranges: list[OffsetRange]) -> list[tuple[int, int]]:
    return sorted((r.partition, o) for r in ranges for o in range(r.start, r.end))


@given(backlogs(), st.integers(1, 20_000))
def test_a_bound_takes_the_beginning_of_each_range_and_never_more_than_allowed(
    backlog: list[OffsetRange], most: int
) -> None:
    bounded = bound_ranges(backlog, max_records=most)
    by_partition = {r.partition: r for r in backlog}
    assert sum(r.size for r in bounded) <= most
    assert all(r.size > 0 and r.start == by_partition[r.partition].start for r in bounded)
    if sum(r.size for r in backlog) <= most:
        assert bounded == [r for r in backlog if r.size]


@given(backlogs(), st.integers(1, 9), st.integers(1, 600))
def test_slices_and_units_cover_the_ranges_exactly_once(
    backlog: list[OffsetRange], workers: int, min_slice: int
) -> None:
    ranges = [r for r in backlog if r.size]
    slices = cut_slices(ranges, workers=workers, min_slice=min_slice)
    assert offsets(slices) == offsets(ranges)
    units = pack_units(slices, workers=workers, weight={})
    assert offsets([s for unit in units for s in unit]) == offsets(ranges)
    assert len(units) <= max(workers, 1)


def test_partitions_that_fill_the_workers_are_not_cut() -> None:
    ranges = [span(p, 0, 1000) for p in range(4)]
    assert cut_slices(ranges, workers=4, min_slice=1) == ranges


def test_one_partition_is_read_by_all_workers() -> None:
    assert len(cut_slices([span(0, 0, 4000)], workers=4, min_slice=10)) == 4


def test_a_small_backlog_leaves_its_share_to_the_others() -> None:
    bounded = bound_ranges([span(0, 0, 10), span(1, 0, 1000)], max_records=500)
    assert bounded == [span(0, 0, 10), span(1, 0, 490)]


RANGES = st.lists(
    st.builds(lambda p, a, n: OffsetRange(p, a, a + n), st.integers(0, 3), st.integers(0, 200), st.integers(0, 60)),
    max_size=8,
)


def each_of(ranges: Iterable[OffsetRange]) -> set[tuple[int, int]]:
    return {(r.partition, o) for r in ranges for o in range(r.start, r.end)}


@given(RANGES, RANGES)
def test_ranges_are_joined_and_taken_away_as_sets_of_offsets_are(
    some: list[OffsetRange], gone: list[OffsetRange]
) -> None:
    assert each_of(joined(some)) == each_of(some)
    assert len(each_of(some)) == sum(r.size for r in joined(some))
    assert each_of(without(some, gone)) == each_of(some) - each_of(gone)
    assert each_of(joined(some, gap=5)) >= each_of(some)


@given(RANGES, st.integers(1, 40))
def test_a_chain_covers_all_offsets_once_and_no_link_is_too_large(some: list[OffsetRange], most: int) -> None:
    links = cut_links(some, most=most)
    assert each_of(r for link in links for r in link) == each_of(some)
    assert sum(r.size for link in links for r in link) == len(each_of(some))
    assert all(0 < sum(r.size for r in link) <= most for link in links)
    assert len(links) == -(-len(each_of(some)) // most)


@given(st.lists(RANGES, max_size=6), st.integers(1, 80))
def test_what_belongs_together_is_in_one_part_whole(groups: list[list[OffsetRange]], most: int) -> None:
    parts = pack_groups(groups, most=most)
    for group in groups:
        assert not each_of(group) or any(each_of(group) <= each_of(part) for part in parts)
    largest = max([most, *(len(each_of(g)) for g in groups)])
    assert all(sum(r.size for r in part) <= largest for part in parts)


@pytest.mark.parametrize(
    ("some", "gap", "joined_up"),
    [
        ([span(0, 5, 9), span(0, 0, 5)], 0, [span(0, 0, 9)]),
        ([span(0, 0, 5), span(0, 6, 9)], 0, [span(0, 0, 5), span(0, 6, 9)]),
        ([span(0, 0, 5), span(0, 7, 9)], 2, [span(0, 0, 9)]),
        ([span(0, 0, 5), span(0, 7, 9)], 1, [span(0, 0, 5), span(0, 7, 9)]),
        ([span(0, 0, 5), span(1, 5, 9)], 3, [span(0, 0, 5), span(1, 5, 9)]),
        ([span(0, 0, 9), span(0, 2, 4)], 0, [span(0, 0, 9)]),
        ([span(0, 0, 0), span(0, 4, 5)], 9, [span(0, 4, 5)]),
    ],
)
def test_near_ranges_are_one(some: list[OffsetRange], gap: int, joined_up: list[OffsetRange]) -> None:
    assert joined(some, gap=gap) == joined_up


@pytest.mark.parametrize(
    ("some", "within", "left"),
    [
        (span(0, 2, 8), span(0, 4, 6), span(0, 4, 6)),
        (span(0, 2, 8), span(0, 0, 5), span(0, 2, 5)),
        (span(0, 2, 8), span(0, 5, 9), span(0, 5, 8)),
        (span(0, 2, 8), span(0, 8, 9), span(0, 8, 8)),
        (span(0, 2, 8), span(0, 0, 2), span(0, 2, 2)),
        (span(0, 2, 8), span(0, 0, 1), span(0, 1, 1)),
    ],
)
def test_a_range_is_cut_to_another(some: OffsetRange, within: OffsetRange, left: OffsetRange) -> None:
    assert some.cut(within) == left


@pytest.mark.parametrize(
    ("groups", "most", "parts"),
    [
        ([[span(0, 0, 3)], [span(0, 3, 5)]], 5, [[span(0, 0, 5)]]),
        ([[span(0, 0, 3)], [span(0, 3, 5)]], 4, [[span(0, 0, 3)], [span(0, 3, 5)]]),
        ([[span(0, 3, 5)], [span(0, 0, 3)]], 4, [[span(0, 0, 3)], [span(0, 3, 5)]]),
        ([[span(0, 0, 3)], [span(0, 2, 5)]], 5, [[span(0, 0, 5)]]),
        ([[span(0, 0, 9)], [span(0, 9, 10)]], 2, [[span(0, 0, 9)], [span(0, 9, 10)]]),
        ([[], [span(1, 0, 2)], []], 2, [[span(1, 0, 2)]]),
        ([[span(0, 0, 4)], [span(0, 4, 6)], [span(0, 6, 8)]], 4, [[span(0, 0, 4)], [span(0, 4, 8)]]),
        ([[]], 2, []),
    ],
)
def test_as_many_groups_are_packed_together_as_may_be(
    groups: list[list[OffsetRange]], most: int, parts: list[list[OffsetRange]]
) -> None:
    assert pack_groups(groups, most=most) == parts


def test_each_link_takes_the_same_share_of_every_partition() -> None:
    links = cut_links([span(0, 0, 10), span(1, 5, 35)], most=8)
    assert links[:2] == [[span(0, 0, 2), span(1, 5, 11)], [span(0, 2, 4), span(1, 11, 17)]]
    assert cut_links([span(0, 0, 3), span(1, 0, 3)], most=1)[:2] == [[span(0, 0, 1)], [span(1, 0, 1)]]


def test_what_is_left_over_goes_to_the_larger_backlogs() -> None:
    backlog = [span(2, 0, 100), span(0, 0, 3), span(1, 0, 100)]
    assert bound_ranges(backlog, max_records=12) == [span(0, 0, 3), span(1, 0, 4), span(2, 0, 5)]
    assert bound_ranges(backlog, max_records=2) == [span(1, 0, 1), span(2, 0, 1)]


def test_a_slice_is_as_large_as_it_has_to_be_and_of_the_same_size_as_the_others() -> None:
    assert cut_slices([span(0, 10, 22)], workers=4, min_slice=3) == [span(0, 10 + 3 * i, 13 + 3 * i) for i in range(4)]
    assert cut_slices([span(0, 10, 22)], workers=4, min_slice=4) == [span(0, 10 + 4 * i, 14 + 4 * i) for i in range(3)]
    assert cut_slices([span(0, 0, 3)], workers=4, min_slice=0) == [span(0, i, i + 1) for i in range(3)]
    assert cut_slices([span(0, 0, 2)], workers=3, min_slice=4) == [span(0, 0, 2)]
    assert cut_slices([span(0, 0, 30), span(1, 0, 10)], workers=4, min_slice=0) == [
        *(span(0, 0, 10), span(0, 10, 20), span(0, 20, 30), span(1, 0, 10))
    ]


def test_units_are_of_about_the_same_weight() -> None:
    slices = [span(0, 0, 10), span(1, 0, 10), span(2, 0, 10)]
    assert sorted(pack_units(slices, workers=2, weight={Partition(0): 2.0})) == [
        (span(0, 0, 10),),
        (span(1, 0, 10), span(2, 0, 10)),
    ]
    uneven = [span(0, 0, 1), span(1, 0, 1), span(2, 0, 2)]
    assert sorted(pack_units(uneven, workers=2, weight={})) == [tuple(uneven[:2]), tuple(uneven[2:])]
    assert len(pack_units(slices, workers=9, weight={})) == 3
    assert pack_units([], workers=3, weight={}) == []
    assert pack_units(slices[::-1], workers=0, weight={}) == [tuple(slices)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("3:17", ("", 3, 17)),
        ("topic-id_1:3:17", ("topic-id_1", 3, 17)),
        (":3:17", ("", 3, 17)),
        ("0:0", ("", 0, 0)),
        *((text, None) for text in ("", "3", "3:", ":17", "a:17", "3:-1", "3:17 ", "a:b:3:17", "1" * 10 + ":0")),
    ],
)
def test_a_place_is_a_partition_and_an_offset_and_may_name_its_topic(
    text: str, place: tuple[str, int, int] | None
) -> None:
    assert parse_place(text) == place


def test_as_many_ranges_as_workers_or_more_are_slices_as_they_are_and_none_has_none() -> None:
    ranges = [span(0, 0, 1000), span(1, 0, 10)]
    assert cut_slices(ranges, workers=2, min_slice=1) == cut_slices(ranges, workers=1, min_slice=1) == ranges
    assert cut_slices([], workers=3, min_slice=1) == []
    assert cut_slices([span(0, 0, 9)], workers=3, min_slice=1) == [span(0, 0, 3), span(0, 3, 6), span(0, 6, 9)]


def test_a_partition_of_which_nothing_is_known_weighs_one_for_each_offset_and_a_unit_reads_in_order() -> None:
    slices = [span(2, 0, 4), span(1, 0, 15), span(0, 0, 10)]
    weight = {Partition(0): 2.0}
    assert pack_units(slices, workers=2, weight=weight) == [(span(0, 0, 10),), (span(1, 0, 15), span(2, 0, 4))]
    assert pack_units([span(0, 0, 1), span(0, 1, 6)], workers=1, weight={}) == [(span(0, 0, 1), span(0, 1, 6))]


def test_what_does_not_touch_stays_apart_unless_a_gap_is_allowed() -> None:
    assert joined([span(0, 0, 3), span(0, 4, 5)]) == [span(0, 0, 3), span(0, 4, 5)]
    assert pack_groups([[span(1, 0, 2)], [span(0, 1, 3)]], most=2) == [[span(1, 0, 2)], [span(0, 1, 3)]]


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ([span(0, 1, 2), span(0, 4, 5), span(0, 7, 8)], [span(0, 0, 1), span(0, 2, 4), span(0, 5, 7), span(0, 8, 10)]),
        ([span(0, 0, 2), span(0, 8, 10)], [span(0, 2, 8)]),
        ([span(0, 10, 12)], [span(0, 0, 10)]),
        ([span(0, 3, 3), span(1, 0, 10)], [span(0, 0, 10)]),
        ([span(0, 0, 10)], []),
    ],
)
def test_what_is_left_of_a_range_are_its_pieces_between_what_is_gone(
    gone: list[OffsetRange], left: list[OffsetRange]
) -> None:
    assert without([span(0, 0, 10)], gone) == left


def test_a_range_that_ends_before_it_begins_gives_the_others_nothing() -> None:
    assert bound_ranges([span(0, 5, 3), span(1, 0, 10), span(2, 4, 4)], max_records=4) == [span(1, 0, 4)]
