"""Published waveforms as Arrow tables and NumPy arrays, for whoever works with the data.

    tables = StreamTables(CatalogSettings("wavestitch", uri, warehouse), "ecg")
    for row in each_row(read_waveforms(tables, start=datetime(2026, 1, 5, tzinfo=UTC))):
        millivolts = physical_samples(row)

Never changes anything. What was sent comes back bit by bit (I3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import FileScanTask, Table

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.rows import PUBLISHED_DOCS, published_schema
from wavestitch.contracts.sample_types import as_sent, list_values
from wavestitch.tables.commit.samples_column import sample_type_of
from wavestitch.tables.lookup.file_scans import read_rows
from wavestitch.tables.lookup.row_filter import all_of, at_least, below, equals, is_in
from wavestitch.tables.stream_tables import StreamTables


def read_waveforms(
    tables: StreamTables,
    ids: Collection[str] | None = None,
    columns: Sequence[str] | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
) -> pa.Table:
    """The published waveforms with these ids whose first sample lies in `[start, end)`; all of them by default.

    One row a waveform, columns as in `wavestitch.contracts.rows.published_schema` (all, or those named, in that
    order). Times must have a time zone. What is selected is held in memory: name columns without `samples` to look
    around first. Raises `BadInput` for an unknown column or a time without zone.
    """
    names = list(PUBLISHED_DOCS if columns is None else columns)
    unknown = [n for n in names if n not in PUBLISHED_DOCS]
    if unknown:
        raise BadInput(f"published waveforms have no column {unknown[0]!r}; there are {', '.join(PUBLISHED_DOCS)}")
    wanted = _filter(ids, start, end)
    table = tables.waveforms()
    whole = published_schema("int" if table is None else sample_type_of(table))
    schema = pa.schema([whole.field(n) for n in names])
    batches = [] if table is None else [b.select(names).cast(schema) for b in read_rows(table, names, wanted)]
    return pa.Table.from_batches(batches, schema=schema)


def read_batches(
    table: Table,
    *,
    ids: Collection[str] | None = None,
    equal: Mapping[str, str] | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
    reaching: datetime | None = None,
    without: Collection[str] = (),
    files: Sequence[FileScanTask] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The same with all columns, a data file at a time, of the table as it was loaded. `equal`: what columns of text
    must be. `reaching`: their last sample is no earlier. `without`: columns that are not read.
    `files`: those that can have what is asked for, where that is known better than by their bounds."""
    schema = pa.schema([f for f in published_schema(sample_type_of(table)) if f.name not in without])
    more = [equals(name, value) for name, value in (equal or {}).items()]
    if reaching is not None:
        more.append(at_least("end_time", _zoned(reaching)))
    for batch in read_rows(table, schema.names, all_of(_filter(ids, start, end), *more), files):
        if batch.num_rows:
            yield batch.select(schema.names).cast(schema)


def each_row(found: pa.Table) -> Iterator[dict[str, Any]]:
    """Its rows as dictionaries; `samples` stays Arrow's, and no sample becomes an object of Python."""
    for batch in found.to_batches():
        samples = batch["samples"] if "samples" in batch.schema.names else None
        others = batch if samples is None else batch.drop_columns(["samples"])
        for n, row in enumerate(others.to_pylist()):
            yield row if samples is None else {**row, "samples": samples[n]}


def raw_samples(row: Mapping[str, Any]) -> npt.NDArray[Any]:
    """The samples as they were recorded, shape (sample_count,), little-endian in the row's own `sample_format`: their
    bytes are what was sent. Needs the columns `samples` and `sample_format`."""
    return as_sent(list_values(row["samples"]), row["sample_format"])


def physical_samples(row: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    """The samples in the row's `units`, float64, shape (sample_count,): (sample - baseline) / adc_gain.

    Needs the columns `samples`, `sample_format`, `baseline` and `adc_gain`. 64-bit integers beyond 2**53 are rounded.
    """
    return (raw_samples(row).astype(np.float64) - float(row["baseline"])) / float(row["adc_gain"])


def _filter(ids: Collection[str] | None, start: datetime | None, end: datetime | None) -> BooleanExpression:
    parts: list[BooleanExpression] = []
    if isinstance(ids, str):
        raise BadInput(f"ids={ids!r} is one text, whose letters would be taken for ids; write ids=[{ids!r}]")
    if ids is not None:
        parts.append(is_in("waveform_id", ids))
    if start is not None:
        parts.append(at_least("start_time", _zoned(start)))
    if end is not None:
        parts.append(below("start_time", _zoned(end)))
    return all_of(*parts)


def _zoned(time: datetime) -> str:
    if time.tzinfo is None:
        raise BadInput(f"{time.isoformat()} has no time zone; use e.g. datetime(…, tzinfo=UTC)")
    try:
        return time.astimezone(UTC).isoformat()  # pyiceberg's parser knows no zone whose offset has seconds
    except OverflowError:
        raise BadInput(f"{time.isoformat()} is outside of the years 1 to 9999 in UTC") from None
