"""How large a topic's records are: a few of each partition are looked at before a stream's first batch is planned.

Decides nothing and proves nothing: what it does not learn, the reader's budget keeps. Never joins a group.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from wavestitch.contracts.ports import Probe
from wavestitch.kafka.client_settings import KafkaSettings, consumer_config
from wavestitch.kafka.kafka_errors import is_passing

_RECORDS = 5
_PARTITIONS = 16
_SECONDS = 3.0
_FETCH_BYTES = 1 << 20
"""A batch of the broker's that is larger comes all the same, alone."""


def probe_records(settings: KafkaSettings, topic: str, starts: Mapping[int, int]) -> Probe:
    """Up to five records of each of up to sixteen partitions; fewer where they take too long or may not be read."""
    chosen = sorted(starts)[:: max(1, -(-len(starts) // _PARTITIONS))]
    config = consumer_config(settings, group="wavestitch-probe", isolation="read_committed")
    # Small fetches and a small queue: of a partition that holds gigabytes a few records are wanted.
    consumer = Consumer(
        {
            **config,
            "max.partition.fetch.bytes": _FETCH_BYTES,
            "fetch.max.bytes": max(_FETCH_BYTES, int(config.get("message.max.bytes", _FETCH_BYTES))),
            "queued.max.messages.kbytes": _FETCH_BYTES >> 10,
        }
    )
    sizes: dict[int, list[int]] = {p: [] for p in chosen}
    with suppress(KafkaException):
        consumer.assign([TopicPartition(topic, p, starts[p]) for p in chosen])
        _look(consumer, topic, sizes)
    consumer.close()
    found = [size for some in sizes.values() for size in some]
    return Probe(len(found), sum(found))


def _look(consumer: Any, topic: str, sizes: dict[int, list[int]]) -> None:
    waiting = set(sizes)
    deadline = time.monotonic() + _SECONDS
    while waiting and time.monotonic() < deadline:
        for message in consumer.consume(_RECORDS * len(waiting), 0.2):
            p = message.partition()
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    waiting.discard(p)
                elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED and not is_passing(error):
                    return  # no right to read it, say
                continue
            if p in waiting:
                sizes[p].append(_stored(message))
                if len(sizes[p]) >= _RECORDS:
                    waiting.discard(p)
                    consumer.pause([TopicPartition(topic, p)])


def _stored(message: Any) -> int:
    try:
        headers = message.headers() or ()
    except UnicodeDecodeError:  # a header's name that is no text
        headers = ()
    return (
        len(message.key() or b"")
        + len(message.value() or b"")
        + sum(len(name.encode(errors="replace")) + len(value or b"") for name, value in headers)
    )
