"""One published waveform where it lies: its file, row group and place among the samples, to read parts of it.

What is found is of one snapshot's files, which never change; a row that another tool deleted is not found. Reads the
column of ids of a file, and of the rest so many rows at a time; samples only where they are asked for, page by page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.table import FileScanTask, Table

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.rows import PUBLISHED_DOCS
from wavestitch.contracts.sample_types import Values, as_sent
from wavestitch.parquet.stored_samples import StoredSamples
from wavestitch.tables.access.reading import reading_files
from wavestitch.tables.lookup.file_scans import deleted_rows
from wavestitch.tables.lookup.unpacked import unpacked_bytes

_ABOUT = [name for name in PUBLISHED_DOCS if name != "samples"]
_ROWS = 64
_WHOLE_GROUP = 32 << 20
"""A row group of another writer that takes no more than this is read as a whole."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredRow:
    """`row`: its columns, but for the samples, which are values `[first, first + sample_count)` of a row group."""

    path: str
    group: int
    first: int
    row: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, int, int]:
        """What is at this place never changes: files of a table are written once."""
        return self.path, self.group, self.first

    def __len__(self) -> int:
        return int(self.row["sample_count"])


def find_row(table: Table, waveform_id: str, tasks: Sequence[FileScanTask]) -> StoredRow | None:
    """The waveform in one of these files of the table; None where it is in none of them."""
    for task in tasks:
        gone = deleted_rows(table, task)
        with reading_files(table), table.io.new_input(task.file.file_path).open() as source:
            found = _in_file(pq.ParquetFile(source), task.file.file_path, waveform_id, gone)
        if found is not None:
            return found
    return None


def sent_parts(table: Table, found: StoredRow, start: int, end: int) -> Iterator[Values]:
    """Its samples `[start, end)` in the dtype that they were sent in, about a mebibyte at a time. Raises `Refused`
    where they lie in a large file of another writer."""
    sample_format = found.row["sample_format"]
    with reading_files(table), table.io.new_input(found.path).open() as source:
        parquet = pq.ParquetFile(source)
        group = parquet.metadata.row_group(found.group)
        try:
            column = StoredSamples.of(source, found.path, group)
            parts = column.parts(found.first + start, found.first + end)
            first = list(islice(parts, 1))
        except Refused:
            if unpacked_bytes(group) > _WHOLE_GROUP:
                raise
            first, parts = [_whole(parquet, found)[start:end]], iter(())
        for some in (first, parts):
            for part in some:
                yield as_sent(part, sample_format)


def _in_file(parquet: pq.ParquetFile, path: str, waveform_id: str, gone: Any) -> StoredRow | None:
    before = 0
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        if _may_have(group, waveform_id):
            ids = parquet.read_row_group(number, columns=["waveform_id"])["waveform_id"]
            for row in np.flatnonzero(pc.equal(ids, pa.scalar(waveform_id, pa.string())).to_numpy()).tolist():
                if gone is None or before + row not in gone:
                    return _stored(parquet, path, number, row)
        before += group.num_rows
    return None


def _may_have(group: Any, waveform_id: str) -> bool:
    """By the bounds that the footer has of the ids; without any, it may."""
    columns = (group.column(n) for n in range(group.num_columns))
    about = next(c for c in columns if c.path_in_schema == "waveform_id")
    known = about.statistics if about.is_stats_set else None
    if known is None or not known.has_min_max:
        return True
    # By bytes, as Parquet compares them: Python's texts have another order.
    least, asked, greatest = (
        str(text).encode("utf-8", "surrogatepass") for text in (known.min, waveform_id, known.max)
    )
    return bool(least <= asked <= greatest)


def _stored(parquet: pq.ParquetFile, path: str, number: int, row: int) -> StoredRow:
    lengths = parquet.read_row_group(number, columns=["sample_count"])["sample_count"].to_numpy()
    group = parquet.metadata.row_group(number)
    columns = (group.column(n) for n in range(group.num_columns))
    values = next(c.num_values for c in columns if c.path_in_schema.startswith("samples."))
    if values != int(lengths.sum()):
        raise Refused(
            f"row group {number} of {path} has {values} samples, its rows say {int(lengths.sum())}; "
            "`wavestitch verify-table STREAM` says which rows are not what was sent",
            for_guests=False,
            file=path,
        )
    before = 0
    for batch in parquet.iter_batches(batch_size=_ROWS, row_groups=[number], columns=_ABOUT):
        if row < before + batch.num_rows:
            (about,) = batch.slice(row - before, 1).to_pylist()
            return StoredRow(path, number, int(lengths[:row].sum()), about)
        before += batch.num_rows
    raise AssertionError("a row group has fewer rows than its column of ids")


def _whole(parquet: pq.ParquetFile, found: StoredRow) -> Values:
    whole = parquet.read_row_group(found.group, columns=["samples"])["samples"].combine_chunks()
    values: Values = whole.flatten().to_numpy(zero_copy_only=False)
    return values[found.first : found.first + len(found)]
