"""Cutting and packing never lose, repeat or invent an offset (I1)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wavestitch.contracts.offset_range import OffsetRange, bound_ranges, cut_slices, pack_units


@st.composite
def backlogs(draw: st.DrawFn) -> list[OffsetRange]:
    sizes = draw(st.lists(st.integers(0, 5000), min_size=1, max_size=8))
    starts = [draw(st.integers(0, 10_000)) for _ in sizes]
    return [OffsetRange(p, a, a + n) for p, (a, n) in enumerate(zip(starts, sizes, strict=True))]


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
    ranges = [OffsetRange(p, 0, 1000) for p in range(4)]
    assert cut_slices(ranges, workers=4, min_slice=1) == ranges


def test_one_partition_is_read_by_all_workers() -> None:
    assert len(cut_slices([OffsetRange(0, 0, 4000)], workers=4, min_slice=10)) == 4


def test_a_small_backlog_leaves_its_share_to_the_others() -> None:
    bounded = bound_ranges([OffsetRange(0, 0, 10), OffsetRange(1, 0, 1000)], max_records=500)
    assert bounded == [OffsetRange(0, 0, 10), OffsetRange(1, 0, 490)]
