"""Waveforms and series as xarray has them: arrays with names, times and units. Samples are raw, and stay as sent.

Waveforms have different lengths: they become one contiguous ragged array, as the CF conventions describe it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from wavestitch.contracts.errors import BadInput
from wavestitch.reading.extras import extra
from wavestitch.reading.series import Series
from wavestitch.reading.waveform import Waveform


def _xarray() -> Any:
    return extra("xarray", for_what="to_xarray()", named="xarray")


def label_waveforms(waveforms: Iterable[Waveform]) -> Any:
    """A `Dataset`: `samples` along `sample`, all waveforms one behind the other; `sample_count` of each along
    `waveform`, with what the table says of it. Raises `BadInput` where they were sent in different formats, or there
    are none."""
    found = list(waveforms)
    formats = sorted({w.format for w in found})
    if len(formats) != 1:
        seen = f"formats {', '.join(formats)}" if formats else "no waveform"
        raise BadInput(f"there is {seen}; one array has samples of one format: choose some by source, channel or ids")
    about = {
        "source": [w.source for w in found],
        "channel": [w.channel for w in found],
        "units": [w.units for w in found],
        "sampling_rate_hz": [w.rate_hz for w in found],
        "adc_gain": [w.gain for w in found],
        "baseline": [w.baseline for w in found],
    }
    start = np.array([w.start_ns for w in found], np.int64).view("datetime64[ns]")
    coordinates = {
        "waveform_id": ("waveform", [w.id for w in found]),
        "start_time": ("waveform", start),
        **{name: ("waveform", values) for name, values in about.items()},
    }
    counts = ("waveform", [len(w) for w in found], {"sample_dimension": "sample"})
    samples = ("sample", np.concatenate([w.samples for w in found]), {"sample_format": formats[0]})
    return _xarray().Dataset({"samples": samples, "sample_count": counts}, coords=coordinates)


def label_series(series: Series) -> Any:
    """A `DataArray` along `time`: float64 in `units`, NaN in the gaps."""
    said = {"units": series.units, "source": series.source, "sampling_rate_hz": series.rate_hz}
    return _xarray().DataArray(
        series.physical, dims="time", coords={"time": series.times}, name=series.channel, attrs=said
    )
