"""A slice read from the broker's raw record batches: small records in columns, and whatever the client could not read.

Compressed batches are inflated as a stream, record by record, so that one record bounds the memory, whatever a batch
of a few kilobytes blows up to. A record above `MOST_RECORD_BYTES`, with more than `MOST_HEADERS` or with more than
`MOST_ASIDE_BYTES` of key and headers, and one whose batch cannot be inflated, is *unreadable*: it is held by its
coordinates, and its neighbours go on. The first such record of a batch has the raw batch as its payload, where that is
small enough; the others name the first one's offset. What is behind `MOST_BATCH_BYTES` of one batch is unreadable, too.

Batches that inflate to little, and are exactly as the format has them, are looked at together: where their records'
fields lie is found for all at once (`record_columns`). The record by itself is the specification: the same records.

Time is bounded by counting: what each batch took is told, and whoever hears it may end the reading there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, KafkaError

from consumers.range_scan import OnBatch, ScanFailed, Source, Take
from consumers.raw_message import MOST_ASIDE_BYTES, MOST_HEADERS, MOST_RECORD_BYTES, RawMessage
from wavestitch.contracts.errors import Terminal
from wavestitch.contracts.holes import HoleFinder, Interval
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import LeaderEpoch, Offset
from wavestitch.contracts.raw_headers import HEADER_OVERHEAD
from wavestitch.contracts.record_batches import told_apart
from wavestitch.contracts.record_columns import BatchBody, RecordColumns, find_records
from wavestitch.contracts.stop_rule import Why
from wavestitch.contracts.way_past import past_bad_place
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.inflate import Inflated, Uninflatable, inflated, inflated_whole, work_of
from wavestitch.kafka.raw_batches import RawBatch, head_of
from wavestitch.kafka.raw_log import Diverged, Fetched, OutOfRange, RawLog

TakeColumns = Callable[[RecordColumns, int], int]
"""Called with records of the range, and their leader epoch; returns the bytes of their values."""

_MOST_KEPT = 1 << 20
"""Of an unreadable record's batch so much is kept at most."""
_FETCH_BYTES = 4 << 20
_FEW_BATCHES = 8
"""So few of which one is odd go record by record: to find out which one would cost as much."""
_TOGETHER_BYTES, _TOGETHER_RECORDS = 8 << 20, 1 << 16
"""So much is looked at together, inflated; a batch that is more goes record by record."""


def scan_batches(
    slice_: OffsetRange,
    *,
    settings: KafkaSettings,
    source: Source,
    take: Take,
    take_columns: TakeColumns,
    start_epoch: LeaderEpoch | None = None,
    on_batch: OnBatch | None = None,
    on_work: Callable[[int], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Interval]:
    """Deliver the range as `scan_range` does; returns its holes. Raises `ScanFailed` and what a raw fetch raises.

    `on_work` hears of each batch what fetching and reading it took (`Inflated.work`), and may raise.
    """
    delivery = Delivery(slice_, source, take, take_columns, on_batch or (lambda *_: None), on_work)
    where = f"topic {source.topic} partition {slice_.partition}"
    silence = Silence(source, slice_, clock)
    rack = settings.options.get("client.rack", "")
    with RawLog(settings, source.topic, deadline=source.idle_seconds, rack=rack) as raw:
        epoch = start_epoch
        while delivery.reached < slice_.end:
            got = _fetch(raw, slice_, delivery.reached, epoch)
            if not got.batches:
                if silence.is_over:
                    raise ScanFailed(Why.IDLE, delivery.reached, None)
                continue  # the broker itself waits before it sends nothing
            last = got.batches[-1]
            # What the next fetch is held against: a log that was cut off below what was read so far says no more.
            epoch = LeaderEpoch(last.leader_epoch) if last.leader_epoch >= 0 else None
            if last.end < slice_.end:
                raw.ask_ahead(slice_.partition, last.end, most_bytes=_FETCH_BYTES, last_epoch=epoch)
            hand_over(got, delivery, silence, where=where)
    return delivery.holes.close(slice_.end)


def hand_over(got: Fetched, delivery: Delivery, silence: Silence, *, where: str) -> None:
    """What one fetch brought. `where`: topic and partition, for a sentence."""
    end = delivery.slice_.end
    heads = [head_of(batch, where=where) for batch in got.batches]
    for batch, (head, aborted) in zip(got.batches, told_apart(heads, got.aborted), strict=True):
        # Nothing lies between two batches: so a slice may end where none does.
        delivery.pass_over(min(batch.base_offset, end))
        if batch.base_offset >= end:
            break  # it came in the same fetch, and is nobody's to inflate here
        if head.control is None and not aborted:
            delivery.add(batch)
            silence.begin(batch.end)
        else:
            delivery.pass_over(batch.end)
            silence.pass_over(batch)
    if delivery.flush():
        silence.wait_anew()


def _fetch(raw: RawLog, slice_: OffsetRange, offset: Offset, epoch: LeaderEpoch | None) -> Fetched:
    try:
        return raw.fetch(slice_.partition, offset, most_bytes=_FETCH_BYTES, last_epoch=epoch)
    except OutOfRange as gone:
        raise ScanFailed(Why.LOG_ERROR, gone.offset, KafkaError(KafkaError.OFFSET_OUT_OF_RANGE)) from gone
    except Diverged as cut:
        if offset == slice_.start and cut.end >= offset and epoch is not None and cut.epoch < epoch:
            # A position names the epoch of a leader, which may have written nothing: no log keeps that one. Of what was
            # read in this slice each epoch is a batch's, and there it means that the batch is gone.
            return _fetch(raw, slice_, offset, LeaderEpoch(cut.epoch))
        raise ScanFailed(Why.LOG_ERROR, offset, KafkaError(KafkaError._LOG_TRUNCATION)) from cut


@dataclass
class Delivery:
    """Committed batches in the order of their offsets, on their way to who takes their records.

    Small ones wait for each other (`pending`), so that many are looked at together. `reached`: where the next record
    can lie; what waits lies behind it. `seen`: the end of what was given; `flush` catches up with that.
    """

    slice_: OffsetRange
    source: Source
    take: Take
    take_columns: TakeColumns
    on_batch: OnBatch
    on_work: Callable[[int], None]
    pending: list[tuple[RawBatch, BatchBody]] = field(default_factory=list)
    pending_bytes: int = 0
    pending_records: int = 0

    def __post_init__(self) -> None:
        self.reached = self.seen = self.slice_.start
        self.holes = HoleFinder(self.slice_.start)

    def add(self, batch: RawBatch) -> None:
        """A batch of records that are committed."""
        body = _one_of_many(batch)
        if body is None:
            self.flush()
            self.one_by_one(batch)
            return
        size, records = self.pending_bytes + len(body), self.pending_records + batch.records
        elected = bool(self.pending) and self.pending[-1][0].leader_epoch != batch.leader_epoch
        if elected or size > _TOGETHER_BYTES or records > _TOGETHER_RECORDS:
            self.flush()
        self.seen = max(self.seen, batch.end)
        self.pending.append((batch, in_columns(batch, body)))
        self.pending_bytes += len(body)
        self.pending_records += batch.records

    def pass_over(self, end: Offset) -> None:
        """There are no records for anybody before this offset, but what waits."""
        self.seen = max(self.seen, end)

    def flush(self) -> bool:
        """Whether anything waited."""
        waiting, self.pending = self.pending, []
        self.pending_bytes = self.pending_records = 0
        if waiting:
            self._together(waiting)
        self.reached = max(self.reached, self.seen)
        return bool(waiting)

    def _together(self, batches: list[tuple[RawBatch, BatchBody]]) -> None:
        records = find_records([body for _, body in batches])
        if records is None:
            if len(batches) <= _FEW_BATCHES:
                for batch, _ in batches:
                    self.one_by_one(batch)
                return
            half = len(batches) // 2
            self._together(batches[:half])
            self._together(batches[half:])
            return
        records = records.between(self.reached, self.slice_.end)
        last = batches[-1][0]
        if len(records):
            for start, end in _side_by_side(records):
                self.holes.add_run(start, end)
            self.on_batch(len(records), self.take_columns(records, last.leader_epoch))
        for batch, body in batches:
            self.on_work(max(work_of(len(body.body)), len(batch.body)))
        self.reached = max(self.reached, last.end)

    def one_by_one(self, batch: RawBatch) -> None:
        """One whose records are inflated and looked at in turn."""
        records = size = 0
        reader = inflated(batch.codec, batch.body)
        try:
            for message in records_of(batch, self.slice_, self.reached, reader):
                self.holes.add(message.offset_)
                size += self.take(message, message.offset_)
                records += 1
        except MemoryError:
            raise _too_large(self.source, self.slice_, batch, Offset(self.reached + records)) from None
        if records:
            self.on_batch(records, size)
        # What is fetched need not inflate to anything: codecs pass over padding.
        self.on_work(max(reader.work, len(batch.body)))
        self.reached = max(self.reached, batch.end)


def _one_of_many(batch: RawBatch) -> bytes | memoryview | None:
    """Its body, inflated, where it is small enough to be looked at with others."""
    if batch.records > _TOGETHER_RECORDS:
        return None
    body = inflated_whole(batch.codec, batch.body, most=_TOGETHER_BYTES)
    # What is less than half of what came is no codec's work: of padding each batch is counted before the next one.
    return None if body is None or len(batch.body) > 2 * len(body) else body


def in_columns(batch: RawBatch, body: bytes | memoryview) -> BatchBody:
    """`body`: of the batch, inflated."""
    stamp = batch.max_timestamp if batch.is_append_time else None
    return BatchBody(body, batch.records, batch.base_offset, batch.last_offset_delta, batch.first_timestamp, stamp)


def _side_by_side(records: RecordColumns) -> Iterator[Interval]:
    """The offsets `[start, end)` between which none is missing."""
    gaps = np.flatnonzero(np.diff(records.offsets) > 1) + 1
    for begin, end in zip([0, *gaps.tolist()], [*gaps.tolist(), len(records)], strict=True):
        yield Offset(int(records.offsets[begin])), Offset(int(records.offsets[end - 1]) + 1)


class Silence:
    """Since when nothing committed came: the silence that ends the client's reading, whatever is fetched meanwhile."""

    def __init__(self, source: Source, slice_: OffsetRange, clock: Callable[[], float]) -> None:
        self._source, self._slice, self._clock = source, slice_, clock
        self.begin(slice_.start)

    def begin(self, offset: Offset) -> None:
        self._since, self._passed = max(offset, self._slice.start), 0
        self.wait_anew()

    def wait_anew(self) -> None:
        """What was done with records took its time, and was no silence."""
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
    # Of a batch from which none was taken out the brokers look at how many there are, and not at each of them.
    is_whole = batch.records == batch.last_offset_delta + 1
    if not reached <= offset < batch.end or (is_whole and offset != reached):
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
