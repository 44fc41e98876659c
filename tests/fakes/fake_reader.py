"""The product's own reading loop (`scan_range`, its stop rule, its holes, its explanations) over a `FakeLog`.

A consumer whose settings name a memory log gets a `FakeConsumer`; every other one is the real client. Plays what a
reader meets: few records a poll, polls that bring nothing, an end of partition that is stale, records jumped over.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from confluent_kafka import KafkaError

from consumers import range_scan, slice_reader
from consumers.failed_reading import check_topic, explain_failure
from consumers.range_scan import ScanFailed, Source, scan_range
from tests.fakes.fake_log import FakeLog, Mood
from tests.fakes.kept_partition import Record
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.holes import Hole, Interval, prove_holes
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import LeaderEpoch, Offset, Partition
from wavestitch.contracts.record_batches import RawFetch
from wavestitch.contracts.stop_rule import Why
from wavestitch.contracts.written import Written, beside_holes, runs_of
from wavestitch.kafka.client_settings import Isolation, KafkaSettings

_MOST = 5
_MARKER_BYTES = 78
"""What a marker takes in a real log."""
_LOGS: WeakValueDictionary[str, FakeLog] = WeakValueDictionary()
_connect_really = range_scan.open_consumer


def source_of(plan: Plan) -> Source:
    stream = plan.stream
    idle = stream.reading.idle_deadline
    return Source(stream.name, stream.topic, plan.topic_id, stream.group, idle, plan.kind, plan.begins)


def read_slice(
    log: FakeLog,
    source: Source,
    slice_: OffsetRange,
    *,
    start_epoch: LeaderEpoch | None = None,
    newest_epoch: LeaderEpoch | None = None,
) -> tuple[list[Record], list[Hole], list[Written]]:
    """The records of a slice, its proven holes and when all of it was written; as the product's, less the landing."""
    _LOGS[log.settings.bootstrap] = log
    found: list[Record] = []
    try:
        holes = _scan(slice_, settings=log.settings, source=source, take=_taking(found), start_epoch=start_epoch)
        proven = prove_holes(
            holes,
            stream=source.stream,
            topic=source.topic,
            slice_=slice_,
            fetch=partial(_fetch_raw, log, slice_.partition),
            kind=source.kind,
            begins=source.begins.get(slice_.partition),
        )
    except ScanFailed as failed:
        raise explain_failure(log, source, slice_, failed) from failed
    check_topic(log, source)
    mine = [Written(r.offset, log.epoch_of(r)) for r in found]
    written = beside_holes(runs_of(mine), proven.written, slice_.end)
    slice_reader.check_epoch(source, slice_, written, newest=newest_epoch)
    return found, proven.holes, written


def _fetch_raw(log: FakeLog, partition: Partition, offset: Offset, most_bytes: int) -> RawFetch:
    with log.act("log.raw", error=Transient):
        try:
            return log.fetch_raw(partition, offset, most=max(1, most_bytes // _MARKER_BYTES))
        except IndexError:
            raise ScanFailed(Why.LOG_ERROR, offset, KafkaError(KafkaError.OFFSET_OUT_OF_RANGE)) from None


def _taking(found: list[Record]) -> Callable[[Any, int], int]:
    def take(message: Any, _offset: int) -> int:
        found.append(message.record)
        return len(message.value() or b"")

    return take


class _Message:
    """As the client's: a record, or an event of a partition."""

    def __init__(self, record: Record | None, *, partition: int, offset: int, code: int | None = None) -> None:
        self.record = record
        self._partition, self._offset, self._code = partition, offset, code

    def error(self) -> KafkaError | None:
        return None if self._code is None else KafkaError(self._code)

    def offset(self) -> int:
        return self._offset

    def partition(self) -> int:
        return self._partition

    def value(self) -> bytes | None:
        return self.record.value if self.record is not None else None


class FakeConsumer:
    """The client's consumer, as far as `scan_range` uses it."""

    def __init__(self, log: FakeLog, *, committed: bool) -> None:
        self._log = log
        self._committed = committed
        self._at: Any = None
        self._next = 0
        self._position = 0

    def assign(self, partitions: Sequence[Any]) -> None:
        (self._at,) = partitions
        self._next = self._position = self._at.offset

    def consume(self, most: int, _timeout: float) -> list[_Message]:
        with self._log.act("log.read", error=Transient):
            return self._poll(most)

    def _poll(self, most: int) -> list[_Message]:
        p = self._at.partition
        if self._at.leader_epoch is not None and self._log.diverged(p, self._at.offset, self._at.leader_epoch):
            return [_Message(None, partition=p, offset=self._at.offset, code=KafkaError._LOG_TRUNCATION)]
        mood = self._log.moods.pop() if self._log.moods else None
        if mood is Mood.EMPTY:
            return []
        if mood is Mood.STALE_END:
            return [_Message(None, partition=p, offset=self._next, code=KafkaError._PARTITION_EOF)]
        if mood is Mood.JUMP:
            self._next = self._log.jump(p, Offset(self._next))
        try:
            found, self._next = self._log.fetch(p, self._next, most=min(most, _MOST), committed=self._committed)
        except IndexError:
            return [_Message(None, partition=p, offset=self._next, code=KafkaError._AUTO_OFFSET_RESET)]
        if not found:
            return [_Message(None, partition=p, offset=self._next, code=KafkaError._PARTITION_EOF)]
        self._position = found[-1].offset + 1
        return [_Message(r, partition=p, offset=r.offset) for r in found]

    def position(self, partitions: Sequence[Any]) -> list[Any]:
        (at,) = partitions
        return [type(at)(at.topic, at.partition, self._position)]

    def close(self) -> None:
        """Nothing is open."""


def _connect(settings: KafkaSettings, *, isolation: Isolation, **more: Any) -> Any:
    log = _LOGS.get(settings.bootstrap)
    if log is None:
        return _connect_really(settings, isolation=isolation, **more)
    return FakeConsumer(log, committed=isolation == "read_committed")


def _scan(slice_: OffsetRange, *, settings: KafkaSettings, **more: Any) -> list[Interval]:
    """`scan_range` with a clock that counts polls where the log is in memory: there nothing takes time."""
    if settings.bootstrap in _LOGS:
        more.setdefault("clock", itertools.count().__next__)
    return scan_range(slice_, settings=settings, **more)


range_scan.open_consumer = _connect
slice_reader.scan_range = _scan
