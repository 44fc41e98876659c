"""The stitching half as one pyarrow script would do it: map, order, check CRCs, widen, write Parquet, fsync.

Lists of numbers in the same encoding as ours. One process, no Spark, no digest of the whole waveform, no metrics,
nothing held, nothing deduplicated. Samples are copied once, as they are widened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.children import serve
from wavestitch.contracts.chunk_header import bound_of, chunk_crc
from wavestitch.contracts.rows import texts_of

_GROUP_BYTES = 64 << 20
_SCHEMA = pa.schema(
    [
        ("waveform_id", pa.string()),
        ("meta", pa.string()),
        ("chunk_count", pa.int32()),
        ("samples", pa.list_(pa.field("element", pa.int32(), nullable=False))),
    ]
)


class _Piece(NamedTuple):
    waveform_id: str
    seq: int
    batch: int
    begin: int
    end: int
    crc: int
    pieces: int
    meta: str
    digest: str | None


def stitch(job: dict[str, Any]) -> dict[str, Any]:
    buffers: list[Any] = []
    pieces: list[_Piece] = []
    for name in job["files"]:
        reader = pa.ipc.open_file(pa.memory_map(name))
        for n in range(reader.num_record_batches):
            pieces += _pieces(reader.get_batch(n), len(buffers), buffers)
    pieces.sort(key=lambda p: (p.batch, p.begin))
    order = {p.waveform_id: n for n, p in reversed(list(enumerate(pieces)))}
    pieces.sort(key=lambda p: (order[p.waveform_id], p.seq))
    output = Path(job["output"])
    output.mkdir(parents=True)
    _write(output / "plain.parquet", pieces, buffers)
    return {"files": [str(output / "plain.parquet")]}


def _pieces(batch: Any, number: int, buffers: list[Any]) -> list[_Piece]:
    payload = batch.column("payload")
    buffers.append(payload.buffers()[2])
    ends = memoryview(payload.buffers()[1]).cast("i")[payload.offset : payload.offset + len(payload) + 1].tolist()
    columns = [batch.column(c).to_pylist() for c in ("waveform_id", "seq", "crc", "count", "digest")]
    return [
        _Piece(wid, seq, number, ends[i], ends[i + 1], crc, count, meta, digest)
        for i, (wid, seq, crc, count, digest, meta) in enumerate(zip(*columns, texts_of(batch), strict=True))
    ]


def _write(path: Path, pieces: list[_Piece], buffers: list[Any]) -> None:
    with pq.ParquetWriter(
        str(path),
        _SCHEMA,
        compression="zstd",
        compression_level=1,
        use_dictionary=[],
        write_statistics=["waveform_id", "meta", "chunk_count"],
        column_encoding={"samples.list.element": "BYTE_STREAM_SPLIT"},
    ) as writer:
        for group in _groups(pieces):
            sent = [_sent(mine, buffers) for mine in group]
            ends = np.concatenate(([0], np.cumsum([sum(map(len, each)) for each in sent])), dtype=np.int32)
            numbers = np.concatenate([piece for each in sent for piece in each], dtype=np.int32)
            first = [mine[0] for mine in group]
            columns = [
                pa.array([p.waveform_id for p in first]),
                pa.array([p.meta for p in first]),
                pa.array([p.pieces for p in first], pa.int32()),
                pa.ListArray.from_arrays(pa.array(ends), pa.array(numbers), type=_SCHEMA.field("samples").type),
            ]
            writer.write_table(pa.table(columns, schema=_SCHEMA), row_group_size=len(group))
    with path.open("rb") as handle:
        os.fsync(handle.fileno())


def _groups(pieces: list[_Piece]) -> Iterator[list[list[_Piece]]]:
    group: list[list[_Piece]] = []
    size = 0
    for _, each in groupby(pieces, key=lambda p: p.waveform_id):
        mine = list(each)
        group.append(mine)
        size += sum(p.end - p.begin for p in mine)
        if size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _sent(mine: list[_Piece], buffers: list[Any]) -> list[Any]:
    """The samples of a waveform as they were sent, piece by piece. Raises `RuntimeError` unless it is whole."""
    first = mine[0]
    if [p.seq for p in mine] != list(range(first.pieces)):
        raise RuntimeError(f"waveform {first.waveform_id} is not whole")
    views = [memoryview(buffers[p.batch])[p.begin : p.end] for p in mine]
    for p, view in zip(mine, views, strict=True):
        bound = bound_of(first.waveform_id, p.seq, p.pieces, meta=first.meta, digest=p.digest)
        if chunk_crc(bound, view) != p.crc:
            raise RuntimeError(f"waveform {first.waveform_id}: chunk {p.seq} has another CRC")
    return [np.frombuffer(view, "<i2") for view in views]


if __name__ == "__main__":
    serve(stitch)
