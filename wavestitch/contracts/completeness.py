"""What there is of each channel over time: published, held as incomplete, missing between, or twice. Pure.

Of each moment between the first and the last sample that is known of a channel exactly one kind holds; before and
behind them nothing is said. Clocks of recorders are not exact: what is missing, or there twice, for no longer than half
a sample is neither.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from heapq import heappop, heappush
from itertools import pairwise
from typing import NamedTuple


class Kind(StrEnum):
    """From the best to the worst."""

    THERE = "there"
    OPEN = "open"
    MISSING = "missing"
    OVERLAPPING = "overlapping"


class Lane(NamedTuple):
    """What is recorded one after the other."""

    source: str
    channel: str


@dataclass(frozen=True, slots=True)
class Span:
    """The time of a waveform, ns since 1970: `[start_ns, end_ns)`, where the next sample would come at `end_ns`.
    `sample_ns`: the time of a sample. `held`: it is not published."""

    start_ns: int
    end_ns: int
    sample_ns: int
    held: bool


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time of one kind, `[start_ns, end_ns)`. `waveforms`: how many lie in it, published and held."""

    start_ns: int
    end_ns: int
    kind: Kind
    waveforms: int


def span_of(*, start_ns: int, samples: int, rate_hz: float, held: bool = False) -> Span:
    """Of a waveform; a nanosecond long at least."""
    length = max(1, round(samples * 1e9 / rate_hz))
    return Span(start_ns, start_ns + length, round(1e9 / rate_hz), held)


def completeness(spans: Iterable[tuple[Lane, Span]], *, start_ns: int, end_ns: int) -> dict[Lane, list[Stretch]]:
    """The stretches of each lane that reach into `[start_ns, end_ns)`, cut to it, in order of time."""
    by_lane: dict[Lane, list[Span]] = defaultdict(list)
    for lane, span in spans:
        by_lane[lane].append(span)
    made = {lane: _cut(stretches_of(found), start_ns, end_ns) for lane, found in sorted(by_lane.items())}
    return {lane: found for lane, found in made.items() if found}


def stretches_of(spans: Sequence[Span]) -> list[Stretch]:
    """Of one lane: neighbours are of different kinds."""
    starts, ends = sorted(s.start_ns for s in spans), sorted(s.end_ns for s in spans)
    joined: list[tuple[int, int, Kind]] = []
    for start, end, kind in _moments(spans):
        if joined and joined[-1][2] is kind:
            joined[-1] = (joined[-1][0], end, kind)
        else:
            joined.append((start, end, kind))
    return [
        Stretch(start, end, kind, bisect_left(starts, end) - bisect_right(ends, start)) for start, end, kind in joined
    ]


def coarse(stretches: Sequence[Stretch], *, start_ns: int, end_ns: int, cells: int) -> list[Stretch]:
    """The same as at most so many cells of a picture, each of the worst kind in it."""
    edges = [start_ns + (end_ns - start_ns) * n // cells for n in range(cells + 1)]
    starts, ends = [s.start_ns for s in stretches], [s.end_ns for s in stretches]
    made: list[Stretch] = []
    worst = list(Kind).index
    for start, end in pairwise(edges):
        if inside := stretches[bisect_right(ends, start) : bisect_left(starts, end)]:
            kind = max((s.kind for s in inside), key=worst)
            made.append(Stretch(start, end, kind, sum(s.waveforms for s in inside)))
    return made


def _moments(spans: Sequence[Span]) -> Iterator[tuple[int, int, Kind]]:
    """From each beginning or end to the next one."""
    begins, stops = defaultdict[int, list[Span]](list), defaultdict[int, list[Span]](list)
    for span in spans:
        begins[span.start_ns].append(span)
        stops[span.end_ns].append(span)
    now, published = 0, 0
    shortest: list[tuple[int, int]] = []  # of what there is now, and of what is over and not yet taken out
    before = Kind.THERE
    for start, end in pairwise(sorted(begins.keys() | stops.keys())):
        now += len(begins[start]) - len(stops[start])
        published += sum(not s.held for s in begins[start]) - sum(not s.held for s in stops[start])
        for span in begins[start]:
            heappush(shortest, (span.sample_ns, span.end_ns))
        while shortest and shortest[0][1] <= start:
            heappop(shortest)
        if now:
            once = now == 1 or 2 * (end - start) <= shortest[0][0]
            before = Kind.OVERLAPPING if not once else Kind.THERE if published else Kind.OPEN
        elif 2 * (end - start) > min(s.sample_ns for s in (*stops[start], *begins[end])):
            before = Kind.MISSING
        yield start, end, before


def _cut(stretches: Iterable[Stretch], start_ns: int, end_ns: int) -> list[Stretch]:
    return [
        Stretch(max(s.start_ns, start_ns), min(s.end_ns, end_ns), s.kind, s.waveforms)
        for s in stretches
        if s.start_ns < end_ns and start_ns < s.end_ns
    ]
