"""The consumer group as Kafka keeps it: its members, its offsets, and writing them. Never joins it.

An offset that could not be fetched is an error; only an answer without error and without offset means "none". Errors
that concern the whole request come out as `KafkaException`, those of one partition as ours, naming it.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException, TopicPartition

from wavestitch.contracts.errors import Refused, Transient, WavestitchError
from wavestitch.contracts.position import GroupOffset, Position
from wavestitch.contracts.quantities import Partition
from wavestitch.kafka.admin import Admin
from wavestitch.kafka.kafka_errors import is_refused_act, is_refused_login, kafka_error, translate

_FIRST_TIME_OUT = 1.0
_POLL_SECONDS = 0.01
_PAUSE_SECONDS = 0.1
_HAS_MEMBERS = (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.NON_EMPTY_GROUP, KafkaError.REBALANCE_IN_PROGRESS)
_NO_GROUP = KafkaError(KafkaError.GROUP_ID_NOT_FOUND).name()
_NOT_CLASSIC = "Dead"
"""What a broker says to the older question of a group that is there, and speaks the newer protocol."""
_COORDINATOR_MOVES = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)
# What the client waits for by itself, and says when the time for it is up.
_NO_ANSWER = (
    *_COORDINATOR_MOVES,
    KafkaError._TIMED_OUT,
    KafkaError._WAIT_COORD,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
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
        time.sleep(_PAUSE_SECONDS)


def _listed(client: Any, group: str, seconds: float) -> Any:
    """The group as the older protocol knows it; None where no broker does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = client.list_groups(group=group, timeout=seconds)
    return next((each for each in found if each.id == group), None)


def live_members(admin: Admin, group: str) -> list[str]:
    """Client id and host of every member, whichever rebalance protocol it speaks; empty for an unknown group."""
    doing = f"looking up the members of group {group}"
    # First the older question, which goes to every broker: the newer ones go to the group's coordinator alone, and when
    # that one moves librdkafka (2.16) asks the old one for minutes, and where its connections break ends the process.
    known = admin.call(lambda client, seconds: _listed(client, group, seconds), doing)
    if known is None:
        return []
    if known.state != _NOT_CLASSIC:
        return [f"{member.client_id} at {member.client_host.lstrip('/')}" for member in known.members]
    try:
        found = admin.ask(
            lambda client, seconds: client.describe_consumer_groups([group], request_timeout=seconds), lambda _: doing
        )[group]
    except WavestitchError as error:
        # Brokers from 4.0 on answer so to newer versions of the request; older ones say that the group is dead.
        if error.facts.get("code") == _NO_GROUP:
            return []
        raise
    if found.state == ConsumerGroupState.DEAD:
        return []
    return [f"{member.client_id} at {member.host.lstrip('/')}" for member in found.members]


def committed_offsets(
    consumer: Any,
    group: str,
    topic: str,
    partitions: Sequence[Partition],
    *,
    deadline: float,
    refused: Callable[[], KafkaError | None],
) -> dict[Partition, GroupOffset | None]:
    """Per partition what is committed; None where nothing is. `consumer` has the group's id and never joins it.

    Not the admin client's question: librdkafka's answer to that can end the whole process while the group's coordinator
    moves. A committed reader waits for that, and for a transaction that is pending on the offsets, up to the deadline.
    `refused`: why the client is not let in, where it complained of that.
    """
    if not partitions:
        return {}
    answer = _answer(consumer, [TopicPartition(topic, p) for p in partitions], deadline, refused)
    offsets: dict[Partition, GroupOffset | None] = {}
    for at in answer:
        if at.error is not None:
            doing = f"fetching the offset of group {group} on topic {topic} partition {at.partition}"
            raise translate(at.error, doing, found=True)
        epoch = at.leader_epoch if at.leader_epoch is not None and at.leader_epoch >= 0 else None
        offsets[at.partition] = GroupOffset(at.offset, at.metadata or "", epoch) if at.offset >= 0 else None
    missing = sorted(set(partitions) - set(offsets))
    if missing:
        raise Transient(
            f"the broker left out the offsets of group {group} on topic {topic} partitions {missing}; try again",
            partitions=missing,
        )
    return offsets


def _answer(
    consumer: Any, wanted: list[TopicPartition], deadline: float, refused: Callable[[], KafkaError | None]
) -> list[TopicPartition]:
    """What the broker says within the deadline. One that will not let us in is no broker that is away: the client only
    waits for it, and tells the refusal to whoever polls."""
    end, time_out = time.monotonic() + deadline, _FIRST_TIME_OUT
    while True:
        asked = time.monotonic()
        try:
            return list(consumer.committed(wanted, timeout=max(0.0, min(time_out, end - asked))))
        except KafkaException as raised:
            if kafka_error(raised).code() not in _NO_ANSWER:
                raise
            refusal = _heard(consumer) or refused()
            if refusal is not None:
                raise KafkaException(refusal) from raised
            now = time.monotonic()
            if now >= end:
                raise
        if now - asked >= time_out:
            # A broker that is only slow gets more time each try, at last all there is.
            time_out *= 2
        else:
            # One that says at once that it does not know yet is asked again a moment later, as often as there is time.
            time.sleep(min(_PAUSE_SECONDS, end - now))


def _heard(consumer: Any) -> KafkaError | None:
    """The refusal among what the client has to tell. Polling without an assignment reads nothing and joins nothing."""
    while (message := consumer.poll(_POLL_SECONDS)) is not None:
        error = message.error()
        if error is not None and (is_refused_login(error) or is_refused_act(error)):
            return error
    return None


def commit_group(
    open_consumer: Callable[[Callable[..., None]], Any],
    group: str,
    topic: str,
    positions: Mapping[Partition, Position],
    metadata: str,
    *,
    deadline: float,
    refused: Callable[[], KafkaError | None],
) -> None:
    """Write all offsets, tagged. With live members Kafka refuses: raised as `Refused`.

    `open_consumer`: makes a consumer with the group's id, which never joins it; its argument is told what became of a
    commit. Not the admin client's request, for the reasons in `live_members`. `refused`: as in `committed_offsets`.
    """
    if not positions:
        return
    wanted = [
        TopicPartition(topic, p, at.next_offset, metadata=metadata, leader_epoch=at.leader_epoch)
        if at.leader_epoch is not None
        else TopicPartition(topic, p, at.next_offset, metadata=metadata)
        for p, at in sorted(positions.items())
    ]
    answers: list[tuple[KafkaError | None, list[TopicPartition]]] = []
    consumer = open_consumer(lambda error, partitions: answers.append((error, partitions)))
    end = time.monotonic() + deadline

    def ask() -> list[TopicPartition]:
        answers.clear()
        consumer.commit(offsets=wanted, asynchronous=True)
        while not answers:
            refusal = _heard(consumer) or refused()
            if refusal is not None or time.monotonic() > end:
                raise KafkaException(refusal or KafkaError(KafkaError._TIMED_OUT))
        error, partitions = answers[0]
        if error is not None and all(at.error is None for at in partitions):
            raise KafkaException(error)
        return partitions

    try:
        failed = [at for at in _settled(ask, deadline) if at.error is not None]
        if failed:
            # The client tells all of them the error of one.
            raise _refusal(failed[0].error, group, topic, [at.partition for at in failed])
    except KafkaException as raised:
        if kafka_error(raised).code() in _HAS_MEMBERS:
            raise _refusal(kafka_error(raised), group, topic, sorted(positions)) from raised
        raise
    finally:
        consumer.close()


def _refusal(error: KafkaError, group: str, topic: str, partitions: Sequence[Partition]) -> Exception:
    where = f"topic {topic} partition{'s' * (len(partitions) > 1)} {', '.join(map(str, partitions))}"
    if error.code() in _HAS_MEMBERS:
        return Refused(
            f"group {group} has live members, so Kafka takes no offsets from outside ({where}: "
            f"{error.name()}); stop the consumers of this group, or give the stream a group of its own",
            group=group,
            partitions=list(partitions),
        )
    # Not asked again here: some may be written by now, and reset by somebody since, which a new look at the group sees.
    return translate(error, f"committing the offsets of group {group} on {where}", found=True)
