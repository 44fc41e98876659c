"""What planning and projecting see of a real broker: every partition answered for, or an error that says why (I8)."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from consumers.log_view import KafkaLog
from tests.broker.reading_rig import Sender, delete_before
from tests.product_logins import as_product
from wavestitch.contracts.errors import Refused, Transient
from wavestitch.contracts.ports import Log, PartitionEnds, Probe
from wavestitch.contracts.position import Position, Tag, parse_tag
from wavestitch.contracts.quantities import EpochMs, Generation, LeaderEpoch, Offset, Partition, epoch_ms
from wavestitch.contracts.raw_headers import header_bytes
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.raw_log import RawLog
from wavestitch.local.broker import Broker, run_kafka_tool

START_MS = 1_700_000_000_000
TAG = Tag("0f8fad5b-d9cb-469f-a165-70867728950e", Generation(3), 14).encode()


@pytest.fixture(scope="module")
def log(broker: Broker) -> Log:
    return KafkaLog(as_product(broker.bootstrap))


@pytest.fixture
def group() -> str:
    return f"g-{uuid.uuid4().hex[:8]}"


@contextmanager
def member(bootstrap: str, group: str, topic: str, protocol: str) -> Iterator[None]:
    """A live consumer of the group, of either rebalance protocol."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, "client.id": "ada"}
    )
    consumer.subscribe([topic])
    deadline = time.monotonic() + 30
    try:
        while not consumer.assignment():
            consumer.poll(0.1)
            assert time.monotonic() < deadline, "the member did not join"
        yield
    finally:
        consumer.close()


# --- the topic


def test_a_topic_is_seen_as_it_is(log: Log, topic_factory: Any) -> None:
    name = topic_factory(partitions=3, configs={"max.message.bytes": "2000000"})
    view = log.topic(name)
    assert (view.name, view.partitions, view.compacted, view.max_message_bytes) == (name, (0, 1, 2), False, 2_000_000)
    assert len(view.topic_id) == 22
    assert log.topic(name) == view


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_is_seen_as_compacted(log: Log, topic_factory: Any, policy: str) -> None:
    assert log.topic(topic_factory(configs={"cleanup.policy": policy})).compacted


def test_a_missing_topic_is_refused_with_what_to_do(log: Log) -> None:
    with pytest.raises(Refused, match=r"topic no-such does not exist at 127.*; create it, or correct"):
        log.topic("no-such")


def test_a_broker_that_does_not_answer_is_a_transient_error_within_the_deadline() -> None:
    began = time.monotonic()
    with pytest.raises(Transient, match=r"127\.0\.0\.1:1.*is the broker up and within reach") as away:
        KafkaLog(KafkaSettings("127.0.0.1:1"), deadline=1).topic("t")
    assert "Connection refused" in away.value.message or "Connect to" in away.value.message
    assert time.monotonic() - began < 8


# --- ends


def test_ends_of_empty_filled_and_shortened_partitions(log: Log, broker: Broker, topic_factory: Any) -> None:
    topic = topic_factory(partitions=3)
    sender = Sender(broker.bootstrap, topic)
    sender.send(10, partition=1)
    sender.send(10, partition=2)
    delete_before(broker.bootstrap, topic, 4, partition=2)
    assert log.ends(topic, [Partition(0), Partition(1), Partition(2)]) == {
        0: PartitionEnds(Offset(0), Offset(0), Offset(0), LeaderEpoch(0)),
        1: PartitionEnds(Offset(0), Offset(10), Offset(10), LeaderEpoch(0)),
        2: PartitionEnds(Offset(4), Offset(10), Offset(10), LeaderEpoch(0)),
    }


def test_an_open_transaction_parts_the_stable_end_from_the_high_watermark(
    log: Log, broker: Broker, topic_factory: Any
) -> None:
    topic = topic_factory()
    Sender(broker.bootstrap, topic).send(5)
    hanging = Sender(broker.bootstrap, topic, transactional=True)
    hanging.begin()
    hanging.send(3)
    assert log.ends(topic, [Partition(0)]) == {0: PartitionEnds(Offset(0), Offset(5), Offset(8), LeaderEpoch(0))}


def test_a_partition_that_is_not_there_is_an_error_and_not_left_out(broker: Broker, topic_factory: Any) -> None:
    topic, log = topic_factory(), KafkaLog(as_product(broker.bootstrap), deadline=5)
    with pytest.raises(Transient, match=f"{topic} partition 7"):
        log.ends(topic, [Partition(0), Partition(7)])
    with pytest.raises(Transient, match=f"{topic} partition 7"):
        log.offsets_at(topic, {Partition(0): EpochMs(0), Partition(7): EpochMs(0)})


def test_asking_for_no_partition_is_answered_with_none(log: Log, topic_factory: Any, group: str) -> None:
    topic = topic_factory()
    assert log.ends(topic, []) == {}
    assert log.offsets_at(topic, {}) == {}
    assert log.group_offsets(group, topic, []) == {}
    log.commit_group(group, topic, {}, TAG)


# --- times


def test_a_time_gives_the_first_record_at_or_after_it_and_the_stable_end_where_none_is(
    log: Log, broker: Broker, topic_factory: Any
) -> None:
    topic = topic_factory(partitions=2)
    sender = Sender(broker.bootstrap, topic)
    stamps = [1_700_000_000_000 + 10 * n for n in (0, 1, 1, 4, 9)]
    for stamp in stamps:
        sender.send(1, timestamp=stamp)
    for asked in (0, *(s + d for s in stamps for d in (-1, 0, 1)), stamps[-1] + 10_000_000):
        expected = next((i for i, s in enumerate(stamps) if s >= asked), len(stamps))
        assert log.offsets_at(topic, {Partition(0): EpochMs(asked), Partition(1): EpochMs(asked)}) == {
            0: expected,
            1: 0,
        }, asked


def test_a_time_after_everything_gives_the_stable_end_before_an_open_transaction(
    log: Log, broker: Broker, topic_factory: Any
) -> None:
    topic = topic_factory()
    Sender(broker.bootstrap, topic).send(5, timestamp=1000)
    hanging = Sender(broker.bootstrap, topic, transactional=True)
    hanging.begin()
    hanging.send(3, timestamp=5000)
    assert log.offsets_at(topic, {Partition(0): EpochMs(2000)}) == {0: 5}
    assert log.offsets_at(topic, {Partition(0): EpochMs(500)}) == {0: 0}


# --- the group


def test_a_group_that_never_was_has_no_members_and_no_offsets(log: Log, topic_factory: Any, group: str) -> None:
    topic = topic_factory(partitions=2)
    assert log.members(group) == []
    assert log.group_offsets(group, topic, [Partition(0), Partition(1)]) == {0: None, 1: None}


def test_offsets_come_back_with_their_tag(log: Log, topic_factory: Any, group: str) -> None:
    topic = topic_factory(partitions=12)
    positions = {p: Position(Offset(p * 7), None, LeaderEpoch(0) if p % 2 else None) for p in map(Partition, range(12))}
    log.commit_group(group, topic, positions, TAG)
    found = log.group_offsets(group, topic, list(positions))
    assert {p: (o.offset, o.metadata) for p, o in found.items() if o} == {p: (p * 7, TAG) for p in range(12)}
    assert log.members(group) == []


def test_an_offset_that_expired_reads_as_none_beside_one_that_did_not(
    log: Log, broker: Broker, topic_factory: Any, group: str, java_home: Path, kafka_jars: Path
) -> None:
    topic = topic_factory(partitions=2)
    log.commit_group(group, topic, {Partition(0): Position(Offset(5)), Partition(1): Position(Offset(6))}, TAG)
    argv = ["--bootstrap-server", broker.bootstrap, "--group", group, "--topic", f"{topic}:1"]
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    run_kafka_tool(java_home, kafka_jars, tool, [*argv, "--delete-offsets"])  # what expiry does, at once
    first, second = log.group_offsets(group, topic, [Partition(0), Partition(1)]).values()
    assert (first and first.offset, second) == (5, None)


def test_a_reset_by_kafkas_own_tool_takes_our_tag_away(
    log: Log, broker: Broker, topic_factory: Any, group: str, java_home: Path, kafka_jars: Path
) -> None:
    topic = topic_factory(partitions=2)
    Sender(broker.bootstrap, topic).send(9)
    log.commit_group(group, topic, {Partition(0): Position(Offset(9)), Partition(1): Position(Offset(0))}, TAG)
    argv = ["--bootstrap-server", broker.bootstrap, "--group", group, "--topic", f"{topic}:0"]
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    run_kafka_tool(java_home, kafka_jars, tool, [*argv, "--reset-offsets", "--to-earliest", "--execute"])
    found = log.group_offsets(group, topic, [Partition(0), Partition(1)])
    assert found[Partition(0)] is not None
    assert (found[Partition(0)].offset, parse_tag(found[Partition(0)].metadata)) == (0, None)
    assert found[Partition(1)] is not None
    assert found[Partition(1)].metadata == TAG


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_live_member_is_seen_and_keeps_us_from_committing(
    log: Log, broker: Broker, topic_factory: Any, group: str, protocol: str
) -> None:
    topic = topic_factory()
    with member(broker.bootstrap, group, topic, protocol):
        assert log.members(group) == ["ada at 127.0.0.1"]
        with pytest.raises(Refused, match=f"group {group} has live members.*stop the consumers of this group"):
            log.commit_group(group, topic, {Partition(0): Position(Offset(1))}, TAG)
    assert log.members(group) == []
    log.commit_group(group, topic, {Partition(0): Position(Offset(1))}, TAG)


def test_an_offset_in_a_pending_transaction_is_an_error_and_not_none(
    broker: Broker, topic_factory: Any, group: str
) -> None:
    topic, log = topic_factory(), KafkaLog(as_product(broker.bootstrap), deadline=5)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": group})
    producer.init_transactions(30)
    producer.begin_transaction()
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    at = [TopicPartition(topic, 0, 4)]
    producer.send_offsets_to_transaction(at, consumer.consumer_group_metadata(), 30)
    with pytest.raises(Transient, match=f"fetching the offsets of group {group} on topic {topic}"):
        log.group_offsets(group, topic, [Partition(0)])
    producer.abort_transaction(30)
    consumer.close()


def test_committing_for_a_partition_that_is_not_there_is_raised(log: Log, topic_factory: Any, group: str) -> None:
    topic = topic_factory()
    with pytest.raises(Transient, match=rf"topic {topic} partitions .*\b5 failed"):
        log.commit_group(group, topic, {Partition(0): Position(Offset(1)), Partition(5): Position(Offset(1))}, TAG)


def test_a_probe_tells_what_a_few_records_of_each_partition_take(broker: Broker, topic_factory: Any) -> None:
    topic = topic_factory(partitions=3)
    sender = Sender(broker.bootstrap, topic)
    for n in range(8):
        sender.record(bytes(1000 + n), key=b"key", headers=[("ws-id", b"w"), ("ws-seq", b"0")], partition=1)
    sender.record(bytes(50), key=None, headers=[], partition=2)
    sender.flush()
    log = KafkaLog(as_product(broker.bootstrap))
    one = len(b"key") + header_bytes([("ws-id", b"w"), ("ws-seq", b"0")])
    before = epoch_ms(time.time_ns())
    found = log.probe(topic, {Partition(0): Offset(0), Partition(1): Offset(2), Partition(2): Offset(0)})
    assert (found.records, found.bytes) == (6, sum(1000 + n + one for n in range(2, 7)) + 50)
    assert found.times.keys() == {1, 2}
    assert all(before - 60_000 < at <= before for at in found.times.values())
    assert log.probe(topic, {}) == Probe(0, 0)


def test_the_record_batch_that_holds_an_offset_is_known_again_by_its_bytes(broker: Broker, topic_factory: Any) -> None:
    """One request for small and large ones; a marker is a batch, too, and what is not there is none."""
    topic = topic_factory(partitions=5, configs={"max.message.bytes": str(4 << 20)})
    small = Sender(broker.bootstrap, topic)
    for _ in range(3):
        small.send(2)
    for p in (1, 2):
        Sender(broker.bootstrap, topic, value_bytes=700_000).send(2, partition=p)
    Sender(broker.bootstrap, topic, transactional=True).commit(1, partition=3)
    log = KafkaLog(as_product(broker.bootstrap))
    wanted = {Partition(p): Offset(at) for p, at in ((0, 3), (1, 1), (2, 0), (3, 1))}
    found = log.batches_at(topic, wanted)
    assert found.keys() == wanted.keys()
    assert len({batch.digest for batch in found.values() if batch is not None and batch.leader_epoch == 0}) == 4
    small.send(2)
    delete_before(broker.bootstrap, topic, 3)
    assert log.batches_at(topic, wanted) == found
    others = {Partition(p): Offset(at) for p, at in ((0, 7), (3, 0))}
    again = log.batches_at(topic, others)
    assert not set(again.values()) & set(found.values())
    assert log.batches_at(topic, {Partition(0): Offset(2)}) == {0: None}
    with pytest.raises(Transient):
        KafkaLog(as_product(broker.bootstrap), deadline=0.7).batches_at(topic, {Partition(4): Offset(0)})


def test_the_time_of_what_lies_at_an_offset_or_next_is_that_of_the_newest_of_its_record_batch(
    broker: Broker, topic_factory: Any
) -> None:
    topic = topic_factory(partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 10_000})
    producer.list_topics(topic)  # what is sent before a partition is known waits elsewhere, and goes apart
    for ms in (9_000, 5_000):  # both in one record batch
        producer.produce(topic, b"any", b"w", partition=0, timestamp=START_MS + ms)
    assert producer.flush(30) == 0
    Sender(broker.bootstrap, topic).send(1, timestamp=START_MS + 7_000)
    log = KafkaLog(as_product(broker.bootstrap))

    def since_start(offset: int) -> int | None:
        (ms,) = log.times_at(topic, {Partition(0): Offset(offset)}).values()
        return None if ms is None else ms - START_MS

    assert [since_start(at) for at in (0, 1, 2)] == [9_000, 9_000, 7_000]
    with pytest.raises(Transient):
        KafkaLog(as_product(broker.bootstrap), deadline=0.7).times_at(topic, {Partition(1): Offset(0)})
    delete_before(broker.bootstrap, topic, 2)
    assert since_start(2) == 7_000
    assert since_start(1) is None
    assert log.times_at(topic, {}) == {}


def test_batches_in_front_of_many_positions_cost_little_more_than_they_have(broker: Broker, topic_factory: Any) -> None:
    """Whatever lies behind them, which a broker sends as far as it may."""

    class Counting(RawLog):
        sent = 0

        def _ask_for(self, *what: Any, **how: Any) -> Any:
            answer = super()._ask_for(*what, **how)
            self.sent += sum(len(part.records or b"") for part in answer.responses[0].partitions)
            return answer

    topic = topic_factory(partitions=6, configs={"max.message.bytes": str(4 << 20)})
    for p in range(6):
        sender = Sender(broker.bootstrap, topic, value_bytes=140_000)
        for _ in range(8):
            sender.send(1, partition=p)
    with Counting(as_product(broker.bootstrap), topic) as log:
        found = log.batches_at({Partition(p): Offset(0) for p in range(6)})
    assert all(batch is not None for batch in found.values())
    assert log.sent <= 6 * 2 * 141_000
