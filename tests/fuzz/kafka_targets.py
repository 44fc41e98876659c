"""The broker's raw batches, whatever compressed them and whoever wrote them: every record as it is, or held; memory is
bounded by one record."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from consumers.batch_scan import in_columns, records_of
from consumers.raw_message import MOST_RECORD_BYTES, RawMessage, message_at
from tests.builders.ranges import span
from tests.fuzz.draw import Draw, packed
from tests.fuzz.target import Target, bounded_memory, check_sentence
from wavestitch.contracts.chunk_columns import parse_chunks
from wavestitch.contracts.errors import Refused, Terminal, WavestitchError
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.record_batches import AbortedTransaction, told_apart
from wavestitch.contracts.record_columns import find_records
from wavestitch.kafka.inflate import Uninflatable, inflated, inflated_whole
from wavestitch.kafka.kafka_python import calc_crc32c
from wavestitch.kafka.raw_batches import offsets_of, split_batches

_HEAD = struct.Struct(">qiibIhiqqqhii")
_CRC_FROM = 21
_CODECS = (None, "gzip", "snappy", "lz4", "zstd")
_MOST_SLICE = 1000
_MOST_TOGETHER = 1 << 20
_WHERE = "topic t partition 0"


def new_batch() -> Any:
    """Of kafka-python's, which is imported only behind `wavestitch.kafka.kafka_python`, quietly."""
    from kafka.record.default_records import DefaultRecordBatchBuilder  # noqa: PLC0415

    return DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)


def raw_fetch(data: bytes) -> None:
    """What a broker sends, byte by byte."""
    _read(data)


def record_batch(data: bytes) -> None:
    """A batch with a right length and CRC, whose head and records say anything; compressed for real, or not."""
    draw = Draw(data)
    compress = draw.byte() & 1
    attributes, records, delta = draw.number(1), draw.number(4), draw.number(4)
    first, newest, base = draw.number(8), draw.number(8), draw.number(8)
    body = draw.rest()
    name = _CODECS[attributes & 7] if attributes & 7 < len(_CODECS) else None
    if compress and name is not None:
        body = compressed(name, body)
    _read(_batch(base, attributes, delta, first, newest, records, body))


def written_batch(data: bytes) -> None:
    """What Kafka's own protocol writes is read as it was written."""
    draw = Draw(data)
    codec = draw.byte() % len(_CODECS)
    wanted: list[Any] = []
    while draw.left and len(wanted) < 20:
        flags = draw.byte()
        key = None if flags & 1 else draw.field()
        value = None if flags & 2 else draw.field()
        wanted.append((key, value, [(draw.text(), None if flags & 4 else draw.field())] * (flags >> 3 & 3)))
    builder = new_batch()
    for n, (key, value, headers) in enumerate(wanted):
        builder.append(n, 1000 + n, key, value, headers)
    raw = bytearray(builder.build())
    if not wanted:
        return
    if codec:
        body = compressed(str(_CODECS[codec]), bytes(raw[_HEAD.size :]))
        raw = bytearray(_batch(0, codec, len(wanted) - 1, 1000, 1000 + len(wanted) - 1, len(wanted), body))
    (batch,) = split_batches(memoryview(raw), where=_WHERE)
    assert not offsets_of(batch, where=_WHERE).missing
    found = list(records_of(batch, span(0, 0, 1000), Offset(0)))
    assert [(m.offset(), m.timestamp()[1]) for m in found] == [(n, 1000 + n) for n in range(len(wanted))]
    assert [(m.key(), m.value(), m.headers() or []) for m in found] == wanted


def codec(data: bytes) -> None:
    """Anything that says that it is compressed."""
    draw = Draw(data)
    kind, asked, body = draw.byte() % 8, draw.number(4) & 0xFFFFFF, draw.rest()
    with bounded_memory():
        try:
            reader = inflated(kind, memoryview(body))
            taken = reader.take(asked)
            assert len(taken) == asked
            assert reader.passed == asked
            reader.varint()
            reader.skip(1 << 30)
        except Uninflatable as error:
            check_sentence(error.message)


def _read(data: bytes) -> None:
    with bounded_memory():
        try:
            batches = list(split_batches(memoryview(data), where=_WHERE))
            heads = [offsets_of(batch, where=_WHERE) for batch in batches]
        except (Terminal, Refused) as error:
            check_sentence(error.message)
            return
        assert sum(len(batch.data) for batch in batches) <= len(data)
        for batch, (head, _) in zip(
            batches,
            told_apart(heads, [AbortedTransaction(1, Offset(0)), AbortedTransaction(-1, Offset(5))]),
            strict=True,
        ):
            assert head.start <= head.end
            slice_ = span(0, batch.base_offset, batch.base_offset + _MOST_SLICE)
            try:
                _check_records(batch, slice_)
            except WavestitchError as error:
                check_sentence(error.message)


def _check_records(batch: Any, slice_: OffsetRange) -> None:
    seen = slice_.start - 1
    found = list(records_of(batch, slice_, slice_.start))
    _check_columns(batch, slice_, found)
    for message in found:
        assert slice_.start <= message.offset() < slice_.end
        assert message.offset() > seen, "an offset twice, or backwards"
        seen = message.offset()
        size = sum(len(v or b"") for v in (message.key(), message.value(), *(v for _, v in message.headers_)))
        assert size <= max(MOST_RECORD_BYTES, len(batch.data))
        if message.unreadable is not None:
            check_sentence(message.unreadable)


def _check_columns(batch: Any, slice_: OffsetRange, found: list[RawMessage]) -> None:
    """What is found of many records at once is what each of them says, or nothing."""
    body = inflated_whole(batch.codec, batch.body, most=_MOST_TOGETHER)
    columns = None if body is None else find_records([in_columns(batch, body)])
    if columns is None:
        return
    some = columns.between(slice_.start, slice_.end)
    seen = [message_at(some, n, batch.leader_epoch) for n in range(len(some))]
    assert [(m.offset_, m.key_, m.value_, m.headers_) for m in seen] == [
        (m.offset_, m.key_, m.value_, m.headers_) for m in found
    ]
    assert [m.timestamp_[1] for m in seen] == [m.timestamp_[1] if m.timestamp_[0] else 0 for m in found]
    assert not any(m.unreadable for m in found)
    assert len(parse_chunks(some).plain) == len(some)


def compressed(name: str, body: bytes) -> bytes:
    if name == "snappy":
        return bytes(pa.Codec("snappy").compress(body, asbytes=True))
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, name) as stream:
        stream.write(body)
    return bytes(sink.getvalue())


def _batch(base: int, attributes: int, delta: int, first: int, newest: int, records: int, body: bytes) -> bytes:
    length = _HEAD.size - 12 + len(body)
    after = _HEAD.pack(0, 0, 0, 0, 0, attributes, delta, first, newest, 1, 0, 0, records)[_CRC_FROM:] + body
    return _HEAD.pack(base, length, 0, 2, calc_crc32c(after), attributes, delta, first, newest, 1, 0, 0, records) + body


def _body() -> bytes:
    """Two records, as they stand in a batch."""
    builder = new_batch()
    builder.append(0, 1000, b"w", b"value" * 4, [("ws-seq", b"0"), ("h", None)])
    builder.append(1, 1001, None, None, [])
    return bytes(builder.build())[_HEAD.size :]


_CONTROL = b"\x20\x00\x00\x00\x08\x00\x00\x00\x01\x0c" + b"\0" * 7


def _fetch_seeds() -> Iterator[bytes]:
    whole = _batch(5, 0, 1, 1000, 1001, 2, _body())
    yield whole
    yield whole + _batch(7, 0x30, 0, 1000, 1000, 1, _CONTROL) + whole[:70]
    yield _batch(5, 0, 9, 1000, 1001, 2, _body())
    yield _HEAD.pack(0, -12, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    yield _batch(5, 0, 0x7FFFFFFF, 1000, 1001, 2, _body())


def _batch_seeds() -> Iterator[bytes]:
    head = struct.pack(">iiqqq", 2, 1, 1000, 1001, 5)
    for attributes in range(6):
        yield packed(1, attributes) + head + _body()
        yield packed(0, attributes) + head + _body()
    yield packed(0, 0x30) + struct.pack(">iiqqq", 1, 0, 0, 0, 5) + _CONTROL
    yield packed(1, 4) + struct.pack(">iiqqq", 1, 0, 0, 0, 5) + b"\xfe\xff\xff\xff\x0f" + b"\0" * 4000


def _written_seeds() -> Iterator[bytes]:
    for kind in range(5):
        yield packed(kind, 8, b"k", b"v" * 20, "h", b"x", 3, 7, 16, b"", b"")


def _codec_seeds() -> Iterator[bytes]:
    for kind in range(1, 5):
        for content in (b"abc" * 100, b"\0" * 200_000):
            yield packed(kind) + struct.pack(">i", 100) + compressed(str(_CODECS[kind]), content)[:8000]
    block = compressed("snappy", b"abc" * 100)
    java = b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1" + len(block).to_bytes(4) + block
    yield packed(2) + struct.pack(">i", 100) + java
    yield packed(2) + struct.pack(">i", 100) + b"\xff\xff\xff\xff\x0f"


TARGETS = (
    Target("raw_fetch", raw_fetch, _fetch_seeds),
    Target("record_batch", record_batch, _batch_seeds),
    Target("written_batch", written_batch, _written_seeds),
    Target("codec", codec, _codec_seeds, ("\x1f\x8b\x08", "\x82SNAPPY\0", "\x04\x22\x4d\x18"), 10_000),
)
