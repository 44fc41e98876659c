"""What there is of a channel over time, against an oracle that asks each moment about every waveform."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise

import pytest

from wavestitch.contracts.completeness import (
    Kind,
    Lane,
    Span,
    Stretch,
    coarse,
    completeness,
    span_of,
    stretches_of,
)

LANE = Lane("bench", "II")


def published(start: int, end: int, *, sample: int = 0) -> Span:
    return Span(start, end, sample, held=False)


def held(start: int, end: int, *, sample: int = 0) -> Span:
    return Span(start, end, sample, held=True)


def told(spans: list[Span]) -> list[tuple[int, int, str, int]]:
    return [(s.start_ns, s.end_ns, s.kind.value, s.waveforms) for s in stretches_of(spans)]


@pytest.mark.parametrize(
    ("spans", "found"),
    [
        ([], []),
        ([published(0, 10)], [(0, 10, "there", 1)]),
        ([held(0, 10)], [(0, 10, "open", 1)]),
        ([published(0, 10), published(10, 20)], [(0, 20, "there", 2)]),
        (
            [published(0, 10), published(30, 40)],
            [(0, 10, "there", 1), (10, 30, "missing", 0), (30, 40, "there", 1)],
        ),
        ([published(0, 10), held(10, 20)], [(0, 10, "there", 1), (10, 20, "open", 1)]),
        (
            [published(0, 20), published(10, 30)],
            [(0, 10, "there", 1), (10, 20, "overlapping", 2), (20, 30, "there", 1)],
        ),
        ([published(0, 20), held(0, 20)], [(0, 20, "overlapping", 2)]),
        # Clocks that are off by half a sample, and by more.
        ([published(0, 10, sample=4), published(12, 20, sample=4)], [(0, 20, "there", 2)]),
        ([published(0, 12, sample=4), published(10, 20, sample=4)], [(0, 20, "there", 2)]),
        (
            [published(0, 10, sample=4), published(13, 20, sample=4)],
            [(0, 10, "there", 1), (10, 13, "missing", 0), (13, 20, "there", 1)],
        ),
        # One that says that its samples take days hides no gap before it.
        (
            [published(0, 10, sample=2), published(20, 10**15, sample=10**14)],
            [(0, 10, "there", 1), (10, 20, "missing", 0), (20, 10**15, "there", 1)],
        ),
    ],
)
def test_each_moment_is_of_one_kind(spans: list[Span], found: list[tuple[int, int, str, int]]) -> None:
    assert told(spans) == found
    assert told(spans[::-1]) == found


def drawn(rng: random.Random) -> list[Span]:
    most = rng.choice([12, 40, 300])
    spans = []
    for _ in range(rng.randint(1, rng.choice([3, 9, 20]))):
        start = rng.randint(-most, most)
        spans.append(Span(start, start + rng.randint(1, most // 2), rng.choice([0, 1, 2, 5, 9]), rng.random() < 0.4))
    return spans


def of_moment(spans: list[Span], moment: Fraction) -> str | None:
    """The oracle: None before the first and behind the last; `gap` and `twice` as they are, hairlines or not."""
    if not min(s.start_ns for s in spans) <= moment <= max(s.end_ns for s in spans):
        return None
    about = [s for s in spans if s.start_ns <= moment <= s.end_ns]
    if not about:
        return "gap"
    return "twice" if len(about) > 1 else "open" if about[0].held else "there"


def oracle(spans: list[Span]) -> list[tuple[int, int, str]]:
    """Moment by moment, between all edges; hairlines are taken away behind that."""
    edges = sorted({e for s in spans for e in (s.start_ns, s.end_ns)})
    pieces: list[list] = []
    for start, end in pairwise(edges):
        kind = of_moment(spans, Fraction(start + end, 2))
        assert kind is not None
        touching = [s for s in spans if s.start_ns <= start and end <= s.end_ns]
        if kind == "gap":
            touching = [s for s in spans if s.end_ns == start or s.start_ns == end]
        short = Fraction(end - start) <= Fraction(min(s.sample_ns for s in touching), 2)
        if kind == "gap":
            kind = pieces[-1][2] if short else "missing"
        elif kind == "twice":
            kind = "overlapping" if not short else "open" if all(s.held for s in touching) else "there"
        if pieces and pieces[-1][2] == kind:
            pieces[-1][1] = end
        else:
            pieces.append([start, end, kind])
    return [(start, end, kind) for start, end, kind in pieces]


def test_random_waveforms_give_what_an_oracle_finds_that_asks_each_moment_about_all_of_them() -> None:
    rng = random.Random("completeness")
    seen = set()
    for _ in range(3000):
        spans = drawn(rng)
        found = stretches_of(spans)
        assert [(s.start_ns, s.end_ns, s.kind.value) for s in found] == oracle(spans)
        for s in found:
            inside = [x for x in spans if x.start_ns < s.end_ns and s.start_ns < x.end_ns]
            assert s.waveforms == len(inside)
            seen.add(s.kind)
    assert seen == set(Kind)


def test_a_window_cuts_what_reaches_into_it_and_keeps_lanes_apart() -> None:
    rng = random.Random("windows")
    for _ in range(300):
        lanes = {Lane(source, channel): drawn(rng) for source in "ab" for channel in "xy"}
        start = rng.randint(-50, 50)
        end = start + rng.randint(1, 60)
        mixed = [(lane, span) for lane, spans in lanes.items() for span in spans]
        rng.shuffle(mixed)
        made = completeness(mixed, start_ns=start, end_ns=end)
        assert list(made) == sorted(made)
        assert all(made.values()), "of a lane that has nothing there nothing is said"
        for lane, spans in lanes.items():
            wanted = [(max(a, start), min(b, end), k) for a, b, k in oracle(spans) if a < end and start < b]
            assert [(s.start_ns, s.end_ns, s.kind.value) for s in made.get(lane, [])] == wanted


def test_a_cell_of_a_picture_is_of_the_worst_kind_in_it() -> None:
    rng = random.Random("cells")
    order = ["there", "open", "missing", "overlapping"]
    for _ in range(300):
        spans = drawn(rng)
        (made,) = completeness([(LANE, s) for s in spans], start_ns=-700, end_ns=700).values()
        for cell in coarse(made, start_ns=-700, end_ns=700, cells=rng.randint(1, 50)):
            inside = [k for a, b, k in oracle(spans) if a < cell.end_ns and cell.start_ns < b]
            assert cell.kind.value == max(inside, key=order.index)
    assert coarse([Stretch(0, 3, Kind.THERE, 1)], start_ns=0, end_ns=10, cells=10)[-1].end_ns == 3
    thirds = [Stretch(a, b, Kind.THERE, 1) for a, b in ((10, 13), (13, 16), (16, 20))]
    assert coarse([Stretch(0, 99, Kind.THERE, 1)], start_ns=10, end_ns=20, cells=3) == thirds


@pytest.mark.parametrize(("samples", "rate"), [(1, 1e12), (1 << 40, 1e-6), (3600, 360.0)])
def test_what_a_producer_says_of_time_always_gives_a_span(samples: int, rate: float) -> None:
    found = span_of(start_ns=-(1 << 62), samples=samples, rate_hz=rate)
    assert found.end_ns > found.start_ns
    assert told([found]) == [(found.start_ns, found.end_ns, "there", 1)]


@pytest.mark.parametrize(
    ("samples", "rate", "length", "sample"),
    [(1, 1e12, 1, 0), (1, 1.0, 10**9, 10**9), (3600, 360.0, 10**10, 2_777_778), (5, 0.5, 10**10, 2 * 10**9)],
)
def test_a_span_lasts_as_long_as_its_samples(samples: int, rate: float, length: int, sample: int) -> None:
    assert span_of(start_ns=-7, samples=samples, rate_hz=rate) == Span(-7, length - 7, sample, held=False)
