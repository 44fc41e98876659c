"""Cutting and packing never lose, repeat or invent an offset (I1)."""

from __future__ import annotations

from collections.abc import Iterable

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
    without,
)


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
