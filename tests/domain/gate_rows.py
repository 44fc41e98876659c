"""Rows as the gate sees them, and asking it."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from wavestitch.contracts.rows import STITCHED
from wavestitch.contracts.stream import Expectation
from wavestitch.contracts.verdict import Verdict
from wavestitch.validation.gate import validate_rows

with warnings.catch_warnings():
    # Importing it uses a module that Python has deprecated; running it must not warn.
    warnings.simplefilter("ignore", DeprecationWarning)
    import great_expectations  # noqa: F401

START = datetime(2024, 5, 1, tzinfo=UTC)
Row = dict[str, Any]


def expect(what: str, severity: Any = "critical", **kwargs: Any) -> Expectation:
    return Expectation(type=f"expect_{what}", severity=severity, kwargs=kwargs)


def row(n: int, **changes: Any) -> Row:
    good = {
        "waveform_id": f"w-{n}",
        "file": "a.parquet",
        "row": n,
        "day": START.date(),
        "byte_length": 2000,
        "source": "station-1",
        "channel": "Z",
        "start_time": START + timedelta(seconds=n),
        "duration_s": 2.0,
        "sampling_rate_hz": 500.0,
        "sample_format": "i16le",
        "units": "mV",
        "sample_count": 1000,
        "nonfinite_count": 0,
        "sample_min": -9.0,
        "sample_max": 9.0,
        "physical_min": -0.9,
        "physical_max": 0.9,
        "chunk_count": 2,
    }
    return {**good, **changes}


def table(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=STITCHED)


def validate(rows: pa.Table, *expectations: Expectation, docs_folder: Path | None = None) -> Verdict:
    return validate_rows(rows, expectations, run_name="plan-1", docs_folder=docs_folder)
