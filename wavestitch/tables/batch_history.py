"""Rows of the `batches` table: the history for people, one row a committed decision. Never an authority."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyiceberg.table import Table

from wavestitch.contracts.batch_row import BatchRow, batch_row_from_json
from wavestitch.tables.file_scans import read_rows
from wavestitch.tables.table_layout import BATCHES

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_history(table: Table) -> list[BatchRow]:
    """All rows, newest first."""
    rows = [batch_row_from_json(t) for batch in read_rows(table, ["detail"]) for t in batch["detail"].to_pylist()]
    return sorted(rows, key=lambda r: (r.sequence, r.committed_ms), reverse=True)


def absent_history(table: Table, rows: Sequence[BatchRow]) -> list[BatchRow]:
    """The rows whose sequence and decision do not stand in the table; each once."""
    there: set[tuple[int, str]] = set()
    for batch in read_rows(table, ["sequence", "decision"]):
        there.update(zip(batch["sequence"].to_pylist(), batch["decision"].to_pylist(), strict=True))
    absent = {(r.sequence, r.decision): r for r in rows if (r.sequence, r.decision) not in there}
    return list(absent.values())


def history_batches(rows: Sequence[BatchRow]) -> Iterator[pa.RecordBatch]:
    """One record batch in the table's columns."""
    yield pa.record_batch(
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
