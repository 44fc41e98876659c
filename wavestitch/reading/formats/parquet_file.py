"""Parquet, by PyArrow: one row with the table's columns, its samples in the type that they were sent in."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from wavestitch.reading.formats.file_format import FileFormat, Found, about
from wavestitch.reading.waveform import Waveform


def _write(waveform: Waveform, path: Path, _name: str) -> None:
    samples = pa.array(waveform.samples)
    said = {name: pa.array([value]) for name, value in about(waveform).items()}
    columns = {
        **said,
        "start_time": pa.array([waveform.start], pa.timestamp("us", tz="UTC")),
        "start_time_ns": pa.array([waveform.start_ns], pa.int64()),
        "sampling_rate_hz": pa.array([waveform.rate_hz], pa.float64()),
        "sample_count": pa.array([len(waveform)], pa.int64()),
        "samples": pa.ListArray.from_arrays([0, len(samples)], samples),
        "meta": pa.array([waveform.row["meta"]]),
        "digest": pa.array([waveform.provenance.digest]),
    }
    pq.write_table(pa.table(columns), path)


def _read(path: Path, _name: str) -> Found:
    table = pq.read_table(path)
    samples = table["samples"].combine_chunks().values.to_numpy(zero_copy_only=False)
    (row,) = table.drop_columns(["samples"]).to_pylist()
    return Found(
        samples,
        row["sampling_rate_hz"],
        row["start_time_ns"],
        row["units"],
        row["adc_gain"],
        row["baseline"],
        row["source"],
        row["channel"],
    )


FILE = FileFormat(".parquet", _write, _read)
