"""Neighbouring waveforms of one channel joined to one series, with gaps where nothing was recorded.

Joins by time and rate alone, and never resamples: what does not lie on the grid of the first waveform, to half a
sample, or overlaps what is there, is refused by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from wavestitch.contracts.errors import BadInput
from wavestitch.reading.waveform import Waveform


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
        steps = np.round(np.arange(len(self.physical)) * 1e9 / self.rate_hz).astype(np.int64)
        return (self.start_ns + steps).view("datetime64[ns]")


def join(found: Sequence[Waveform], *, start_ns: int, end_ns: int) -> Series:
    """The samples of these waveforms of one channel whose time lies in `[start_ns, end_ns)`. Raises `BadInput` where
    they have different rates or units, or overlap."""
    ordered = sorted(found, key=lambda w: w.start_ns)
    first = ordered[0]
    values: list[npt.NDArray[np.float64]] = []
    gaps: list[tuple[int, int]] = []
    at, begin = 0, None
    for one in ordered:
        if (one.rate_hz, one.units) != (first.rate_hz, first.units):
            raise BadInput(
                f"waveform {one.id!r} has {one.rate_hz} Hz and {one.units!r}, {first.id!r} has {first.rate_hz} Hz and "
                f"{first.units!r}; choose one of them by time or channel"
            )
        skip = max(0, int(np.ceil((start_ns - one.start_ns) * one.rate_hz / 1e9 - 1e-6)))
        stop = min(len(one), max(0, int(np.ceil((end_ns - one.start_ns) * one.rate_hz / 1e9 - 1e-6))))
        if stop <= skip:
            continue
        if begin is None:
            begin = one.start_ns + round(skip * 1e9 / one.rate_hz)
        exact = (one.start_ns + skip * 1e9 / one.rate_hz - begin) * one.rate_hz / 1e9
        place = round(exact)
        if place < at:
            raise BadInput(
                f"waveform {one.id!r} begins {at - place} samples before the one before it ends; a series has one "
                "value for each time, read them one by one"
            )
        if place > at:
            gaps.append((at, place))
            values.append(np.full(place - at, np.nan))
        values.append(one.physical[skip:stop])
        at = place + stop - skip
    joined = np.concatenate(values) if values else np.empty(0)
    ids = tuple(w.id for w in ordered)
    return Series(first.source, first.channel, begin or start_ns, first.rate_hz, first.units, joined, gaps, ids)
