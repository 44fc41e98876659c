"""Reading a table file by file, some columns of it, in bounded memory.

pyiceberg's own batch reader decodes all files of a scan side by side and keeps what was not fetched yet; here one file
is decoded after another. Deleted rows are left out, by `stream_file` where it is told of them. Never reads anything but
the snapshot of the table it was given.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions import BooleanExpression
from pyiceberg.io.pyarrow import ArrowScan, _read_all_delete_files
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table

from wavestitch.contracts.errors import Altered
from wavestitch.tables.access.reading import reading_files
from wavestitch.tables.commit.table_layout import columns_of
from wavestitch.tables.lookup.row_filter import EVERY_ROW
from wavestitch.tables.lookup.unpacked import unpacked_bytes

Rows = npt.NDArray[np.int64]

_AT_ONCE_BYTES = 16 << 20
_AT_ONCE_ROWS = 1024
"""Of texts that repeat a footer does not say how long they are; what a producer says of a row is 16 KiB at most."""


def files_to_read(
    table: Table, row_filter: BooleanExpression = EVERY_ROW, *, snapshot_id: int | None = None
) -> list[FileScanTask]:
    """The files of a snapshot (the current one) that can have matching rows, in order of their paths."""
    with reading_files(table, snapshot_id):
        found = table.scan(row_filter=row_filter, snapshot_id=snapshot_id).plan_files()
        return sorted(found, key=lambda task: task.file.file_path)


def read_file(
    table: Table,
    task: FileScanTask,
    columns: Sequence[str],
    row_filter: BooleanExpression = EVERY_ROW,
    *,
    repeated: Sequence[str] = (),
    snapshot_id: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The matching rows of one file of a snapshot (the current one), in the file's order. `repeated`: columns of texts
    that come as dictionaries; as they are, a text of 16 KiB that costs its file nothing takes that much in every
    row."""
    schema, few = table.schema().select(*columns), tuple(repeated)
    with reading_files(table, snapshot_id), _dictionaries_unsaid():
        scan = ArrowScan(table.metadata, table.io, schema, row_filter, dictionary_columns=few)
        yield from scan.to_record_batches([task])


@contextmanager
def _dictionaries_unsaid() -> Iterator[None]:
    """pyiceberg warns of each such column of each file that tables have no dictionaries. Nobody wants them to."""
    said = logging.getLogger("pyiceberg.io.pyarrow")
    unsaid = _NotOfDictionaries()  # one of its own for each, so that who ends first ends nobody else's
    said.addFilter(unsaid)
    try:
        yield
    finally:
        said.removeFilter(unsaid)


class _NotOfDictionaries(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("Iceberg does not have a dictionary type.")


def deleted_rows(table: Table, task: FileScanTask) -> Rows | None:
    """The numbers of the rows of a file that another tool marked as deleted, and which no reader sees any more; None
    where there are none."""
    if not task.delete_files:
        return None
    with reading_files(table):
        found = _read_all_delete_files(table.io, [task]).get(task.file.file_path, [])
    rows = [some.to_numpy() for some in found if len(some)]
    return np.unique(np.concatenate(rows)) if rows else None  # a delete file may be of other files of the partition


def stream_file(table: Table, file: DataFile, *, gone: Rows | None = None) -> Iterator[pa.RecordBatch]:
    """All rows of one file but those with these numbers, and the columns that are ours, about 16 MiB unpacked at a
    time: a scan would hold the whole file. Samples are of the type that they were written in: a promotion would touch
    up what is no number. Raises `Altered` for a file without one of our columns."""
    columns, number = columns_of(table.name()[-1]), 0
    with reading_files(table), table.io.new_input(file.file_path).open() as source:
        parquet = pq.ParquetFile(source)
        lacks = set(columns.names).difference(parquet.schema_arrow.names)
        if lacks:
            raise Altered(f"{file.file_path} has no column {min(lacks)}; look for what wrote it", file=file.file_path)
        for batch in some_at_once(parquet):
            found = batch.select(columns.names)
            if gone is not None:
                found = found.filter(~np.isin(np.arange(number, number + batch.num_rows), gone))
            number += batch.num_rows
            samples = {n: f for n, f in enumerate(found.schema) if f.name == "samples"}
            yield found.cast(pa.schema([samples.get(n, field) for n, field in enumerate(columns)]))


def some_at_once(parquet: pq.ParquetFile) -> Iterator[pa.RecordBatch]:
    """Of each row group in turn as many rows as take that much unpacked, as its rows do on average."""
    for n in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(n)
        rows = _AT_ONCE_BYTES * group.num_rows // max(1, unpacked_bytes(group))
        yield from parquet.iter_batches(batch_size=min(max(1, rows), _AT_ONCE_ROWS), row_groups=[n])


def read_rows(
    table: Table,
    columns: Sequence[str],
    row_filter: BooleanExpression = EVERY_ROW,
    tasks: Sequence[FileScanTask] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The matching rows of the whole table, or of these files."""
    for task in files_to_read(table, row_filter) if tasks is None else tasks:
        yield from read_file(table, task, columns, row_filter)
