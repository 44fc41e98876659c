"""One range of one partition, delivered to its end by a consumer of its own, which never joins its group.

Decides nothing about what a record is; `StopRule` decides when the range is done. Bounded in memory whatever the size
of the records, and in time by the idle deadline (I5).

A consumer for each range: no event or position of an earlier assignment can be taken for one of this range, and it is
faster than assigning anew, where the first fetch queues up behind the old assignment's last one, which waits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from wavestitch.contracts.holes import HoleFinder, Interval
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.quantities import LeaderEpoch, Offset, Partition
from wavestitch.contracts.stop_rule import State, StopRule, Why
from wavestitch.kafka.client_settings import Isolation, KafkaSettings
from wavestitch.kafka.clients import open_consumer
from wavestitch.kafka.kafka_errors import is_passing, is_refused_login, kafka_error, weightier

_MOST_RECORDS = 500
_FIRST_RECORDS = 16
_BATCH_BYTES = 8 << 20
"""About so much is taken from the client at once: 500 records may be 4 MiB or 4 GiB."""
_POLL_SECONDS = 0.1
_STATISTICS_MS = 200

Take = Callable[[Any, Offset], int]
"""Called with every record of the range and its offset; returns the bytes of its value."""
OnBatch = Callable[[int, int], None]
"""Called now and then with the records and bytes that were taken since the last call."""


@dataclass(frozen=True, slots=True)
class Source:
    """What is read, for which stream, and how. `idle_seconds`: silence that fails a reading. `kind`: of the
    plan, `begins`: where that does in each partition; the way out of a loss depends on both."""

    stream: str
    topic: str
    topic_id: str
    group: str
    idle_seconds: float
    kind: PlanKind = PlanKind.INGEST
    begins: Mapping[Partition, Offset] = field(default_factory=dict)


class ScanFailed(Exception):
    """A range was not delivered to its end. `position`: the first offset that did not come. `throttled`: the longest
    that a broker said it would keep back its next answer, for a quota, in seconds."""

    def __init__(self, why: Why, position: int, error: KafkaError | None, *, throttled: float = 0.0) -> None:
        super().__init__(f"{why.value} at {position}: {error}")
        self.why = why
        self.position = position
        self.error = error
        self.throttled = throttled


def scan_range(
    slice_: OffsetRange,
    *,
    settings: KafkaSettings,
    source: Source,
    take: Take,
    isolation: Isolation = "read_committed",
    start_epoch: LeaderEpoch | None = None,
    on_batch: OnBatch | None = None,
    on_fetched: Callable[[int], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Interval]:
    """Deliver the range; returns its holes. Raises `ScanFailed`.

    `on_fetched`: hears now and then how many bytes came from the brokers in all, handed out or not, and may raise.
    `start_epoch`: with it the client asks the broker first whether its log still is the one that was read up to here.
    """
    events = _ClientEvents(slice_.partition)
    rule = StopRule(slice_, idle_seconds=source.idle_seconds, now=clock())
    holes = HoleFinder(slice_.start)
    at = [TopicPartition(source.topic, slice_.partition, slice_.start)]
    if start_epoch is not None:
        at = [TopicPartition(source.topic, slice_.partition, slice_.start, leader_epoch=start_epoch)]
    more: dict[str, Any] = {"throttle_cb": events.throttle}
    if on_fetched is not None:
        more |= {"statistics.interval.ms": _STATISTICS_MS, "stats_cb": events.measure}
    consumer = open_consumer(settings, group=source.group, isolation=isolation, on_error=events.remember, more=more)
    ruling = rule.judge(position=None, now=clock())
    records = size = 0
    wanted = _FIRST_RECORDS
    try:
        consumer.assign(at)
        while ruling.state is State.CONTINUE:
            # More than the range can still hold would only be waited for.
            messages = consumer.consume(min(wanted, slice_.end - rule.position), _POLL_SECONDS)
            batch_records, batch_size = _hand_out(messages, rule, holes, events, take)
            if batch_records:
                records += batch_records
                size += batch_size
                wanted = max(1, min(_MOST_RECORDS, _BATCH_BYTES * records // max(size, 1)))
                if on_batch is not None:
                    on_batch(batch_records, batch_size)
            if on_fetched is not None:
                on_fetched(events.fetched)
            if events.complaint is not None and is_refused_login(events.complaint):
                rule.fail(Why.LOG_ERROR)
            ruling = rule.judge(position=max(events.end_seen, consumer.position(at)[0].offset), now=clock())
    except KafkaException as raised:
        raise ScanFailed(Why.LOG_ERROR, rule.reached, kafka_error(raised)) from raised
    finally:
        consumer.close()
    if ruling.state is State.FAILED:
        raise ScanFailed(ruling.why or Why.LOG_ERROR, rule.reached, events.complaint, throttled=events.throttled)
    return holes.close(slice_.end)


def _hand_out(
    messages: list[Any], rule: StopRule, holes: HoleFinder, events: _ClientEvents, take: Take
) -> tuple[int, int]:
    """Give the records of the range to `take`; returns how many, and their bytes."""
    records = size = 0
    for message in messages:
        error = message.error()
        if error is not None:
            events.hear(error, message, rule)
            continue
        offset = message.offset()
        if rule.admit(offset):
            holes.add(offset)
            size += take(message, offset)
            records += 1
    return records, size


class _ClientEvents:
    """What the client says beside records. `end_seen`: the offset up to which it has handed out everything, or -1.
    `fetched`: bytes that came from the brokers, as it said last. `throttled`: as of `ScanFailed`."""

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self.end_seen = -1
        self.fetched = 0
        self.throttled = 0.0
        self.complaint: KafkaError | None = None

    def hear(self, error: KafkaError, message: Any, rule: StopRule) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            # A hint, used as a position: where only markers lie before the end, no record comes to move the other one.
            if message.partition() == self._partition:
                self.end_seen = max(self.end_seen, message.offset())
            return
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            # The client looks for the coordinator of a group that is never joined here: a reader needs no right to it,
            # and whether it hears of that before its end is a matter of chance.
            return
        self.remember(error)
        if not is_passing(error):
            rule.fail(Why.LOG_ERROR)

    def measure(self, statistics: str) -> None:
        self.fetched = json.loads(statistics)["rx_bytes"]

    def throttle(self, said: Any) -> None:
        self.throttled = max(self.throttled, said.throttle_time)

    def remember(self, error: KafkaError) -> None:
        self.complaint = weightier(self.complaint, error)
