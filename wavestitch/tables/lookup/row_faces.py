"""The faces of rows: of one snapshot of the published table, and of files that were stitched and nobody published.

Reads the table as it was loaded, a file at a time, in bounded memory; changes nothing. What cannot be read as the
table's is a row whose samples are like no other's: it differs, and does not stop the look at the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.table import Table

from wavestitch.contracts.held import PublishedWaveform
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.position import Head
from wavestitch.contracts.row_face import RowFace, RowPiece, face_of
from wavestitch.contracts.rows import PUBLISHED_DOCS
from wavestitch.contracts.sample_types import came_exactly, sent_bytes
from wavestitch.tables.history.heads import heads_of
from wavestitch.tables.lookup.file_scans import deleted_rows, files_to_read, read_file, some_at_once, stream_file
from wavestitch.tables.lookup.id_index import IdIndex
from wavestitch.tables.lookup.published_lookup import find_published
from wavestitch.tables.lookup.row_filter import EVERY_ROW, all_of, at_least, below

_ABOUT = [name for name in PUBLISHED_DOCS if name != "samples"]
Pieces = tuple[RowPiece, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PinnedRows:
    """The published table as it was loaded once: every look is at the same snapshot. Its rows are found by reading the
    table, not by the `index` of ids, which is a host's cache and no witness; that only says what was published."""

    table: Table
    index: IdIndex | None

    def heads(self) -> list[Head]:
        """Its own and those before it that are left, newest first."""
        return list(heads_of(self.table))

    def rows_from(self, ranges: Sequence[OffsetRange], topic_id: str) -> Iterator[tuple[str, Pieces]]:
        return rows_from(self.table, ranges, topic_id)

    def rows_starting(self, scope: Scope) -> Iterator[tuple[str, Pieces]]:
        return rows_starting(self.table, scope)

    def faces(self, ids: Collection[str]) -> Iterator[RowFace]:
        return faces_of(self.table, ids)

    def published(self, ids: Collection[str]) -> dict[str, PublishedWaveform]:
        return find_published(self.table, ids, index=self.index)


def rows_from(table: Table, ranges: Sequence[OffsetRange], topic_id: str) -> Iterator[tuple[str, Pieces]]:
    """The rows that have a chunk of this topic in one of these ranges. Reads two columns of the whole table."""
    for task in files_to_read(table):
        for batch in read_file(table, task, ["waveform_id", "chunks"]):
            yield from _with_pieces(batch, _touching(batch["chunks"], ranges, topic_id))


def rows_starting(table: Table, scope: Scope) -> Iterator[tuple[str, Pieces]]:
    """The rows that say they start in an interval."""
    wanted = all_of(at_least("start_time_ns", scope.start_ns), below("start_time_ns", scope.end_ns))
    for task in files_to_read(table, wanted):
        for batch in read_file(table, task, ["waveform_id", "chunks", "start_time_ns"], wanted):
            yield from _with_pieces(batch, np.ones(batch.num_rows, np.bool_))


def faces_of(table: Table, ids: Collection[str]) -> Iterator[RowFace]:
    """Of all rows with one of these ids, each as often as it is there."""
    wanted = pa.array(sorted(ids), pa.string())
    for task in files_to_read(table):
        column = (batch["waveform_id"] for batch in read_file(table, task, ["waveform_id"], EVERY_ROW))
        if any(pc.any(pc.is_in(some, value_set=wanted)).as_py() for some in column):
            for batch in stream_file(table, task.file, gone=deleted_rows(table, task)):
                yield from _faces(batch.filter(pc.is_in(batch["waveform_id"], value_set=wanted)))


def staged_faces(path: Path) -> Iterator[RowFace]:
    """Of the rows of a file that was stitched."""
    with pq.ParquetFile(path) as parquet:
        for batch in some_at_once(parquet):
            yield from _faces(batch)


def _faces(batch: pa.RecordBatch) -> Iterator[RowFace]:
    about = batch.select(_ABOUT)
    # Whole microseconds: there are times that no calendar has.
    whole = [_microseconds(column) for column in about.columns]
    for n, row in enumerate(pa.RecordBatch.from_arrays(whole, names=about.schema.names).to_pylist()):
        yield face_of(row, _sent(batch["samples"][n], row["sample_format"]))


def _microseconds(column: pa.Array) -> pa.Array:
    kind = column.type
    if not pa.types.is_timestamp(kind):
        return column
    return column.cast(pa.timestamp("us", tz=kind.tz)).cast(pa.int64())


def _sent(samples: pa.ListScalar, sample_format: str) -> memoryview | bytes:
    try:
        if samples.is_valid and not samples.values.null_count and came_exactly(samples, sample_format):
            return sent_bytes(samples, sample_format)
    except (ArithmeticError, LookupError, TypeError, ValueError, pa.ArrowException):
        pass
    return f"no samples of format {sample_format!r}".encode()


def _touching(chunks: pa.Array, ranges: Sequence[OffsetRange], topic_id: str) -> np.ndarray:
    flat = chunks.flatten()
    row_of = np.asarray(pc.list_parent_indices(chunks), np.int64)
    partition, offset = np.asarray(flat.field("partition")), np.asarray(flat.field("offset"))
    mine = np.asarray(pc.equal(flat.field("topic_id"), topic_id))
    inside = np.zeros(len(flat), np.bool_)
    for r in ranges:
        inside |= mine & (partition == r.partition) & (offset >= r.start) & (offset < r.end)
    found = np.zeros(len(chunks), np.bool_)
    found[row_of[inside]] = True
    return found


def _with_pieces(batch: pa.RecordBatch, wanted: np.ndarray) -> Iterator[tuple[str, Pieces]]:
    for row in batch.filter(pa.array(wanted)).select(["waveform_id", "chunks"]).to_pylist():
        yield row["waveform_id"], tuple(RowPiece(*(c[name] for name in RowPiece._fields)) for c in row["chunks"])
