"""Neighbouring waveforms of one channel joined to one series, with gaps where nothing was recorded.

Joins by time and rate alone, and never resamples: each waveform lies on the grid of the first one, at the place nearest
to its time, and how far it was moved for that is said. What overlaps is refused by name. Where all of them lie is
decided by their rows, so that what is refused was not read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from wavestitch.contracts.errors import BadInput
from wavestitch.reading.waveform import Waveform, ns_after

MOST_SAMPLES = 100_000_000
"""Of a series, unless more are asked for: 800 MB of memory."""
COLUMNS = ("waveform_id", "source", "channel", "start_time_ns", "sample_count", "sampling_rate_hz", "units")


@dataclass(frozen=True)
class Series:
    """`physical`: shape (n,), float64, in `units`, NaN where nothing was recorded. `gaps`: half-open ranges of samples
    where nothing was. `waveforms`: what it is made of, in order of time; `moved_ns`: how much later than it was
    recorded each of them lies in `times` (less than 0: earlier), half a sample at most."""

    source: str
    channel: str
    start_ns: int
    rate_hz: float
    units: str
    physical: npt.NDArray[np.float64]
    gaps: list[tuple[int, int]]
    waveforms: tuple[str, ...]
    moved_ns: tuple[int, ...]

    @property
    def times(self) -> npt.NDArray[np.datetime64]:
        """Of each sample: shape (n,), datetime64[ns], UTC."""
        return (self.start_ns + ns_after(np.arange(len(self.physical)), self.rate_hz)).view("datetime64[ns]")

    def to_xarray(self) -> Any:
        """As an `xarray.DataArray` along `time`. Needs xarray, which is not installed with Wavestitch."""
        from wavestitch.reading.labelled import label_series  # noqa: PLC0415 - labels what is defined here

        return label_series(self)


@dataclass(frozen=True, slots=True)
class Piece:
    """Of a waveform, by its row: samples `[skip, stop)` are those whose time is asked for."""

    waveform_id: str
    source: str
    channel: str
    start_ns: int
    rate_hz: float
    units: str
    skip: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.skip

    @property
    def since_ns(self) -> int:
        """The time of the first of them, as `Waveform.times` says it."""
        return self.start_ns + int(ns_after(self.skip, self.rate_hz))


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each piece lies in a series, in order of time: at `places`. `first`: what all of them are like."""

    first: Piece
    pieces: Sequence[Piece]
    places: Sequence[int]
    start_ns: int

    def fill(self, found: Iterable[Waveform]) -> Series:
        """With the samples of these waveforms, one after the other, in any order."""
        ends = [place + len(piece) for place, piece in zip(self.places, self.pieces, strict=True)]
        joined = np.full(ends[-1] if ends else 0, np.nan)
        at = {piece.waveform_id: n for n, piece in enumerate(self.pieces)}
        for one in found:
            if (n := at.get(one.id)) is not None:
                piece = self.pieces[n]
                joined[self.places[n] : ends[n]] = one.physical[piece.skip : piece.stop]
        gaps = [(end, place) for end, place in zip(ends, self.places[1:], strict=False) if place > end]
        first, rate = self.first, self.first.rate_hz
        here = self.start_ns + ns_after(np.array(self.places, np.int64), rate)
        moved = tuple(int(t) - piece.since_ns for t, piece in zip(here, self.pieces, strict=True))
        ids = tuple(piece.waveform_id for piece in self.pieces)
        return Series(first.source, first.channel, self.start_ns, rate, first.units, joined, gaps, ids, moved)


def lay_out(
    rows: Iterable[Mapping[str, Any]], *, start_ns: int, end_ns: int, most: int = MOST_SAMPLES
) -> Layout | None:
    """Those samples whose time, as `Waveform.times` says it, lies in `[start_ns, end_ns)`; None of no rows, which are
    of one source, with the columns of `COLUMNS`.

    Raises `BadInput` where they have different channels, rates or units, or overlap, and where the answer, gaps
    included, would have more than `most` samples: rates and times are the producers' words, so a gap can have any
    length.
    """
    first: Piece | None = None
    found: list[Piece] = []
    recorded = 0
    for row in rows:
        piece = _piece(row, start_ns, end_ns)
        if not len(piece):  # it only reaches into the same microsecond, or past: whatever it is like
            first = piece if first is None else first
            continue
        found.append(piece)
        _refuse_other(piece, found[0])
        recorded += len(piece)
        if recorded > most:
            raise _too_long(f"{recorded:,} samples or more at {piece.rate_hz:g} Hz", most)
    first = found[0] if found else first
    if first is None:
        return None
    pieces = sorted(found, key=lambda piece: piece.start_ns)
    places = [_place(piece, pieces[0]) for piece in pieces]
    for n in range(1, len(pieces)):
        if (over := places[n - 1] + len(pieces[n - 1]) - places[n]) > 0:
            raise BadInput(
                f"waveform {pieces[n].waveform_id!r} begins {over} samples before the one before it ends; a series "
                "has one value for each time, read them one by one"
            )
    length = places[-1] + len(pieces[-1]) if pieces else 0
    if length > most:
        gaps = f"{recorded:,} of them recorded and the rest gaps"
        raise _too_long(f"{length:,} samples at {first.rate_hz:g} Hz, {gaps}", most)
    return Layout(first, pieces, places, pieces[0].since_ns if pieces else start_ns)


def _piece(row: Mapping[str, Any], start_ns: int, end_ns: int) -> Piece:
    first_ns, count, rate_hz = row["start_time_ns"], row["sample_count"], row["sampling_rate_hz"]
    rate = _per_ns(rate_hz)
    skip, stop = (_first_sample(count, bound - first_ns, rate_hz, rate) for bound in (start_ns, end_ns))
    about = (row["waveform_id"], row["source"], row["channel"], first_ns, rate_hz, row["units"])
    return Piece(*about, skip, max(skip, stop))


def _place(piece: Piece, first: Piece) -> int:
    """On the grid of the first one, whose first sample that is asked for lies at 0."""
    return round((piece.start_ns - first.start_ns) * _per_ns(piece.rate_hz)) + piece.skip - first.skip


def _refuse_other(one: Piece, first: Piece) -> None:
    if one.channel != first.channel:
        raise BadInput(f"source {one.source!r} has several channels, e.g. {first.channel} and {one.channel}; name one")
    if (one.rate_hz, one.units) != (first.rate_hz, first.units):
        raise BadInput(
            f"waveform {one.waveform_id!r} has {one.rate_hz} Hz and {one.units!r}, {first.waveform_id!r} has "
            f"{first.rate_hz} Hz and {first.units!r}; choose one of them by time or channel"
        )


def _too_long(said: str, most: int) -> BadInput:
    return BadInput(
        f"this series would have {said}; allowed are {most:,}: ask for less time, or for more samples with `most`"
    )


def _first_sample(count: int, since_ns: int, rate_hz: float, rate: Fraction) -> int:
    """The first whose time, as `Waveform.times` says it, is not before. Where half a nanosecond decides, what rounds
    the times has the last word."""
    at = min(count, max(0, math.ceil((since_ns - Fraction(1, 2)) * rate)))
    while at > 0 and ns_after(at - 1, rate_hz) >= since_ns:
        at -= 1
    while at < count and ns_after(at, rate_hz) < since_ns:
        at += 1
    return at


def _per_ns(rate_hz: float) -> Fraction:
    """Exact: a float has no room for the nanoseconds of this century, and a sample may be shorter than one."""
    return Fraction(rate_hz) / 10**9
