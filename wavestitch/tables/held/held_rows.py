"""Rows of the held table, to and from Arrow. Bytes come from the landing file, a record batch at a time.

Never decides which rows count: that is `effective_held`. Keeps I1: what is held is held whole, or not at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any

import pyarrow as pa

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.errors import Altered
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.landed_payload import put_together, take_proven
from wavestitch.contracts.payload_apart import read_apart
from wavestitch.contracts.ports import HeldRow, HeldStaging
from wavestitch.contracts.reasons import Reason
from wavestitch.payload_store import BatchPayload
from wavestitch.tables.commit.table_layout import HELD, RAW_COLUMNS

FACTS = tuple(n for n in HELD.names if n not in (*RAW_COLUMNS, "plan_id", "held_ms"))
_ROWS_A_BATCH = 8192
Apart = Callable[[str], BatchPayload]
"""What has the payload of a landing file (full path) that has it apart. Raises `BadInput` where none is named."""
_CLAIMED: dict[str, Any] = {"waveform_id": None, "seq": None, "evidence": "", "evidence_of_record": None}
"""What a record says of itself is not kept of one that is held without its bytes: whoever sends it chooses how long
that is. Place, length, digest and reason tell it from every other."""


def held_groups(
    rows: Iterable[HeldRow], *, staging: HeldStaging, apart: Apart
) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
    """For each reason, which is the table's partition, record batches in the table's columns.

    Each batch is of one Kafka partition, so that row groups have narrow bounds. Rows with bytes come file by file, in
    the landing file's order. Raises `Altered` where a landing file does not have the record that a row names, or not
    with its bytes.
    """
    by_reason: dict[str, list[HeldRow]] = defaultdict(list)
    for r in {(r.held.key, r.held.decision): r for r in rows}.values():
        by_reason[r.held.reason.value].append(r)
    for reason in sorted(by_reason):
        yield reason, _batches(by_reason[reason], staging, apart)


def _batches(rows: Iterable[HeldRow], staging: HeldStaging, apart: Apart) -> Iterator[pa.RecordBatch]:
    bare: list[HeldRow] = []
    by_file: dict[str, list[HeldRow]] = defaultdict(list)
    for r in rows:
        (bare if r.landing is None else by_file[r.landing]).append(r)
    bare.sort(key=lambda r: r.held.chunk.coordinate)
    for _, of_partition in groupby(bare, key=lambda r: r.held.chunk.coordinate[:2]):
        while some := list(islice(of_partition, _ROWS_A_BATCH)):
            yield _batch(some, None, staging)
    for landing in sorted(by_file):
        yield from _with_bytes(landing, by_file[landing], staging, apart)


def _with_bytes(landing: str, rows: list[HeldRow], staging: HeldStaging, apart: Apart) -> Iterator[pa.RecordBatch]:
    waiting = sorted(rows, key=lambda r: r.row, reverse=True)
    with pa.memory_map(landing) as source, pa.ipc.open_file(source) as reader:
        start = 0
        for n in range(reader.num_record_batches):
            if not waiting:
                return
            landed, said = reader.get_batch_with_custom_metadata(n)
            end = start + landed.num_rows
            here: list[HeldRow] = []
            while waiting and waiting[-1].row < end:
                here.append(waiting.pop())
            if here:
                if said:
                    landed = _fetched(landing, landed, said, apart)
                taken = take_proven(landing, landed, [r.row - start for r in here])
                _check_places(landing, taken, here)
                yield _batch(here, taken, staging)
            start = end
    if waiting:
        raise Altered(f"{landing} has {start} rows, row {waiting[-1].row} is to be held; run the batch again")


def _fetched(landing: str, batch: pa.RecordBatch, said: Mapping[bytes, bytes], apart: Apart) -> pa.RecordBatch:
    """The record batch with its payload, which is apart."""
    _, _, hole = batch.column("payload").buffers()
    try:
        wanted = read_apart(said, hole.size if hole is not None else 0)
    except ValueError as error:
        raise Altered(f"{landing} is damaged ({error}); run the batch's read step again", file=landing) from None
    return put_together(batch, list(apart(landing).fetch_all(wanted))) if wanted else batch


def _check_places(landing: str, taken: pa.RecordBatch, rows: list[HeldRow]) -> None:
    for r, partition, offset in zip(rows, taken["partition"].to_pylist(), taken["offset"].to_pylist(), strict=True):
        if (partition, offset) != (r.held.chunk.partition, r.held.chunk.offset):
            raise Altered(
                f"row {r.row} of {landing} is partition {partition} offset {offset}, the decision says "
                f"{r.held.chunk.place}; run the batch again"
            )


def _batch(rows: list[HeldRow], taken: pa.RecordBatch | None, staging: HeldStaging) -> pa.RecordBatch:
    columns: list[Any] = []
    for field in HELD:
        if field.name in RAW_COLUMNS:
            columns.append(pa.nulls(len(rows), field.type) if taken is None else taken[field.name])
        else:
            columns.append(pa.array([_value(r, field.name, staging) for r in rows], field.type))
    return pa.record_batch(columns, schema=HELD)


def _value(row: HeldRow, name: str, staging: HeldStaging) -> Any:
    held = row.held
    if name in _CLAIMED and row.landing is None and held.chunk.reason is not None:
        return _CLAIMED[name]
    match name:
        case "plan_id":
            return staging.plan_id
        case "held_ms":
            return staging.clock_ms
        case "stored":
            return row.landing is not None
        case "record_reason":
            return held.chunk.reason
        case "evidence_of_record":
            return held.chunk.evidence
        case "reason":
            return held.reason.value
        case "evidence" | "decision" | "sequence" | "proof":
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
    why = Reason(row["reason"]), row["evidence"]
    return HeldChunk(chunk, *why, row["decision"], row["sequence"], stored=row["stored"], proof=row["proof"] or "none")
