"""What somebody who knows the tools would write by hand in an afternoon: consume, collect by id, widen, write Parquet.

confluent-kafka's batches, a dictionary of the chunks that came, numbers widened by NumPy, row groups of 64 MiB in the
same layout as ours (BYTE_STREAM_SPLIT under zstd-1), fsync. What it leaves out is what ours is for: no checksum, no
repeated or contradicting chunk, nothing held, no offset committed, no recovery. What is not whole is an error.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, TopicPartition

from benchmarks.children import serve

_GROUP_BYTES = 64 << 20
_AT_ONCE = 10_000
_SCHEMA = pa.schema(
    [
        ("waveform_id", pa.string()),
        ("source", pa.string()),
        ("channel", pa.string()),
        ("start_time_ns", pa.int64()),
        ("meta", pa.string()),
        ("chunk_count", pa.int32()),
        ("samples", pa.list_(pa.field("element", pa.int32(), nullable=False))),
    ]
)
Whole = tuple[str, bytes, list[bytes]]
"""Id, metadata, values in order."""


def stitch(job: dict[str, Any]) -> dict[str, Any]:
    """`ranges`: [partition, start, end]; a waveform lies within them. `output`: a file."""
    waiting: dict[bytes, list[bytes | None]] = {}
    metas: dict[bytes, bytes] = {}
    left: dict[bytes, int] = {}
    group: list[Whole] = []
    size = held = 0
    with pq.ParquetWriter(
        job["output"],
        _SCHEMA,
        compression="zstd",
        compression_level=1,
        use_dictionary=["source", "channel"],
        column_encoding={"samples.list.element": "BYTE_STREAM_SPLIT"},
    ) as writer:
        for key, headers, value in _records(job):
            seq, count, meta = _place(headers)
            pieces = waiting.get(key)
            if pieces is None:
                pieces = waiting[key] = [None] * count
                metas[key], left[key] = meta, count
            pieces[seq] = value
            left[key] -= 1
            size += len(value)
            if left[key]:
                continue
            del waiting[key], left[key]
            group.append((key.decode(), metas.pop(key), [p for p in pieces if p is not None]))
            held += sum(map(len, group[-1][2]))
            if held >= _GROUP_BYTES:
                _write(writer, group)
                group, held = [], 0
        if group:
            _write(writer, group)
    if waiting:
        raise RuntimeError(f"{len(waiting)} waveforms are not whole")
    with Path(job["output"]).open("rb") as handle:
        os.fsync(handle.fileno())
    return {"files": [job["output"]], "bytes": size}


def _records(job: dict[str, Any]) -> Any:
    consumer = Consumer(
        {
            "bootstrap.servers": job["bootstrap"],
            "group.id": "expert",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )
    ends = {partition: end for partition, _, end in job["ranges"]}
    consumer.assign([TopicPartition(job["topic"], p, start) for p, start, _ in job["ranges"]])
    left = sum(end - start for _, start, end in job["ranges"])
    while left:
        for message in consumer.consume(min(_AT_ONCE, left), 0.1):
            if message.error() is not None:
                raise RuntimeError(str(message.error()))
            if message.offset() < ends[message.partition()]:
                left -= 1
                yield message.key(), message.headers(), message.value()
    consumer.close()


def _place(headers: list[tuple[str, bytes]]) -> tuple[int, int, bytes]:
    found = dict(headers)
    return int(found["ws-seq"]), int(found["ws-count"]), found["ws-meta"]


def _write(writer: pq.ParquetWriter, group: list[Whole]) -> None:
    counts = [sum(map(len, pieces)) // 2 for _, _, pieces in group]
    samples = np.frombuffer(b"".join(p for _, _, pieces in group for p in pieces), "<i2").astype(np.int32)
    offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int32)), dtype=np.int32)
    told = [json.loads(meta) for _, meta, _ in group]
    writer.write_table(
        pa.table(
            [
                pa.array([name for name, _, _ in group], pa.string()),
                pa.array([t["source"] for t in told], pa.string()),
                pa.array([t["channel"] for t in told], pa.string()),
                pa.array([t["start_time_ns"] for t in told], pa.int64()),
                pa.array([meta.decode() for _, meta, _ in group], pa.string()),
                pa.array([len(pieces) for _, _, pieces in group], pa.int32()),
                pa.ListArray.from_arrays(pa.array(offsets), pa.array(samples), type=_SCHEMA.field("samples").type),
            ],
            schema=_SCHEMA,
        ),
        row_group_size=len(group),
    )


if __name__ == "__main__":
    serve(stitch)
