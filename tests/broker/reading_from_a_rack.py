"""Of a topic whose leader is elsewhere a reader takes its records from the replica in its own rack (`client.rack`).

By `make test-cluster`: one broker has no rack to choose from.
"""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker.reading_rig import LARGE, SMALL, Rig, payloads
from tests.login_cluster import RACK
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.kafka.client_settings import consumer_config
from wavestitch.kafka.raw_log import RawLog


def test_records_come_from_the_replica_in_the_reader_s_rack_whoever_leads(rig: Rig, topic_factory: Any) -> None:
    topic, here = topic_factory(partitions=3), int(RACK.removeprefix("rack-"))
    found = AdminClient({"bootstrap.servers": rig.bootstrap}).list_topics(topic, timeout=10).topics[topic]
    away = next(p for p, led in found.partitions.items() if led.leader != here)
    sent = rig.sender(topic, value_bytes=10_000).send(300, partition=away)
    for mean in (LARGE, SMALL):
        assert payloads(rig.read(rig.plan(topic, [[(away, 0, 300)]], mean=mean))) == sent
    assert fetched_from(rig, topic, away) == here
    assert raw_fetched_from(rig, topic, away) == here


def raw_fetched_from(rig: Rig, topic: str, partition: int) -> int:
    """The broker from which raw batches of a partition are taken."""
    with RawLog(rig.kafka, topic, rack=RACK) as raw:
        assert raw.fetch(Partition(partition), Offset(0), most_bytes=1 << 20).batches
        ((replica, at),) = raw._replicas.items()
        assert replica == partition
        return next(node for node, address in raw._brokers.items() if address == at)


def fetched_from(rig: Rig, topic: str, partition: int) -> int:
    """The broker from which a client that is set up as a reader's takes a partition, as it says itself."""
    said: list[int] = []

    def listen(statistics: str) -> None:
        said.append(json.loads(statistics)["topics"][topic]["partitions"][str(partition)]["broker"])

    config = consumer_config(rig.kafka, group="looks-only", isolation="read_committed")
    consumer = Consumer({**config, "statistics.interval.ms": 100, "stats_cb": listen})
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        for _ in range(300):
            consumer.consume(100, 0.1)
            if said and said[-1] == int(RACK.removeprefix("rack-")):
                break
        return said[-1]
    finally:
        consumer.close()
