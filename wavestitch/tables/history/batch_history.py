"""Rows of the `batches` table: the history for people, one row a committed decision. Never an authority."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any

import pyarrow as pa
from cachetools import LRUCache, cached
from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import BooleanExpression
from pyiceberg.table import FileScanTask, Table
from pyiceberg.types import PrimitiveType

from wavestitch.contracts.batch_row import BatchRow, batch_row_from_json
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.harmless import harmless
from wavestitch.contracts.past_cost import RECENT
from wavestitch.tables.commit.table_layout import BATCHES
from wavestitch.tables.lookup.file_scans import files_to_read, read_rows
from wavestitch.tables.lookup.row_filter import EVERY_ROW, all_of, at_least, equals

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AT_ONCE = 256
_RECORDED = ("sequence", "decision")
_SAID = (*_RECORDED, "detail")
_FEW = 4
"""Rows of a file that is kept in memory: a row is some kilobytes."""


def read_history(
    table: Table,
    *,
    since: int,
    plan_id: str | None,
    odd: list[str] | None = None,
    tasks: Sequence[FileScanTask] | None = None,
) -> list[BatchRow]:
    """Rows of sequence `since` and later, of one plan where it is named; newest first. `odd`: takes a sentence for each
    row that cannot be read, which is left out then; without it, such a row is an error. `tasks`: the files that can
    have such a row, where that is known."""
    wanted = _from(since) if plan_id is None else all_of(_from(since), equals("plan_id", plan_id))
    rows = []
    for task in files_to_read(table, wanted) if tasks is None else tasks:
        few = plan_id is None and task.file.record_count <= _FEW and not task.delete_files
        said = filter(_at_least(since), _said_of_few(table, task)) if few else _said_of(table, task, wanted)
        for sequence, decision, detail in said:
            try:
                rows.append(batch_row_from_json(detail or ""))
            except WavestitchError as error:
                if odd is None:
                    raise
                which = f"head {sequence}, decision {harmless(decision or '', most=16)}"
                odd.append(f"the history's row of {which} is damaged: {error.message}")
    return sorted(rows, key=lambda r: (r.sequence, r.committed_ms), reverse=True)


def _said_of(table: Table, task: FileScanTask, wanted: BooleanExpression) -> Iterator[tuple[int, str, str]]:
    """Sequence, decision and text of the rows of one file."""
    for batch in read_rows(table, _SAID, wanted, [task]):
        yield from zip(*(batch[name].to_pylist() for name in _SAID), strict=True)


@cached(LRUCache(4 * RECENT), key=lambda _, task: task.file.file_path, lock=Lock())
def _said_of_few(table: Table, task: FileScanTask) -> tuple[tuple[int, str, str], ...]:
    """All of one file. Each plan asks for the last ones, twice, and a file never changes."""
    return tuple(_said_of(table, task, EVERY_ROW))


def read_recorded(table: Table, *, since: int) -> set[tuple[int, str]]:
    """Sequence and decision of the rows of sequence `since` and later."""
    tasks = files_to_read(table, _from(since))
    said = [(task, _said_of_one(table, task)) for task in tasks]
    wanted = _at_least(since)
    there = {row for _, row in said if row is not None and wanted(row)}
    for task in (task for task, row in said if row is None):
        there |= _read_file(table, task, since) if task.delete_files else _read_once(table, task, since)
    return there


def _read_file(table: Table, task: FileScanTask, since: int) -> frozenset[tuple[int, str]]:
    batches = read_rows(table, _RECORDED, _from(since), [task])
    return frozenset(row for b in batches for row in zip(*(b[name].to_pylist() for name in _RECORDED), strict=True))


@cached(LRUCache(4), key=lambda _, task, since: (task.file.file_path, since), lock=Lock())
def _read_once(table: Table, task: FileScanTask, since: int) -> frozenset[tuple[int, str]]:
    """Each plan asks for it, and the file never changes."""
    return _read_file(table, task, since)


def _said_of_one(table: Table, task: FileScanTask) -> tuple[int, str] | None:
    """What the bounds say of a file of one row, which most are: both are that row's value, or one of them was cut.
    Whoever plans asks this of every head that is retained."""
    file = task.file
    if file.record_count != 1 or task.delete_files:
        return None
    found = []
    for name in _RECORDED:
        field = table.schema().find_field(name)
        low, high = ((bounds or {}).get(field.field_id) for bounds in (file.lower_bounds, file.upper_bounds))
        if low is None or low != high or not isinstance(field.field_type, PrimitiveType):
            return None
        found.append(from_bytes(field.field_type, low))
    return int(found[0]), str(found[1])


def absent_history(table: Table, rows: Sequence[BatchRow]) -> list[BatchRow]:
    """The rows whose sequence and decision do not stand in the table; each once."""
    there = read_recorded(table, since=min((r.sequence for r in rows), default=0))
    absent = {(r.sequence, r.decision): r for r in rows if (r.sequence, r.decision) not in there}
    return list(absent.values())


def _from(since: int) -> BooleanExpression:
    # Batches come one file each, in order: by its statistics, a file that is older is not opened.
    return at_least("sequence", since) if since > 0 else EVERY_ROW


def _at_least(since: int) -> Callable[[tuple[Any, ...]], bool]:
    """Whether a row that begins with its sequence is one of `_from`. Somebody's else may have none."""
    return lambda row: since <= 0 or (row[0] is not None and row[0] >= since)


def history_batches(rows: Sequence[BatchRow]) -> Iterator[pa.RecordBatch]:
    """Record batches in the table's columns."""
    for at in range(0, len(rows), _AT_ONCE):
        yield _columns(rows[at : at + _AT_ONCE])


def _columns(rows: Sequence[BatchRow]) -> pa.RecordBatch:
    return pa.record_batch(
        [
            pa.array([r.plan_id for r in rows], pa.string()),
            pa.array([r.decision for r in rows], pa.string()),
            pa.array([r.sequence for r in rows], pa.int64()),
            pa.array([r.generation for r in rows], pa.int64()),
            pa.array([r.kind for r in rows], pa.string()),
            pa.array([_EPOCH + timedelta(milliseconds=r.committed_ms) for r in rows], BATCHES.field("committed").type),
            pa.array([r.to_json() for r in rows], pa.string()),
        ],
        schema=BATCHES,
    )
