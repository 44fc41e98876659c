"""A slice read from the broker's raw record batches, where the client could not read it, or only in too much memory.

Compressed batches are inflated as a stream, record by record, so that one record bounds the memory, whatever a batch
of a few kilobytes blows up to. A record above `MOST_RECORD_BYTES`, and one whose batch cannot be inflated, is
*unreadable*: it is held by its coordinates, with the raw batch as its payload where that is small enough, and its
neighbours go on.

Slower than the client, and the same result: a slice that the client can read holds no such record, and is read by it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, KafkaError

from consumers.range_scan import OnBatch, ScanFailed, Source, Take
from consumers.raw_message import MOST_RECORD_BYTES, RawMessage
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.holes import HoleFinder, Interval
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.record_batches import told_apart
from wavestitch.contracts.stop_rule import Why
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.inflate import Inflated, Uninflatable, inflated
from wavestitch.kafka.raw_batches import RawBatch, head_of
from wavestitch.kafka.raw_log import Diverged, OutOfRange, RawLog

_MOST_KEPT = 1 << 20
"""Of an unreadable record's batch so much is kept at most."""
_FETCH_BYTES = 4 << 20
_MOST_HEADERS = 1 << 16


def scan_carefully(
    slice_: OffsetRange,
    *,
    settings: KafkaSettings,
    source: Source,
    take: Take,
    start_epoch: int | None = None,
    on_batch: OnBatch | None = None,
) -> list[Interval]:
    """Deliver the range as `scan_range` does; returns its holes. Raises `ScanFailed` and what a raw fetch raises."""
    holes = HoleFinder(slice_.start)
    where = f"topic {source.topic} partition {slice_.partition}"
    offset = slice_.start
    with RawLog(settings, source.topic, deadline=source.idle_seconds) as raw:
        epoch = -1 if start_epoch is None else start_epoch
        while offset < slice_.end:
            try:
                got = raw.fetch(slice_.partition, offset, most_bytes=_FETCH_BYTES, last_epoch=epoch)
            except OutOfRange as gone:
                error = KafkaError(KafkaError.OFFSET_OUT_OF_RANGE)
                raise ScanFailed(Why.LOG_ERROR, gone.offset, error) from gone
            except Diverged as cut:
                raise ScanFailed(Why.LOG_ERROR, offset, KafkaError(KafkaError._LOG_TRUNCATION)) from cut
            epoch = -1
            if not got.batches:
                raise Transient(f"{where}: nothing committed comes from offset {offset} on; try again")
            heads = [head_of(batch, where=where) for batch in got.batches]
            for batch, (head, aborted) in zip(got.batches, told_apart(heads, got.aborted), strict=True):
                if head.control is None and not aborted:
                    records = size = 0
                    for message in records_of(batch, slice_, offset):
                        holes.add(message.offset_)
                        size += take(message, message.offset_)
                        records += 1
                    if on_batch is not None and records:
                        on_batch(records, size)
                offset = max(offset, batch.end)
    return holes.close(slice_.end)


def records_of(batch: RawBatch, slice_: OffsetRange, start: int) -> Iterator[RawMessage]:
    """The records of a batch that lie in the slice, from `start` on."""
    reader = inflated(batch.codec, batch.body)
    seen = start - 1
    try:
        for _ in range(batch.records):
            message = _record(batch, reader)
            if message.offset_ >= slice_.end:
                return
            if message.offset_ >= start:
                seen = message.offset_
                yield message
    except Uninflatable as error:
        for offset in range(max(start, seen + 1, batch.base_offset), min(batch.end, slice_.end)):
            yield _unreadable(batch, offset, batch.max_timestamp, error.message)


def _record(batch: RawBatch, reader: Inflated) -> RawMessage:
    length = reader.varint()
    begin = reader.passed
    reader.skip(1)  # attributes, of which there are none
    since, delta = reader.varint(), reader.varint()
    offset = batch.base_offset + delta
    stamp = batch.max_timestamp if batch.is_append_time else batch.first_timestamp + since
    if length > MOST_RECORD_BYTES:
        reader.skip(length - (reader.passed - begin))
        allowed = f"a record of {length} bytes once it is inflated; allowed are {MOST_RECORD_BYTES}"
        return _unreadable(batch, offset, stamp, allowed)
    key, value = _bytes(reader), _bytes(reader)
    count = reader.varint()
    if not 0 <= count <= max(length, 0):
        raise Uninflatable(f"a record announces {count} headers")
    headers = [(_bytes(reader) or b"", _bytes(reader)) for _ in range(count)]
    if reader.passed - begin != length:
        raise Uninflatable("a record is not as long as it says")
    return RawMessage(offset, _stamp(batch, stamp), batch.leader_epoch, key, value, headers)


def _bytes(reader: Inflated) -> bytes | None:
    size = reader.varint()
    if size > MOST_RECORD_BYTES:
        raise Uninflatable(f"a field of a record announces {size} bytes")
    return reader.take(size) if size >= 0 else None


def _unreadable(batch: RawBatch, offset: int, stamp: int, why: str) -> RawMessage:
    kept = bytes(batch.data) if len(batch.data) <= _MOST_KEPT else None
    what = "its payload is the raw record batch" if kept is not None else "its raw record batch is too large to keep"
    said = f"{why}; {what} of {len(batch.data)} bytes, codec {batch.codec}"
    return RawMessage(offset, _stamp(batch, stamp), batch.leader_epoch, None, kept, [], said)


def _stamp(batch: RawBatch, stamp: int) -> tuple[int, int]:
    kind: Any = TIMESTAMP_LOG_APPEND_TIME if batch.is_append_time else TIMESTAMP_CREATE_TIME
    return (kind, stamp) if stamp >= 0 else (0, 0)
