"""Published waveforms as Arrow tables and NumPy arrays, for whoever works with the data.

    tables = StreamTables(CatalogSettings("wavestitch", uri, warehouse), "ecg")
    for row in each_row(read_waveforms(tables, start=datetime(2026, 1, 5, tzinfo=UTC))):
        millivolts = physical_samples(row)

Never changes anything. What was sent comes back bit by bit (I3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import FileScanTask, Table

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.instant import Instant, instant_ns
from wavestitch.contracts.rows import PUBLISHED_DOCS, published_schema
from wavestitch.contracts.sample_types import as_sent, list_values
from wavestitch.tables.commit.samples_column import sample_type_of
from wavestitch.tables.lookup.file_scans import read_rows
from wavestitch.tables.lookup.row_filter import all_of, at_least, below, equals, is_in
from wavestitch.tables.stream_tables import StreamTables

_MOST_NS = (1 << 63) - 1


def read_waveforms(
    tables: StreamTables,
    ids: Collection[str] | None = None,
    columns: Sequence[str] | None = None,
    start: Instant | None = None,
    end: Instant | None = None,
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
    begin, behind = (None if said is None else instant_ns(said) for said in (start, end))
    wanted = _filter(ids, begin, behind)
    table = tables.waveforms()
    whole = published_schema("int" if table is None else sample_type_of(table))
    schema = pa.schema([whole.field(n) for n in names])
    batches = [] if table is None else [b.select(names).cast(schema) for b in read_rows(table, names, wanted)]
    return pa.Table.from_batches(batches, schema=schema)


def read_batches(
    table: Table,
    columns: Sequence[str] | None = None,
    *,
    ids: Collection[str] | None = None,
    equal: Mapping[str, str] | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
    reaching_ns: int | None = None,
    files: Sequence[FileScanTask] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The same, a data file at a time, of the table as it was loaded. `columns`: all, or those named. `equal`: what
    columns of text must be. `reaching_ns`: their last sample is no earlier. `files`: those that can have what is asked
    for, where that is known better than by their bounds."""
    whole = published_schema(sample_type_of(table))
    schema = whole if columns is None else pa.schema([whole.field(n) for n in columns])
    more = [equals(name, value) for name, value in (equal or {}).items()]
    if reaching_ns is not None:
        more.append(at_least("end_time", _room(reaching_ns) // 1000))
    for batch in read_rows(table, schema.names, all_of(_filter(ids, start_ns, end_ns), *more), files):
        if batch.num_rows:
            yield batch.select(schema.names).cast(schema)


def each_row(found: pa.Table) -> Iterator[dict[str, Any]]:
    """Its rows as dictionaries; `samples` stays Arrow's, and no sample becomes an object of Python. Who keeps a row
    keeps its samples alone."""
    for batch in found.to_batches():
        samples = batch["samples"] if "samples" in batch.schema.names else None
        others = batch if samples is None else batch.drop_columns(["samples"])
        for n, row in enumerate(others.to_pylist()):
            yield row if samples is None else {**row, "samples": _alone(samples, n)}


def _alone(samples: pa.Array, row: int) -> pa.Scalar:
    """Without the others: as a view it would keep the whole file's in memory."""
    return pa.concat_arrays([samples.slice(row, 1)])[0]


def raw_samples(row: Mapping[str, Any]) -> npt.NDArray[Any]:
    """The samples as they were recorded, shape (sample_count,), little-endian in the row's own `sample_format`: their
    bytes are what was sent. Needs the columns `samples` and `sample_format`."""
    return as_sent(list_values(row["samples"]), row["sample_format"])


def physical_samples(row: Mapping[str, Any]) -> npt.NDArray[np.float64]:
    """The samples in the row's `units`, float64, shape (sample_count,): (sample - baseline) / adc_gain.

    Needs the columns `samples`, `sample_format`, `baseline` and `adc_gain`. 64-bit integers beyond 2**53 are rounded.
    """
    return (raw_samples(row).astype(np.float64) - float(row["baseline"])) / float(row["adc_gain"])


def _filter(ids: Collection[str] | None, start_ns: int | None, end_ns: int | None) -> BooleanExpression:
    parts: list[BooleanExpression] = []
    if ids is not None:
        parts.append(is_in("waveform_id", ids))
    # Files are ruled out, and lie, by microseconds, rounded down; what is asked for is exact.
    if start_ns is not None:
        begin = _room(start_ns)
        parts += [at_least("start_time", begin // 1000), at_least("start_time_ns", begin)]
    if end_ns is not None:
        behind = _room(end_ns)
        parts += [below("start_time", -(-behind // 1000)), below("start_time_ns", behind)]
    return all_of(*parts)


def _room(time_ns: int) -> int:
    """What the column has room for; no waveform is beyond."""
    return min(max(time_ns, -_MOST_NS), _MOST_NS)
