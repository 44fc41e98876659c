"""Rows of the held table, to and from Arrow. Bytes come from the landing file, a record batch at a time.

Never decides which rows count: that is `effective_held`. Keeps I1: what is held is held whole, or not at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.errors import Altered
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.landed_payload import check_payloads
from wavestitch.contracts.ports import HeldRow
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.rows import texts_of
from wavestitch.tables.file_scans import read_rows
from wavestitch.tables.row_filter import is_in
from wavestitch.tables.table_layout import HELD, RAW_COLUMNS

FACTS = tuple(n for n in HELD.names if n not in (*RAW_COLUMNS, "stored", "plan_id"))
_ROWS_A_BATCH = 8192

Key = tuple[str, str, int, int]


def read_held(table: Table) -> list[HeldChunk]:
    """Every row, without its bytes."""
    found: list[HeldChunk] = []
    for batch in read_rows(table, FACTS):
        columns = [batch[name].to_pylist() for name in FACTS]
        found.extend(held_chunk(dict(zip(FACTS, row, strict=True))) for row in zip(*columns, strict=True))
    return found


def absent_rows(table: Table, rows: Sequence[HeldRow]) -> list[HeldRow]:
    """The rows whose decision and coordinate do not stand in the table; each key once."""
    there: set[Key] = set()
    names = ("decision", "topic_id", "partition", "offset")
    for batch in read_rows(table, names, is_in("decision", {r.held.decision for r in rows})) if rows else ():
        there.update(zip(*(batch[n].to_pylist() for n in names), strict=True))
    absent = {_key(r): r for r in rows if _key(r) not in there}
    return list(absent.values())


def held_batches(rows: Iterable[HeldRow], *, plan_id: str) -> Iterator[pa.RecordBatch]:
    """Record batches in the held table's columns. Rows with bytes come file by file, in the landing file's order.

    Raises `Altered` where a landing file does not have the record that a row names, or not with its bytes.
    """
    bare: list[HeldRow] = []
    by_file: dict[str, list[HeldRow]] = defaultdict(list)
    for r in rows:
        (bare if r.landing is None else by_file[r.landing]).append(r)
    pending = iter(bare)
    while some := list(islice(pending, _ROWS_A_BATCH)):
        yield _batch(some, None, plan_id)
    for landing in sorted(by_file):
        yield from _with_bytes(landing, by_file[landing], plan_id)


def _with_bytes(landing: str, rows: list[HeldRow], plan_id: str) -> Iterator[pa.RecordBatch]:
    waiting = sorted(rows, key=lambda r: r.row, reverse=True)
    with pa.memory_map(landing) as source, pa.ipc.open_file(source) as reader:
        start = 0
        for n in range(reader.num_record_batches):
            if not waiting:
                return
            landed = reader.get_batch(n)
            end = start + landed.num_rows
            here: list[HeldRow] = []
            while waiting and waiting[-1].row < end:
                here.append(waiting.pop())
            if here:
                taken = landed.take(pa.array([r.row - start for r in here], pa.int64()))
                _check_places(landing, taken, here)
                texts = texts_of(landed)
                check_payloads(landing, taken, [texts[r.row - start] for r in here])
                yield _batch(here, taken, plan_id)
            start = end
    if waiting:
        raise Altered(f"{landing} has {start} rows, row {waiting[-1].row} is to be held; run the batch again")


def _check_places(landing: str, taken: pa.RecordBatch, rows: list[HeldRow]) -> None:
    for r, partition, offset in zip(rows, taken["partition"].to_pylist(), taken["offset"].to_pylist(), strict=True):
        if (partition, offset) != (r.held.chunk.partition, r.held.chunk.offset):
            raise Altered(
                f"row {r.row} of {landing} is partition {partition} offset {offset}, the decision says "
                f"{r.held.chunk.place}; run the batch again"
            )


def _batch(rows: list[HeldRow], taken: pa.RecordBatch | None, plan_id: str) -> pa.RecordBatch:
    columns: list[Any] = []
    for field in HELD:
        if field.name in RAW_COLUMNS:
            columns.append(pa.nulls(len(rows), field.type) if taken is None else taken[field.name])
        else:
            columns.append(pa.array([_value(r, field.name, plan_id) for r in rows], field.type))
    return pa.record_batch(columns, schema=HELD)


def _value(row: HeldRow, name: str, plan_id: str) -> Any:
    held = row.held
    match name:
        case "plan_id":
            return plan_id
        case "stored":
            return row.landing is not None
        case "record_reason":
            return held.chunk.reason
        case "evidence_of_record":
            return held.chunk.evidence
        case "reason":
            return held.reason.value
        case "evidence" | "decision" | "sequence":
            return getattr(held, name)
    return getattr(held.chunk, name)


def held_chunk(row: dict[str, Any]) -> HeldChunk:
    """A row of the columns `FACTS`."""
    names = ("partition", "offset", "timestamp_ms", "waveform_id", "seq", "count", "crc", "length", "meta")
    chunk = ChunkFacts(
        **{n: row[n] for n in (*names, "digest", "piece")},
        reason=row["record_reason"],
        evidence=row["evidence_of_record"],
        carried=True,
        topic_id=row["topic_id"],
    )
    return HeldChunk(chunk, Reason(row["reason"]), row["evidence"], row["decision"], row["sequence"])


def _key(row: HeldRow) -> Key:
    c = row.held.chunk
    return row.held.decision, c.topic_id, c.partition, c.offset
