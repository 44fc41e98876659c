"""Half-open offset ranges, how they are cut into slices, and how slices are packed into units of work.

Pure arithmetic. Keeps I1: whatever is cut or packed, the union is the input, without gap or overlap.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from wavestitch.contracts.quantities import Offset, Partition


class OffsetRange(NamedTuple):
    """`[start, end)` of one partition."""

    partition: Partition
    start: Offset
    end: Offset

    @property
    def size(self) -> int:
        return self.end - self.start

    def cut(self, within: OffsetRange) -> OffsetRange:
        """What of it lies in another range of its partition; empty where nothing does."""
        start = min(max(self.start, within.start), within.end)
        return OffsetRange(self.partition, start, max(start, min(self.end, within.end)))

    def __str__(self) -> str:
        return f"partition {self.partition} [{self.start}, {self.end})"


_PLACE = re.compile(r"(?:([^:]*):)?([0-9]{1,9}):([0-9]{1,18})")


def parse_place(text: str) -> tuple[str, Partition, Offset] | None:
    """`[TOPICID:]PARTITION:OFFSET`, the topic id empty where none is named; None for anything else."""
    found = _PLACE.fullmatch(text)
    return (found[1] or "", Partition(int(found[2])), Offset(int(found[3]))) if found else None


Unit = tuple[OffsetRange, ...]
"""Slices that one consumer run reads one after another."""


def joined(ranges: Iterable[OffsetRange], *, gap: int = 0) -> list[OffsetRange]:
    """The same offsets in as few ranges as there can be, in order; with `gap`, those between near ones, too."""
    found: list[OffsetRange] = []
    for r in sorted(r for r in ranges if r.size > 0):
        if found and found[-1].partition == r.partition and r.start - found[-1].end <= gap:
            found[-1] = found[-1]._replace(end=max(found[-1].end, r.end))
        else:
            found.append(r)
    return found


def without(ranges: Iterable[OffsetRange], gone: Iterable[OffsetRange]) -> list[OffsetRange]:
    """What is left of these ranges, in order. Both are gone through once: there may be thousands of each."""
    left: list[OffsetRange] = []
    holes, first = joined(gone), 0
    for r in joined(ranges):
        start = r.start
        while first < len(holes) and (holes[first].partition, holes[first].end) <= (r.partition, start):
            first += 1
        at = first
        while at < len(holes) and holes[at].partition == r.partition and holes[at].start < r.end:
            if start < holes[at].start:
                left.append(OffsetRange(r.partition, start, holes[at].start))
            start, at = holes[at].end, at + 1
        if start < r.end:
            left.append(OffsetRange(r.partition, start, r.end))
    return left


def cut_links(ranges: Sequence[OffsetRange], *, most: int) -> list[list[OffsetRange]]:
    """As few parts as possible of at most `most` offsets each, in each partition one after the other.

    Each part takes the same share of every partition: what was sent at one time is read together.
    """
    by_partition: dict[Partition, list[OffsetRange]] = {}
    for r in joined(ranges):
        by_partition.setdefault(r.partition, []).append(r)
    left = {p: sum(r.size for r in found) for p, found in by_partition.items()}
    done = dict.fromkeys(left, 0)
    parts = []
    while total := sum(left.values()):
        shares = _shares(left, min(most, total))
        pieces = [_between(by_partition[p], start=done[p], end=done[p] + n) for p, n in shares.items()]
        parts.append([r for part in pieces for r in part])
        for p, n in shares.items():
            done[p] += n
            left[p] -= n
    return parts


def _shares(sizes: Mapping[Partition, int], take: int) -> dict[Partition, int]:
    """`take` of them, shared out in proportion; what rounding leaves goes where most is left."""
    total = sum(sizes.values())
    shares = {p: n * take // total for p, n in sizes.items()}
    for p in sorted(sizes, key=lambda p: (shares[p] - sizes[p], p))[: take - sum(shares.values())]:
        shares[p] += 1
    return shares


def pack_groups(groups: Iterable[Sequence[OffsetRange]], *, most: int) -> list[list[OffsetRange]]:
    """Parts that have each group whole, as many together as `most` offsets allow; a larger one is a part by itself."""
    parts: list[list[OffsetRange]] = []
    for group in sorted((joined(g) for g in groups), key=lambda g: [(r.start, r.partition) for r in g]):
        both = joined([*parts[-1], *group]) if parts else group
        if parts and sum(r.size for r in both) <= most:
            parts[-1] = both
        else:
            parts.append(group)
    return [part for part in parts if part]


def _between(ranges: Sequence[OffsetRange], *, start: int, end: int) -> list[OffsetRange]:
    """Of offsets that are counted through these ranges, those from number `start` to `end`."""
    found, seen = [], 0
    for r in ranges:
        piece = OffsetRange(
            r.partition, Offset(r.start + max(0, start - seen)), Offset(r.start + min(r.size, end - seen))
        )
        seen += r.size
        if piece.size > 0:
            found.append(piece)
    return found


def bound_ranges(backlog: Sequence[OffsetRange], *, max_records: int) -> list[OffsetRange]:
    """The first part of each range, together at most `max_records` offsets, shared out fairly.

    Small backlogs are taken whole and what they leave goes to the others; empty ranges are dropped.
    """
    left = max_records
    bounded = []
    waiting = sorted((r for r in backlog if r.size > 0), key=lambda r: (r.size, r.partition))
    for i, r in enumerate(waiting):
        take = min(r.size, left // (len(waiting) - i))
        left -= take
        if take > 0:
            bounded.append(OffsetRange(r.partition, r.start, Offset(r.start + take)))
    return sorted(bounded)


def cut_slices(ranges: Sequence[OffsetRange], *, workers: int, min_slice: int) -> list[OffsetRange]:
    """Ranges cut so that `workers` can read side by side; no slice below `min_slice` offsets unless a range is.

    Where there are at least as many ranges as workers, nothing is cut: more slices would only split waveforms.
    """
    if not ranges or len(ranges) >= workers:
        return list(ranges)
    total = sum(r.size for r in ranges)
    slices = []
    for r in ranges:
        pieces = max(1, min(round(workers * r.size / total), r.size // max(min_slice, 1)))
        cuts = [r.start + r.size * i // pieces for i in range(pieces + 1)]
        slices += [OffsetRange(r.partition, Offset(a), Offset(b)) for a, b in pairwise(cuts)]
    return slices


def pack_units(slices: Sequence[OffsetRange], *, workers: int, weight: Mapping[Partition, float]) -> list[Unit]:
    """At most `workers` units of about equal weight (offsets x `weight[partition]`, e.g. mean record bytes)."""
    bins: list[tuple[float, list[OffsetRange]]] = [(0.0, []) for _ in range(max(1, min(workers, len(slices))))]
    for s in sorted(slices, key=lambda s: (-s.size * weight.get(s.partition, 1.0), s)):
        i = min(range(len(bins)), key=lambda i: bins[i][0])
        load, items = bins[i]
        bins[i] = (load + s.size * weight.get(s.partition, 1.0), [*items, s])
    return [tuple(sorted(items)) for _, items in bins if items]
