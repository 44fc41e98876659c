"""A slice read from the broker's raw record batches, where the client could not read it, or only in too much memory.

Compressed batches are inflated as a stream, record by record, so that one record bounds the memory, whatever a batch
of a few kilobytes blows up to. A record above `MOST_RECORD_BYTES`, with more than `MOST_HEADERS` or with more than
`MOST_ASIDE_BYTES` of key and headers, and one whose batch cannot be inflated, is *unreadable*: it is held by its
coordinates, and its neighbours go on. The first such record of a batch has the raw batch as its payload, where that is
small enough; the others name the first one's offset. What is behind `MOST_BATCH_BYTES` of one batch is unreadable, too.

Time is bounded by counting: what each batch took is told, and whoever hears it may end the reading there.

Slower than the client, and the same result: a slice that the client can read holds no such record, and is read by it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, KafkaError

from consumers.range_scan import OnBatch, ScanFailed, Source, Take
from consumers.raw_message import MOST_ASIDE_BYTES, MOST_HEADERS, MOST_RECORD_BYTES, RawMessage
from wavestitch.contracts.errors import Terminal, Transient
from wavestitch.contracts.holes import HoleFinder, Interval
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import LeaderEpoch, Offset
from wavestitch.contracts.raw_headers import HEADER_OVERHEAD
from wavestitch.contracts.record_batches import told_apart
from wavestitch.contracts.stop_rule import Why
from wavestitch.contracts.way_past import past_bad_place
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.inflate import Inflated, Uninflatable, inflated
from wavestitch.kafka.raw_batches import RawBatch, head_of
from wavestitch.kafka.raw_log import Diverged, OutOfRange, RawLog

_MOST_KEPT = 1 << 20
"""Of an unreadable record's batch so much is kept at most."""
_FETCH_BYTES = 4 << 20


def scan_carefully(
    slice_: OffsetRange,
    *,
    settings: KafkaSettings,
    source: Source,
    take: Take,
    start_epoch: LeaderEpoch | None = None,
    on_batch: OnBatch | None = None,
    on_work: Callable[[int], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Interval]:
    """Deliver the range as `scan_range` does; returns its holes. Raises `ScanFailed` and what a raw fetch raises.

    `on_work` hears of each batch what fetching and reading it took (`Inflated.work`), and may raise.
    """
    holes = HoleFinder(slice_.start)
    where = f"topic {source.topic} partition {slice_.partition}"
    offset = slice_.start
    silence = _Silence(source, slice_, clock)
    with RawLog(settings, source.topic, deadline=source.idle_seconds) as raw:
        epoch = start_epoch
        while offset < slice_.end:
            try:
                got = raw.fetch(slice_.partition, offset, most_bytes=_FETCH_BYTES, last_epoch=epoch)
            except OutOfRange as gone:
                error = KafkaError(KafkaError.OFFSET_OUT_OF_RANGE)
                raise ScanFailed(Why.LOG_ERROR, gone.offset, error) from gone
            except Diverged as cut:
                raise ScanFailed(Why.LOG_ERROR, offset, KafkaError(KafkaError._LOG_TRUNCATION)) from cut
            epoch = None
            if not got.batches:
                if silence.is_over:
                    raise Transient(f"{where}: nothing committed comes from offset {offset} on; try again")
                continue  # the broker itself waits before it sends nothing
            heads = [head_of(batch, where=where) for batch in got.batches]
            for batch, (head, aborted) in zip(got.batches, told_apart(heads, got.aborted), strict=True):
                if batch.base_offset >= slice_.end:
                    break  # it came in the same fetch, and is nobody's to inflate here
                if head.control is None and not aborted:
                    records = size = 0
                    reader = inflated(batch.codec, batch.body)
                    try:
                        for message in records_of(batch, slice_, offset, reader):
                            holes.add(message.offset_)
                            size += take(message, message.offset_)
                            records += 1
                    except MemoryError:
                        raise _too_large(source, slice_, batch, Offset(offset + records)) from None
                    if on_batch is not None and records:
                        on_batch(records, size)
                    # What is fetched need not inflate to anything: codecs pass over padding.
                    on_work(max(reader.work, len(batch.body)))
                    silence.begin(batch.end)
                else:
                    silence.pass_over(batch)
                offset = max(offset, batch.end)
    return holes.close(slice_.end)


class _Silence:
    """Since when nothing committed came: the silence that ends the client's reading, whatever is fetched meanwhile."""

    def __init__(self, source: Source, slice_: OffsetRange, clock: Callable[[], float]) -> None:
        self._source, self._slice, self._clock = source, slice_, clock
        self.begin(slice_.start)

    def begin(self, offset: Offset) -> None:
        self._since, self._passed = max(offset, self._slice.start), 0
        self._until = self._clock() + self._source.idle_seconds

    @property
    def is_over(self) -> bool:
        return self._clock() > self._until

    def pass_over(self, batch: RawBatch) -> None:
        """One that transactions aborted, or of markers. Raises `Terminal` where these came for all of that time."""
        self._passed += 1
        if not self.is_over:
            return
        source, p = self._source, self._slice.partition
        end = min(batch.end, self._slice.end)
        raise Terminal(
            f"topic {source.topic} partition {p}: from offset {self._since} to {end} nothing was committed, and "
            f"{self._passed} record batches of aborted transactions and markers took longer than the "
            f"{source.idle_seconds:g} s of reading.idle_deadline. Find out who aborts them (only whoever has Write "
            "can), and raise that of the stream to read on; or leave them out. "
            f"{past_bad_place(source.kind, source.stream, self._slice, [(self._since, end)], source.begins.get(p))}",
            topic=source.topic,
            partition=p,
            offsets=[[self._since, end]],
        )


def _too_large(source: Source, slice_: OffsetRange, batch: RawBatch, offset: Offset) -> Terminal:
    p, bad = slice_.partition, [(max(batch.base_offset, slice_.start), batch.end)]
    return Terminal(
        f"topic {source.topic} partition {p}: at about offset {offset} (its record batch covers [{batch.base_offset}, "
        f"{batch.end}), {len(batch.data)} bytes, codec {batch.codec}) a reader found no room, careful as it was. "
        "Give readers more memory and run again. Or leave them out. "
        f"{past_bad_place(source.kind, source.stream, slice_, bad, source.begins.get(p))}",
        topic=source.topic,
        partition=p,
        offsets=[[batch.base_offset, batch.end]],
    )


def records_of(
    batch: RawBatch, slice_: OffsetRange, start: Offset, reader: Inflated | None = None
) -> Iterator[RawMessage]:
    """The records of a batch that lie in the slice, from `start` on. The same ones whatever slice they are read in.

    `reader`: of its body, for whoever asks it afterwards what that took.
    """
    reader = inflated(batch.codec, batch.body) if reader is None else reader
    reached = batch.base_offset
    first: Offset | None = None
    try:
        for _ in range(batch.records):
            message = _record(batch, reader, reached, first)
            reached = Offset(message.offset_ + 1)
            if message.unreadable is not None and first is None:
                first = message.offset_
            if message.offset_ >= slice_.end:
                return
            if message.offset_ >= start:
                yield message
    except Uninflatable as error:
        for offset in map(Offset, range(reached, min(batch.end, slice_.end))):
            if offset >= start:
                yield _unreadable(batch, offset=offset, stamp=batch.max_timestamp, why=error.message, first=first)
            first = offset if first is None else first


def _record(batch: RawBatch, reader: Inflated, reached: Offset, first: Offset | None) -> RawMessage:
    """The next record. `reached`: where it can lie at the earliest. `first`: the batch's first unreadable one."""
    length = reader.varint()
    begin = reader.passed
    reader.skip(1)  # attributes, of which there are none
    since, delta = reader.varint(), reader.varint()
    offset = Offset(batch.base_offset + delta)
    if not reached <= offset < batch.end:
        raise Uninflatable(f"a record says that it lies {delta} behind its batch's first")
    stamp = batch.max_timestamp if batch.is_append_time else _wrapped(batch.first_timestamp + since)
    try:
        key, value, headers = _parts(reader, length)
    except _TooLarge as large:
        reader.skip(length - (reader.passed - begin))
        return _unreadable(batch, offset=offset, stamp=stamp, why=str(large), first=first)
    if reader.passed - begin != length:
        raise Uninflatable("a record is not as long as it says")
    return RawMessage(offset, _stamp(batch, stamp), batch.leader_epoch, key, value, headers)


class _TooLarge(Exception):
    """A record that is skipped, and why."""


def _parts(reader: Inflated, length: int) -> tuple[bytes | None, bytes | None, list[tuple[bytes, bytes | None]]]:
    """Key, value and headers. What would be too large is not even taken."""
    if length > MOST_RECORD_BYTES:
        raise _TooLarge(f"a record of {length} bytes once it is inflated; allowed are {MOST_RECORD_BYTES}")
    key = _bytes(reader, MOST_ASIDE_BYTES)
    value = _bytes(reader, MOST_RECORD_BYTES)
    count = reader.varint()
    if not 0 <= count <= max(length, 0):
        raise Uninflatable(f"a record announces {count} headers")
    if count > MOST_HEADERS:
        raise _TooLarge(f"a record of {count} headers; allowed are {MOST_HEADERS}")
    headers = []
    room = MOST_ASIDE_BYTES - len(key or b"")
    for _ in range(count):
        room -= HEADER_OVERHEAD
        name = _bytes(reader, room) or b""
        content = _bytes(reader, room - len(name))
        room -= len(name) + len(content or b"")
        headers.append((name, content))
    return key, value, headers


def _bytes(reader: Inflated, room: int) -> bytes | None:
    size = reader.varint()
    if size > MOST_RECORD_BYTES:
        raise Uninflatable(f"a field of a record announces {size} bytes")
    if max(size, 0) > room:
        raise _TooLarge(f"a record of more than {MOST_ASIDE_BYTES} bytes of key and headers; allowed are so many")
    return reader.take(size) if size >= 0 else None


def _unreadable(batch: RawBatch, *, offset: Offset, stamp: int, why: str, first: Offset | None) -> RawMessage:
    kept = None
    if first is not None:
        what = f"the payload of offset {first}, where that is kept, is the raw record batch"
    elif len(batch.data) <= _MOST_KEPT:
        kept, what = bytes(batch.data), "its payload is the raw record batch"
    else:
        what = "its raw record batch is too large to keep"
    said = f"{why}; {what} of {len(batch.data)} bytes, codec {batch.codec}"
    return RawMessage(offset, _stamp(batch, stamp), batch.leader_epoch, None, kept, [], said)


def _wrapped(stamp: int) -> int:
    """As 64 bits hold it: a sum beyond them wraps, in brokers and in their clients."""
    return (stamp + (1 << 63)) % (1 << 64) - (1 << 63)


def _stamp(batch: RawBatch, stamp: int) -> tuple[int, int]:
    kind: Any = TIMESTAMP_LOG_APPEND_TIME if batch.is_append_time else TIMESTAMP_CREATE_TIME
    return (kind, stamp) if stamp >= 0 else (0, 0)
