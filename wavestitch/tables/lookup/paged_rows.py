"""Rows of the published table for a page of results: so many of them, out of so many files at most, samples aside.

A look goes through the files of one snapshot, those with the newest waveforms first, and says where the next one goes
on: in the same snapshot, so that no row is told twice or left out, whatever is published meanwhile. Reads no samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import BooleanExpression
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table
from pyiceberg.types import TimestamptzType

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.rows import PUBLISHED_DOCS
from wavestitch.tables.lookup.file_scans import files_to_read, read_file

ABOUT = tuple(name for name in PUBLISHED_DOCS if name not in ("samples", "chunks", "meta"))
Rows = tuple[Mapping[str, Any], ...]
_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Place:
    """Where a look goes on: file and row (of those that are meant) of a snapshot, both by their number."""

    snapshot_id: int
    file: int
    row: int


@dataclass(frozen=True, slots=True)
class PageOfRows:
    """`opened` of `files` that may have rows were opened. `after`: where the next page begins; None at the end."""

    rows: Rows
    opened: int
    files: int
    after: Place | None


def page_of_rows(
    table: Table,
    wanted: BooleanExpression,
    *,
    begin: Place | None,
    most_rows: int,
    most_files: int,
    columns: Sequence[str] = ABOUT,
    files: Sequence[FileScanTask] | None = None,
) -> PageOfRows:
    """The next rows that meet `wanted`. `files`: those that can have some, of the table as it was loaded, where that is
    known; `after` counts in them then. Raises `Refused` where the snapshot that the page before was of has expired."""
    current = table.metadata.current_snapshot_id
    if current is None:
        return PageOfRows((), 0, 0, None)
    at = begin or Place(current, 0, 0)
    if table.metadata.snapshot_by_id(at.snapshot_id) is None:
        raise Refused(f"snapshot {at.snapshot_id}, which this list began in, has expired meanwhile; begin it again")
    tasks = files_to_read(table, wanted, snapshot_id=at.snapshot_id) if files is None else files
    ordered = sorted(tasks, key=lambda task: _newest_first(table, task.file))
    found: list[Mapping[str, Any]] = []
    opened = 0
    for number in range(at.file, len(ordered)):
        if opened == most_files:
            return PageOfRows(tuple(found), opened, len(ordered), Place(at.snapshot_id, number, 0))
        opened += 1
        skip = at.row if number == at.file else 0
        batches = read_file(table, ordered[number], columns, wanted, snapshot_id=at.snapshot_id)
        for row, one in _numbered(batches, skip):
            if len(found) == most_rows:
                return PageOfRows(tuple(found), opened, len(ordered), Place(at.snapshot_id, number, row))
            found.append(one)
    return PageOfRows(tuple(found), opened, len(ordered), None)


def newest_end(table: Table) -> datetime | None:
    """The time of the last sample of all, by what the table says of its files: none is opened. None where it does not
    say."""
    found = [end for task in files_to_read(table) if (end := _bound(table, task.file.upper_bounds, "end_time"))]
    return datetime.fromtimestamp(max(found) // 10**6, UTC) if found else None


def _numbered(batches: Iterable[pa.RecordBatch], skip: int) -> Iterator[tuple[int, dict[str, Any]]]:
    before = 0
    for batch in batches:
        for begin in range(max(0, skip - before), batch.num_rows, _AT_ONCE):
            yield from enumerate(batch.slice(begin, _AT_ONCE).to_pylist(), before + begin)
        before += batch.num_rows


def _newest_first(table: Table, file: DataFile) -> tuple[int, str]:
    return -(_bound(table, file.lower_bounds, "start_time") or 0), file.file_path


def _bound(table: Table, bounds: Mapping[int, bytes] | None, column: str) -> int | None:
    """In microseconds; None where the table does not say."""
    raw = (bounds or {}).get(table.schema().find_field(column).field_id)
    return None if raw is None else int(from_bytes(TimestamptzType(), raw))
