"""The Kafka edge that planning and projecting see: `Log` (wavestitch.contracts.ports) on a real cluster.

Every answer covers every partition that was asked for, or is an error: a failed partition is never an empty one (I8).
Never joins a group; reads records only to learn their size, their time, and whether they are those that were read.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from consumers.group_state import commit_group, committed_offsets, live_members
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.ports import PartitionEnds, Probe, TopicView
from wavestitch.contracts.position import GroupOffset, LastBatch, Position
from wavestitch.contracts.quantities import BEGINNING, EpochMs, LeaderEpoch, Offset, Partition
from wavestitch.kafka.admin import Admin
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.clients import open_consumer
from wavestitch.kafka.hedged_requests import DEADLINE_SECONDS, NOBODY_SECONDS

_NO_RECORD = -1
"""Kafka's answer where no record is as late as the time that was asked for."""


class KafkaLog:
    """`Log` over one admin client. `deadline` (seconds) bounds every request."""

    def __init__(self, settings: KafkaSettings, *, deadline: float = DEADLINE_SECONDS) -> None:
        self._deadline = deadline
        self._settings = settings
        self._admin = Admin(settings, deadline=deadline)

    def topic(self, name: str) -> TopicView:
        return self._admin.topic(name)

    def ends(self, topic: str, partitions: Sequence[Partition]) -> dict[Partition, PartitionEnds]:
        # The stable end is asked before the high watermark: the other way round, it could come out beyond it.
        starts = self._offsets(topic, dict.fromkeys(partitions, OffsetSpec.earliest()))
        stable = self._offsets(topic, dict.fromkeys(partitions, OffsetSpec.latest()))
        highest = self._offsets(topic, dict.fromkeys(partitions, OffsetSpec.latest()), committed=False)
        return {
            p: PartitionEnds(starts[p].offset, stable[p].offset, highest[p].offset, _epoch(stable[p].leader_epoch))
            for p in partitions
        }

    def epoch_ends(self, topic: str, epochs: Mapping[Partition, LeaderEpoch]) -> dict[Partition, Offset | None]:
        from wavestitch.kafka.raw_log import RawLog  # noqa: PLC0415 - kafka-python takes half a second to import

        with RawLog(self._settings, topic, deadline=self._deadline) as raw:
            return {p: raw.epoch_end(p, epoch) for p, epoch in sorted(epochs.items())}

    def batches_at(self, topic: str, offsets: Mapping[Partition, Offset]) -> dict[Partition, LastBatch | None]:
        if not offsets:
            return {}
        from wavestitch.kafka.raw_log import RawLog  # noqa: PLC0415 - kafka-python takes half a second to import

        with RawLog(self._settings, topic, deadline=self._deadline) as raw:
            return raw.batches_at(offsets)

    def times_at(self, topic: str, offsets: Mapping[Partition, Offset]) -> dict[Partition, EpochMs | None]:
        if not offsets:
            return {}
        from wavestitch.kafka.raw_log import RawLog  # noqa: PLC0415 - kafka-python takes half a second to import

        with RawLog(self._settings, topic, deadline=self._deadline) as raw:
            return raw.times_at(offsets)

    def offsets_at(
        self, topic: str, times: Mapping[Partition, EpochMs], *, committed: bool = True
    ) -> dict[Partition, Offset]:
        # The ends come first: a record that arrives between the two questions lies at or behind them, never before.
        ends = self.ends(topic, list(times))
        # No record is from before 1970, and to a broker negative times are words: the end, the beginning, the newest.
        asked = {p: OffsetSpec.for_timestamp(max(ms, BEGINNING)) for p, ms in times.items()}
        found = self._offsets(topic, asked, committed=committed, least=_NO_RECORD)
        last = {p: at.stable_end if committed else at.high_watermark for p, at in ends.items()}
        return {p: f.offset if f.offset >= 0 else last[p] for p, f in found.items()}

    def probe(self, topic: str, starts: Mapping[Partition, Offset]) -> Probe:
        from consumers.record_probe import probe_records  # noqa: PLC0415 - kafka-python takes half a second to import

        return probe_records(self._settings, topic, starts)

    def members(self, group: str) -> Sequence[str]:
        return live_members(self._admin, group)

    def group_offsets(
        self, group: str, topic: str, partitions: Sequence[Partition]
    ) -> dict[Partition, GroupOffset | None]:
        consumer = self._open(group)
        try:
            began = time.monotonic()
            return committed_offsets(
                consumer,
                group,
                topic,
                partitions,
                deadline=self._deadline,
                refused=lambda: self._admin.refused_since(began),
            )
        except KafkaException as raised:
            # A transaction that is pending on the offsets keeps the answer back, and looks like a broker that is away.
            doing = (
                f"fetching the offsets of group {group} on topic {topic} (an open transaction on them holds it up, too)"
            )
            raise self._admin.error(raised, doing) from raised
        finally:
            consumer.close()

    def commit_group(self, group: str, topic: str, positions: Mapping[Partition, Position], metadata: str) -> None:
        most_ms = str(round(min(self._deadline, NOBODY_SECONDS) * 1000))
        bounds = {"session.timeout.ms": most_ms, "socket.timeout.ms": most_ms}  # what closing would else wait for
        began = time.monotonic()
        try:
            commit_group(
                lambda told: self._open(group, {**bounds, "on_commit": told}),
                group,
                topic,
                positions,
                metadata,
                deadline=self._deadline,
                refused=lambda: self._admin.refused_since(began),
            )
        except KafkaException as raised:
            raise self._admin.error(raised, f"committing the offsets of group {group} on topic {topic}") from raised

    def _offsets(
        self, topic: str, specs: Mapping[Partition, OffsetSpec], *, committed: bool = True, least: int = 0
    ) -> dict[Partition, Any]:
        if not specs:
            return {}  # the client calls an empty question an error
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        asked = {TopicPartition(topic, p): spec for p, spec in specs.items()}
        found = self._admin.ask(
            lambda client, seconds: client.list_offsets(asked, isolation_level=level, request_timeout=seconds),
            lambda at: f"asking for offsets of topic {topic} partition {at.partition}",
            found=True,
        )
        answers = {at.partition: answer for at, answer in found.items()}
        # Where a partition has no leader, the client may answer without an error, with an offset that is none.
        missing = sorted(p for p in specs if p not in answers or answers[p].offset < least)
        if missing:
            raise Transient(
                f"no offsets came for topic {topic} partitions {missing}; are their leaders up? Try again",
                partitions=missing,
            )
        return answers

    def _open(self, group: str, more: Mapping[str, Any] | None = None) -> Any:
        """A consumer with the group's id."""
        return open_consumer(
            self._settings, group=group, isolation="read_committed", on_error=self._admin.remember, more=more
        )


def _epoch(value: int | None) -> LeaderEpoch | None:
    return LeaderEpoch(value) if value is not None and value >= 0 else None
