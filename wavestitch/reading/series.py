"""Neighbouring waveforms of one channel joined to one series, with gaps where nothing was recorded.

Joins by time and rate alone, and never resamples: what does not lie on the grid of the first waveform, to half a
sample, or overlaps what is there, is refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from wavestitch.contracts.errors import BadInput
from wavestitch.reading.waveform import Waveform, ns_after

MOST_SAMPLES = 100_000_000
"""Of a series, unless more are asked for: 800 MB of memory."""


@dataclass(frozen=True)
class Series:
    """`physical`: shape (n,), float64, in `units`, NaN where nothing was recorded. `gaps`: half-open ranges of samples
    where nothing was. `waveforms`: what it is made of, in order of time."""

    source: str
    channel: str
    start_ns: int
    rate_hz: float
    units: str
    physical: npt.NDArray[np.float64]
    gaps: list[tuple[int, int]]
    waveforms: tuple[str, ...]

    @property
    def times(self) -> npt.NDArray[np.datetime64]:
        """Of each sample: shape (n,), datetime64[ns], UTC."""
        return (self.start_ns + ns_after(np.arange(len(self.physical)), self.rate_hz)).view("datetime64[ns]")

    def to_xarray(self) -> Any:
        """As an `xarray.DataArray` along `time`. Needs xarray, which is not installed with Wavestitch."""
        from wavestitch.reading.labelled import label_series  # noqa: PLC0415 - labels what is defined here

        return label_series(self)


def join(found: Sequence[Waveform], *, start_ns: int, end_ns: int, most: int = MOST_SAMPLES) -> Series:
    """The samples of one channel's waveforms whose time, as `Waveform.times` says it, lies in `[start_ns, end_ns)`.

    Raises `BadInput` where they have different rates or units, or overlap, and where the answer, gaps included, would
    have more than `most` samples: rates and times are the producers' words, so a gap can have any length.
    """
    ordered = sorted(found, key=lambda w: w.start_ns)
    first = ordered[0]
    pieces = [piece for one in ordered if (piece := _asked_for(one, first, start_ns, end_ns))]
    if not pieces:
        return Series(first.source, first.channel, start_ns, first.rate_hz, first.units, np.empty(0), [], ())
    begin = pieces[0]
    gaps: list[tuple[int, int]] = []
    at = 0
    for piece in pieces:
        place = piece.place - begin.place
        if place < at:
            raise BadInput(
                f"waveform {piece.waveform.id!r} begins {at - place} samples before the one before it ends; a series "
                "has one value for each time, read them one by one"
            )
        if place > at:
            gaps.append((at, place))
        at = place + piece.stop - piece.skip
    if at > most:
        recorded = at - sum(end - start for start, end in gaps)
        raise BadInput(
            f"this series would have {at:,} samples at {first.rate_hz:g} Hz, {recorded:,} of them recorded and the "
            f"rest gaps; allowed are {most:,}: ask for less time, or for more samples with `most`"
        )
    joined = np.full(at, np.nan)
    for piece in pieces:
        place = piece.place - begin.place
        joined[place : place + piece.stop - piece.skip] = piece.waveform.physical[piece.skip : piece.stop]
    since = begin.waveform.start_ns + int(ns_after(begin.skip, first.rate_hz))
    ids = tuple(piece.waveform.id for piece in pieces)
    return Series(first.source, first.channel, since, first.rate_hz, first.units, joined, gaps, ids)


@dataclass(frozen=True)
class _Piece:
    """Samples `[skip, stop)` of a waveform, of which the first lies at `place` on the grid of the first waveform."""

    waveform: Waveform
    skip: int
    stop: int
    place: int


def _asked_for(one: Waveform, first: Waveform, start_ns: int, end_ns: int) -> _Piece | None:
    if (one.rate_hz, one.units) != (first.rate_hz, first.units):
        raise BadInput(
            f"waveform {one.id!r} has {one.rate_hz} Hz and {one.units!r}, {first.id!r} has {first.rate_hz} Hz and "
            f"{first.units!r}; choose one of them by time or channel"
        )
    rate = _per_ns(one.rate_hz)
    skip, stop = (_first_sample(one, bound - one.start_ns, rate) for bound in (start_ns, end_ns))
    if stop <= skip:
        return None
    return _Piece(one, skip, stop, round((one.start_ns - first.start_ns) * rate) + skip)


def _first_sample(one: Waveform, since_ns: int, rate: Fraction) -> int:
    """The first whose time, as `Waveform.times` says it, is not before. Where half a nanosecond decides, what rounds
    the times has the last word."""
    at = min(len(one), max(0, math.ceil((since_ns - Fraction(1, 2)) * rate)))
    while at > 0 and ns_after(at - 1, one.rate_hz) >= since_ns:
        at -= 1
    while at < len(one) and ns_after(at, one.rate_hz) < since_ns:
        at += 1
    return at


def _per_ns(rate_hz: float) -> Fraction:
    """Exact: a float has no room for the nanoseconds of this century, and a sample may be shorter than one."""
    return Fraction(rate_hz) / 10**9
