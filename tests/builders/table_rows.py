"""Small inputs for the tables: published Parquet files, landing files, heads."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from tests.builders.heads import make_head
from wavestitch.contracts.assembly import ChunkFacts, Coordinate
from wavestitch.contracts.chunk_header import piece_digest
from wavestitch.contracts.chunk_metadata import Metadata, parse_metadata
from wavestitch.contracts.held import HeldChunk, HeldKey, HeldLook
from wavestitch.contracts.held_mark import HeldMark, held_bytes
from wavestitch.contracts.ports import HeldRow, HeldStaging, StagedFile
from wavestitch.contracts.position import Head, Position
from wavestitch.contracts.quantities import EpochMs, LeaderEpoch, Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.row_proof import FROM_METADATA
from wavestitch.contracts.rows import LANDING, published_schema
from wavestitch.contracts.sample_kinds import Encoding, SampleType
from wavestitch.contracts.sample_metrics import measure_waveform
from wavestitch.parquet.published_file import PublishedFile
from wavestitch.parquet.sample_pages import SamplePages, typed_samples
from wavestitch.tables.stream_tables import StreamTables
from wavestitch.write_once import digest_file

TOPIC_ID = "q8m1Xs2VRdOAnzy9Hh7Z5Q"
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

META = b'{"source": "bench"}'

Landed = list[tuple[int, int, bytes | None]]


def published_row(
    waveform_id: str,
    *,
    start: datetime = NOON,
    chunks: int = 2,
    size: int = 16,
    sample_format: str = "i16le",
    raw: Any = None,
    source: str = "bench",
) -> dict[str, Any]:
    """A row whose columns are what its metadata and samples give. `size`: bytes of samples, unless `raw` has them, in
    the dtype of the format."""
    raw = np.arange(size // 2).astype("<i2") if raw is None else raw
    said = {
        "source": source,
        "channel": "ax",
        "start_time_ns": (start - _EPOCH) // timedelta(microseconds=1) * 1000,
        "sampling_rate_hz": 1.0,
        "sample_format": sample_format,
        "units": "m/s2",
        "adc_gain": 4.0,
        "baseline": 2.0,
        "id": waveform_id,
    }
    meta = json.dumps(said)
    metadata = parse_metadata(meta)
    assert isinstance(metadata, Metadata), metadata
    sent = raw.tobytes()
    metrics = measure_waveform(sent, sample_format)
    values = [sent[a:b] for a, b in pairwise(len(sent) * n // max(chunks, 1) for n in range(chunks + 1))]
    return {
        "waveform_id": waveform_id,
        **{name: of(metadata, len(raw)) for name, of in FROM_METADATA.items()},
        "start_time": start,
        "end_time": _EPOCH + timedelta(microseconds=metadata.end_time_ns(len(raw)) // 1000),
        "sample_count": len(raw),
        "samples": raw.tolist() if raw.dtype.kind == "i" else raw,
        "meta": meta,
        "digest": xxhash.xxh3_128_hexdigest(sent),
        "sample_min": metrics.least,
        "sample_max": metrics.greatest,
        "nonfinite_count": metrics.nonfinite,
        "chunk_count": chunks,
        "chunks": [
            {
                "topic_id": TOPIC_ID,
                "partition": 3,
                "offset": n,
                "length": len(value),
                "piece": piece_digest(meta.encode(), value),
            }
            for n, value in enumerate(values)
        ],
        "topic_id": TOPIC_ID,
        "first_record_time": NOON,
        "last_record_time": NOON + timedelta(milliseconds=1),
        "plan_id": "plan",
    }


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def stage(
    folder: Path,
    name: str,
    rows: Sequence[dict[str, Any]],
    *,
    row_group_size: int = 1024,
    samples: SampleType = "int",
    encoding: Encoding = "fast",
) -> StagedFile:
    """A Parquet file of published rows."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.parquet"
    whole = pa.Table.from_pylist(list(rows), schema=published_schema(samples))
    with path.open("wb") as sink:
        file = PublishedFile(sink, SamplePages(samples, encoding))
        for start in range(0, len(rows), row_group_size):
            some = whole.slice(start, row_group_size).combine_chunks()
            file.write_group(some, typed_samples(some["samples"].combine_chunks()))
        file.close()
    return StagedFile(str(path), *digest_file(path, large=True), len(rows))


def first_head(**changes: Any) -> Head:
    positions = {0: Position(Offset(5), None, LeaderEpoch(3)), 1: Position(Offset(0))}
    return make_head(**{"topic_id": TOPIC_ID, "positions": positions, **changes})


def write_landing(path: Path, rows: Landed, *, batch_rows: int = 2, raw_key: bytes | None = None) -> Path:
    """A landing file with one row per (partition, offset, payload)."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, LANDING) as writer:
        for start in range(0, len(rows), batch_rows):
            some = [
                {
                    **facts(partition, offset, payload)._asdict(),
                    "raw_key": raw_key,
                    "raw_headers": b"[]" if raw_key else None,
                    "payload": payload,
                    "meta_row": n,
                }
                for n, (partition, offset, payload) in enumerate(rows[start : start + batch_rows])
            ]
            writer.write_batch(pa.RecordBatch.from_pylist(some, schema=LANDING))
    return path


def facts(
    partition: int, offset: int, payload: bytes | None, *, topic_id: str = TOPIC_ID, reason: Reason | None = None
) -> ChunkFacts:
    return ChunkFacts(
        partition=Partition(partition),
        offset=Offset(offset),
        timestamp_ms=EpochMs(1_767_614_400_000 + offset),
        waveform_id=f"w{partition}",
        seq=offset,
        count=None,
        crc=zlib.crc32(payload or b"", 0 if reason else zlib.crc32(b"w%d\0%d\0\0%s\0\0" % (partition, offset, META))),
        length=len(payload or b""),
        meta=META.decode(),
        digest=None,
        piece=_digest(_digest(META) + (payload or b"")),
        reason=reason,
        evidence="seen" if reason else None,
        carried=True,
        topic_id=topic_id,
    )


def place(partition: int, offset: int, topic_id: str = TOPIC_ID) -> Coordinate:
    return topic_id, Partition(partition), Offset(offset)


def held_row(
    chunk: ChunkFacts,
    *,
    landing: Path | None,
    row: int = -1,
    decision: str = "d1",
    sequence: int = 2,
    reason: Reason = Reason.OPEN,
) -> HeldRow:
    return HeldRow(HeldChunk(chunk, reason, "why", decision, sequence), None if landing is None else str(landing), row)


def held_rows(landing: Path, rows: Landed, *, decision: str = "d1", sequence: int = 2) -> list[HeldRow]:
    """A held row for every row of a landing file."""
    return [
        held_row(facts(partition, offset, payload), landing=landing, row=n, decision=decision, sequence=sequence)
        for n, (partition, offset, payload) in enumerate(rows)
    ]


def hold(tables: StreamTables, rows: Sequence[HeldRow], *, clock_ms: int = 0, **changes: Any) -> Head:
    """Let the next head name these rows beside what is held; made on a first head where there is none."""
    base = tables.head() or tables.commit(None, first_head(), [])
    mark = stage_held(tables, base, rows, clock_ms=clock_ms)
    head = tables.commit(base, base.next(**{"decision": rows[0].held.decision, **changes}, held=mark), [])
    tables.settle_held()
    return head


def stage_held(tables: StreamTables, base: Head, rows: Sequence[HeldRow], *, clock_ms: int = 0) -> HeldMark | None:
    """The first half of it: what a run leaves that dies before its commit."""
    decision = rows[0].held.decision
    counts = Counter(base.held.counts if base.held is not None else {})
    counts.update(r.held.reason.value for r in rows)
    size = base.held.chunk_bytes if base.held is not None else 0
    size += sum(held_bytes(r.held.chunk, r.held.reason) for r in rows)
    staging = HeldStaging("plan", decision, base.generation, base.sequence + 1, dict(counts), size, EpochMs(clock_ms))
    return tables.stage_held(base.held, rows, staging=staging)


def all_held(tables: StreamTables) -> list[HeldChunk]:
    """Every row of the snapshot that the head names, whether it counts or not."""
    head = tables.head()
    return tables.held(head.held, HeldLook(everything=True)) if head is not None else []


def payloads(tables: StreamTables, keys: Collection[HeldKey], to: Path) -> dict[HeldKey, int]:
    head = tables.head()
    assert head is not None
    return tables.held_payloads(head.held, keys, to)
