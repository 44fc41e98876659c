"""What the gate looks at: least and greatest finite sample, and how many samples are not finite. Samples stay here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wavestitch.contracts.sample_types import FORMAT_DTYPES, runs_of_formats

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_UNMEASURED = -1


class SampleMetrics(NamedTuple):
    """Of one waveform, in raw units; no ends without a finite sample. An end that is zero is 0.0: of zeros of either
    sign, which one a processor takes for the least is its own."""

    least: float | None
    greatest: float | None
    nonfinite: int


@dataclass(frozen=True, slots=True, eq=False)
class MetricColumns:
    """The same of many. `least`, `greatest`: NaN where there are no ends; `nonfinite`: negative where nothing was
    measured."""

    least: Floats
    greatest: Floats
    nonfinite: Ints

    @classmethod
    def unmeasured(cls, count: int) -> MetricColumns:
        return cls(np.full(count, np.nan), np.full(count, np.nan), np.full(count, _UNMEASURED, np.int64))

    def put(self, at: Ints, found: MetricColumns) -> None:
        """What was measured of these."""
        self.least[at], self.greatest[at], self.nonfinite[at] = found.least, found.greatest, found.nonfinite

    def taken(self, at: Ints) -> MetricColumns:
        return MetricColumns(self.least[at], self.greatest[at], self.nonfinite[at])

    def in_units(self, baseline: Floats, gain: Floats) -> tuple[Floats, Floats]:
        """Least and greatest value in units: (sample - baseline) / gain. A negative gain swaps them."""
        with np.errstate(over="ignore"):
            a, b = (self.least - baseline) / gain, (self.greatest - baseline) / gain
        return np.where(b < a, b, a), np.where(b > a, b, a)


def measure_samples(
    data: npt.NDArray[np.uint8], bounds: Ints, formats: Sequence[str] | npt.NDArray[np.str_]
) -> MetricColumns:
    """Metrics of waveforms that lie one behind the other: waveform i is bytes `[bounds[i], bounds[i + 1])`.

    Waveforms of one format are reduced together.
    """
    found = MetricColumns.unmeasured(len(bounds) - 1)
    for lo, hi, sample_format in runs_of_formats(formats):
        cuts = bounds[lo : hi + 1]
        values = data[cuts[0] : cuts[-1]].view(FORMAT_DTYPES[sample_format])
        found.put(np.arange(lo, hi), _reduce(values, (cuts - cuts[0]) // values.itemsize))
    return found


def measure_waveform(sent: Any, sample_format: str) -> SampleMetrics:
    """Metrics of one waveform with these bytes."""
    data = np.frombuffer(sent, np.uint8)
    found = measure_samples(data, np.array([0, len(data)]), [sample_format])
    least, greatest = (None if np.isnan(end[0]) else float(end[0]) for end in (found.least, found.greatest))
    return SampleMetrics(least, greatest, int(found.nonfinite[0]))


def _reduce(values: Any, cuts: Ints) -> MetricColumns:
    starts = cuts[:-1]
    with np.errstate(invalid="ignore"):  # comparing a signalling NaN is no fault here
        low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        least, greatest = low.astype(np.float64) + 0.0, high.astype(np.float64) + 0.0  # -0.0 + 0.0 is 0.0
    found = MetricColumns(least, greatest, np.zeros(len(starts), np.int64))
    if values.dtype.kind == "f":
        # Where both ends are finite all is: NaN would have come through, and an infinity would be one of them.
        for i in np.flatnonzero(~(np.isfinite(low) & np.isfinite(high))).tolist():
            found.least[i], found.greatest[i], found.nonfinite[i] = _of_finite(values[cuts[i] : cuts[i + 1]])
    return found


def _of_finite(values: Any) -> tuple[float, float, int]:
    finite = np.isfinite(values)
    count = int(np.count_nonzero(finite))
    if count == 0:
        return np.nan, np.nan, len(values)
    least = np.min(values, where=finite, initial=np.inf)
    greatest = np.max(values, where=finite, initial=-np.inf)
    return float(least) + 0.0, float(greatest) + 0.0, len(values) - count
