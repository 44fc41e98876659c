"""The stitching half as one pyarrow script would do it: map, order, check CRCs, write Parquet, fsync.

One process, no Spark, no digest of the whole waveform, no metrics, nothing held, nothing deduplicated. Pieces that lie
one behind the other are not copied.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.children import serve
from wavestitch.contracts.chunk_header import bound_of, chunk_crc
from wavestitch.contracts.rows import texts_of

_GROUP_BYTES = 64 << 20
_SCHEMA = pa.schema(
    [("waveform_id", pa.string()), ("meta", pa.string()), ("chunk_count", pa.int32()), ("samples", pa.binary())]
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
    _write(output / "plain.parquet", pieces, buffers, job["codec"])
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


def _write(path: Path, pieces: list[_Piece], buffers: list[Any], codec: str) -> None:
    level = 1 if codec == "zstd" else None
    plain = ["waveform_id", "meta", "chunk_count"]
    with pq.ParquetWriter(
        str(path),
        _SCHEMA,
        compression=codec,
        compression_level=level,
        use_dictionary=[],
        write_statistics=plain,
        write_batch_size=1,
    ) as writer:
        for group in _groups(pieces):
            rows = [_waveform(mine, buffers) for mine in group]
            samples = pa.chunked_array([r[3] for r in rows], pa.binary())
            columns = [pa.array([r[i] for r in rows], _SCHEMA.field(i).type) for i in range(3)]
            writer.write_table(pa.table([*columns, samples], schema=_SCHEMA), row_group_size=len(rows))
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


def _waveform(mine: list[_Piece], buffers: list[Any]) -> tuple[str, str, int, Any]:
    first = mine[0]
    if [p.seq for p in mine] != list(range(first.pieces)):
        raise RuntimeError(f"waveform {first.waveform_id} is not whole")
    views = [memoryview(buffers[p.batch])[p.begin : p.end] for p in mine]
    for p, view in zip(mine, views, strict=True):
        bound = bound_of(first.waveform_id, p.seq, p.pieces, meta=first.meta, digest=p.digest)
        if chunk_crc(bound, view) != p.crc:
            raise RuntimeError(f"waveform {first.waveform_id}: chunk {p.seq} has another CRC")
    joined = all(a.batch == b.batch and a.end == b.begin for a, b in pairwise(mine))
    data = (
        buffers[first.batch].slice(first.begin, mine[-1].end - first.begin) if joined else pa.py_buffer(b"".join(views))
    )
    offsets = pa.array([0, data.size], pa.int32()).buffers()[1]
    return (
        first.waveform_id,
        first.meta,
        first.pieces,
        pa.BinaryArray.from_buffers(pa.binary(), 1, [None, offsets, data]),
    )


if __name__ == "__main__":
    serve(stitch)
