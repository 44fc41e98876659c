"""The Kafka edge that planning and projecting see: `Log` (wavestitch.contracts.ports) on a real cluster.

Every answer covers every partition that was asked for, or is an error: a failed partition is never an empty one (I8).
Never joins a group; reads records only to learn their size.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition, Uuid
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec

from consumers.group_state import commit_group, committed_offsets, live_members
from wavestitch.contracts.errors import Refused, Transient
from wavestitch.contracts.ports import PartitionEnds, Probe, TopicView
from wavestitch.contracts.position import GroupOffset, Position
from wavestitch.kafka.client_settings import KafkaSettings, admin_config, consumer_config
from wavestitch.kafka.kafka_errors import is_refused_login, kafka_error, translate

_NO_ID = Uuid(0, 0)
"""What the client makes of it that a broker gives none."""
_NO_RECORD = -1
"""Kafka's answer where no record is as late as the time that was asked for."""
_LOOK_SECONDS = 0.25
"""So often a request that has no answer yet is looked after."""


class KafkaLog:
    """`Log` over one admin client. `deadline` (seconds) bounds every request."""

    def __init__(self, settings: KafkaSettings, *, deadline: float = 10.0) -> None:
        self._deadline = deadline
        self._complaint: tuple[float, KafkaError] | None = None
        self._bootstrap = settings.bootstrap
        self._settings = settings
        if settings.protocol == "sasl_plaintext":
            from wavestitch.kafka.raw_log import check_listeners  # noqa: PLC0415 - for logins in the clear alone

            check_listeners(settings, deadline=deadline)
        self._admin = AdminClient(admin_config(settings, on_error=self._remember))

    def topic(self, name: str) -> TopicView:
        doing = f"looking up topic {name} at {self._bootstrap}"
        futures = self._admin.describe_topics(TopicCollection([name]), request_timeout=self._deadline)
        try:
            found = self._answer(futures[name])
        except KafkaException as raised:
            if kafka_error(raised).code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise Refused(
                    f"topic {name} does not exist at {self._bootstrap}; create it, or correct the stream's `topic`",
                    topic=name,
                ) from None
            raise self._error(raised, doing) from raised
        topic_id = _identity(found.topic_id, name, self._bootstrap)
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        configs = self._admin.describe_configs([resource], request_timeout=self._deadline)
        options = self._result(configs[resource], f"reading the configuration of topic {name}")
        return TopicView(
            name=name,
            topic_id=topic_id,
            partitions=tuple(sorted(p.id for p in found.partitions)),
            compacted="compact" in options["cleanup.policy"].value,
            max_message_bytes=int(options["max.message.bytes"].value),
            compression=options["compression.type"].value,
        )

    def ends(self, topic: str, partitions: Sequence[int]) -> dict[int, PartitionEnds]:
        # The stable end is asked before the high watermark: the other way round, it could come out beyond it.
        starts = self._offsets(topic, dict.fromkeys(partitions, OffsetSpec.earliest()))
        stable = self._offsets(topic, dict.fromkeys(partitions, OffsetSpec.latest()))
        highest = self._offsets(topic, dict.fromkeys(partitions, OffsetSpec.latest()), committed=False)
        return {
            p: PartitionEnds(starts[p].offset, stable[p].offset, highest[p].offset, _epoch(stable[p].leader_epoch))
            for p in partitions
        }

    def offsets_at(self, topic: str, times_ms: Mapping[int, int]) -> dict[int, int]:
        # The ends come first: a record that arrives between the two questions lies at or behind them, never before.
        ends = self.ends(topic, list(times_ms))
        found = self._offsets(topic, {p: OffsetSpec.for_timestamp(ms) for p, ms in times_ms.items()}, least=_NO_RECORD)
        return {p: f.offset if f.offset >= 0 else ends[p].stable_end for p, f in found.items()}

    def probe(self, topic: str, starts: Mapping[int, int]) -> Probe:
        from consumers.record_probe import probe_records  # noqa: PLC0415 - kafka-python takes half a second to import

        return probe_records(self._settings, topic, starts)

    def members(self, group: str) -> Sequence[str]:
        try:
            return live_members(self._admin, group, deadline=self._deadline, wait=self._answer)
        except KafkaException as raised:
            raise self._error(raised, f"looking up the members of group {group}") from raised

    def group_offsets(self, group: str, topic: str, partitions: Sequence[int]) -> dict[int, GroupOffset | None]:
        config = consumer_config(self._settings, group=group, isolation="read_committed", on_error=self._remember)
        consumer = Consumer(config)
        try:
            began = time.monotonic()
            return committed_offsets(
                consumer, group, topic, partitions, deadline=self._deadline, refused=lambda: self._refused_since(began)
            )
        except KafkaException as raised:
            # A transaction that is pending on the offsets keeps the answer back, and looks like a broker that is away.
            doing = (
                f"fetching the offsets of group {group} on topic {topic} (an open transaction on them holds it up, too)"
            )
            raise self._error(raised, doing) from raised
        finally:
            consumer.close()

    def commit_group(self, group: str, topic: str, positions: Mapping[int, Position], metadata: str) -> None:
        patience = str(round(self._deadline * 1000))
        bounds = {"session.timeout.ms": patience, "socket.timeout.ms": patience}  # what closing would else wait for
        config = consumer_config(self._settings, group=group, isolation="read_committed", on_error=self._remember)
        began = time.monotonic()
        try:
            commit_group(
                lambda told: Consumer({**config, **bounds, "on_commit": told}),
                group,
                topic,
                positions,
                metadata,
                deadline=self._deadline,
                refused=lambda: self._refused_since(began),
            )
        except KafkaException as raised:
            raise self._error(raised, f"committing the offsets of group {group} on topic {topic}") from raised

    def _offsets(
        self, topic: str, specs: Mapping[int, OffsetSpec], *, committed: bool = True, least: int = 0
    ) -> dict[int, Any]:
        if not specs:
            return {}  # the client calls an empty question an error
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        asked = {TopicPartition(topic, p): spec for p, spec in specs.items()}
        futures = self._admin.list_offsets(asked, isolation_level=level, request_timeout=self._deadline)
        answers = {
            at.partition: self._result(future, f"asking for offsets of topic {topic} partition {at.partition}")
            for at, future in futures.items()
        }
        # Where a partition has no leader, the client may answer without an error, with an offset that is none.
        missing = sorted(p for p in specs if p not in answers or answers[p].offset < least)
        if missing:
            raise Transient(
                f"no offsets came for topic {topic} partitions {missing}; are their leaders up? Try again",
                partitions=missing,
            )
        return answers

    def _result(self, future: Future[Any], doing: str) -> Any:
        try:
            return self._answer(future)
        except KafkaException as raised:
            raise self._error(raised, doing) from raised

    def _answer(self, future: Future[Any]) -> Any:
        """The answer; the client's own complaint as soon as a broker does not let us in: it would go on trying."""
        began = time.monotonic()
        while True:
            try:
                return future.result(_LOOK_SECONDS)
            except TimeoutError:
                self._admin.poll(0)
                refusal = self._refused_since(began)
                if refusal is not None:
                    raise KafkaException(refusal) from None

    def _refused_since(self, began: float) -> KafkaError | None:
        if self._complaint is None or self._complaint[0] < began or not is_refused_login(self._complaint[1]):
            return None
        return self._complaint[1]

    def _error(self, raised: KafkaException, doing: str) -> Exception:
        error = kafka_error(raised)
        if error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT):
            self._admin.poll(0)
            # What the client complained of while it waited explains more than the timeout that it led to.
            if self._complaint is not None and time.monotonic() - self._complaint[0] <= self._deadline + 1:
                error = self._complaint[1]
            # librdkafka (2.16) may wait for minutes for a node that has gone; a new client asks the others.
            self._admin = AdminClient(admin_config(self._settings, on_error=self._remember))
        return translate(error, doing)

    def _remember(self, error: KafkaError) -> None:
        self._complaint = (time.monotonic(), error)


def _epoch(value: int | None) -> int | None:
    return value if value is not None and value >= 0 else None


def _identity(topic_id: Any, topic: str, bootstrap: str) -> str:
    if topic_id is None or str(topic_id) == str(_NO_ID):
        raise Refused(
            f"the broker at {bootstrap} gives topic {topic} no topic id: a topic that was deleted and made again could "
            "not be told from it, and an offset could mean two records; use brokers of version 2.8 or later, with an "
            "inter-broker protocol from 2.8 on",
            topic=topic,
        )
    return str(topic_id)
