"""What the gate looks at: least and greatest finite sample, and how many samples are not finite. Samples stay here."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wavestitch.contracts.chunk_metadata import Metadata
from wavestitch.contracts.sample_types import FORMAT_DTYPES


class SampleMetrics(NamedTuple):
    """Of one waveform, in raw units; no ends without a finite sample, no count where nothing was measured."""

    least: float | None
    greatest: float | None
    nonfinite: int | None


def measure_samples(
    data: npt.NDArray[np.uint8], bounds: npt.NDArray[np.int64], formats: Sequence[str]
) -> list[SampleMetrics]:
    """Metrics of waveforms that lie one behind the other: waveform i is bytes `[bounds[i], bounds[i + 1])`.

    Waveforms of one format are reduced together.
    """
    found: list[SampleMetrics] = []
    for sample_format, run in groupby(range(len(formats)), key=formats.__getitem__):
        members = list(run)
        cuts = bounds[members[0] : members[-1] + 2]
        values = data[cuts[0] : cuts[-1]].view(FORMAT_DTYPES[sample_format])
        found.extend(_reduce(values, (cuts - cuts[0]) // values.itemsize))
    return found


def physical_range(metrics: SampleMetrics, metadata: Metadata) -> tuple[float | None, float | None]:
    """Least and greatest value in units: (sample - baseline) / adc_gain. A negative gain swaps them."""
    if metrics.least is None or metrics.greatest is None:
        return None, None
    a = (metrics.least - metadata.baseline) / metadata.adc_gain
    b = (metrics.greatest - metadata.baseline) / metadata.adc_gain
    return min(a, b), max(a, b)


def _reduce(values: Any, cuts: npt.NDArray[np.int64]) -> list[SampleMetrics]:
    starts = cuts[:-1]
    if values.dtype.kind == "i":
        low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        return [SampleMetrics(float(a), float(b), 0) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    with np.errstate(invalid="ignore"):  # comparing a signalling NaN is no fault here
        low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    found = []
    # Both ends finite: NaN would have come through, and an infinity would be one of them.
    for i, whole in enumerate((np.isfinite(low) & np.isfinite(high)).tolist()):
        if whole:
            found.append(SampleMetrics(float(low[i]), float(high[i]), 0))
        else:
            found.append(_of_finite(values[cuts[i] : cuts[i + 1]]))
    return found


def _of_finite(values: Any) -> SampleMetrics:
    finite = np.isfinite(values)
    count = int(np.count_nonzero(finite))
    if count == 0:
        return SampleMetrics(None, None, len(values))
    least = np.min(values, where=finite, initial=np.inf)
    greatest = np.max(values, where=finite, initial=-np.inf)
    return SampleMetrics(float(least), float(greatest), len(values) - count)
