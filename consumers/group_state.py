"""The consumer group as Kafka keeps it: its members, its offsets, and writing them. Never joins it.

An offset that could not be fetched is an error; only an answer without error and without offset means "none". Errors
that concern the whole request come out as `KafkaException`, those of one partition as ours, naming it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

from consumers.kafka_errors import kafka_error, translate
from wavestitch.contracts.errors import Refused, Transient
from wavestitch.contracts.position import GroupOffset, Position

_COORDINATOR_MOVES = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


def _settled(ask: Callable[[], Any], deadline: float) -> Any:
    """The answer, once the group has a coordinator: a broker that has just started, or has just taken the group over,
    says for a moment that it does not know yet. What it still says at the deadline is raised."""
    end = time.monotonic() + deadline
    while True:
        try:
            return ask()
        except KafkaException as raised:
            if kafka_error(raised).code() not in _COORDINATOR_MOVES or time.monotonic() > end:
                raise
        time.sleep(0.1)


def live_members(admin: Any, group: str, *, deadline: float) -> list[str]:
    """Client id and host of every member, whichever rebalance protocol it speaks; empty for an unknown group."""

    def ask() -> Any:
        return admin.describe_consumer_groups([group], request_timeout=deadline)[group].result()

    try:
        found = _settled(ask, deadline)
    except KafkaException as raised:
        # Brokers from 4.0 on answer so to newer versions of the request; older ones say that the group is dead.
        if kafka_error(raised).code() == KafkaError.GROUP_ID_NOT_FOUND:
            return []
        raise
    if found.state == ConsumerGroupState.DEAD:
        return []
    return [f"{member.client_id} at {member.host.lstrip('/')}" for member in found.members]


def committed_offsets(
    consumer: Any, group: str, topic: str, partitions: Sequence[int], *, deadline: float
) -> dict[int, GroupOffset | None]:
    """Per partition what is committed; None where nothing is. `consumer` has the group's id and never joins it.

    Not the admin client's question: librdkafka's answer to that can end the whole process while the group's coordinator
    moves. A committed reader waits for that, and for a transaction that is pending on the offsets, up to the deadline.
    """
    if not partitions:
        return {}
    answer = consumer.committed([TopicPartition(topic, p) for p in partitions], timeout=deadline)
    offsets: dict[int, GroupOffset | None] = {}
    for at in answer:
        if at.error is not None:
            raise translate(at.error, f"fetching the offset of group {group} on topic {topic} partition {at.partition}")
        offsets[at.partition] = GroupOffset(at.offset, at.metadata or "") if at.offset >= 0 else None
    missing = sorted(set(partitions) - set(offsets))
    if missing:
        raise Transient(
            f"the broker left out the offsets of group {group} on topic {topic} partitions {missing}; try again",
            partitions=missing,
        )
    return offsets


def commit_group(
    admin: Any, group: str, topic: str, positions: Mapping[int, Position], metadata: str, *, deadline: float
) -> None:
    """Write all offsets, tagged. With live members Kafka refuses: raised as `Refused`."""
    if not positions:
        return
    wanted = [
        TopicPartition(topic, p, at.next_offset, metadata=metadata, leader_epoch=at.leader_epoch)
        if at.leader_epoch is not None
        else TopicPartition(topic, p, at.next_offset, metadata=metadata)
        for p, at in sorted(positions.items())
    ]
    asked = [ConsumerGroupTopicPartitions(group, wanted)]
    answer = admin.alter_consumer_group_offsets(asked, request_timeout=deadline)[group].result()
    # The request as a whole succeeds; what became of a partition stands in its own error.
    for at in answer.topic_partitions:
        if at.error is not None:
            raise _refusal(at.error, group, topic, at.partition)


def _refusal(error: KafkaError, group: str, topic: str, partition: int) -> Exception:
    if error.code() in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP, KafkaError.REBALANCE_IN_PROGRESS):
        return Refused(
            f"group {group} has live members, so Kafka takes no offsets from outside (topic {topic} partition "
            f"{partition}: {error.name()}); stop the consumers of this group, or give the stream a group of its own",
            group=group,
            partition=partition,
        )
    return translate(error, f"committing the offset of group {group} on topic {topic} partition {partition}")
