"""Waveforms as a reader has them, without a table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from tests.builders.table_rows import published_row
from wavestitch.contracts.sample_types import FORMAT_DTYPES
from wavestitch.reading.waveform import Waveform, waveform_of


def make_waveform(samples: Any = (1, -2, 3), *, sample_format: str = "i16le", **changes: Any) -> Waveform:
    """At 360 Hz in mV, gain 200, unless it is said otherwise."""
    raw = np.asarray(samples, FORMAT_DTYPES[sample_format])
    finite = raw[np.isfinite(raw)]
    said = {"sampling_rate_hz": 360.0, "adc_gain": 200.0, "baseline": 0.0, "units": "mV", "channel": "II"}
    found = {
        "sample_min": float(finite.min()) if len(finite) else None,
        "sample_max": float(finite.max()) if len(finite) else None,
        "nonfinite_count": len(raw) - len(finite),
    }
    row = {**published_row("m1-0", raw=raw, sample_format=sample_format), **said, **found, **changes, "samples": raw}
    row["start_time"] = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=row["start_time_ns"] // 1000)
    return waveform_of(row)
