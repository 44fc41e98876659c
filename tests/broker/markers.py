"""Markers without records: transactions that take a partition in, write nothing and end. Runs of any length.

Spoken to the coordinator directly, since no client library ends a transaction in a partition that it did not write to.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from itertools import cycle, islice
from typing import Any

from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.connection import Connection
from wavestitch.kafka.kafka_python import metadata, producer

_BUSY = (14, 15, 16, 51)
"""The coordinator loads, is not there yet, or still ends the producer's last transaction."""
_OF_TRANSACTIONS = 1
_SECONDS = 120
_AT_ONCE = 40


def write_markers(bootstrap: str, topic: str, count: int, *, commit: bool, partition: int = 0) -> None:
    """`count` markers at the end of the partition, one behind the other (others may come in between)."""
    until = time.monotonic() + _SECONDS
    with ExitStack() as open_:
        at = {address: open_.enter_context(_connection(address, until)) for address in bootstrap.split(",")}
        names = [f"{topic}-{n}" for n in range(min(count, _AT_ONCE))]
        homes = [at[_coordinator(next(iter(at.values())), n, until)] for n in names]
        made = [
            _ask(home, lambda n=n: producer.InitProducerIdRequest[1](n, 60_000), until)
            for n, home in zip(names, homes, strict=True)
        ]
        producers = [
            (home, (n, m.producer_id, m.producer_epoch)) for n, m, home in zip(names, made, homes, strict=True)
        ]
        for home, who in islice(cycle(producers), count):
            _ask(home, lambda who=who: _begin(who, topic, partition), until)
            _ask(home, lambda who=who: producer.EndTxnRequest[1](*who, commit), until)


def _connection(address: str, until: float) -> Connection:
    host, _, port = address.rpartition(":")
    return Connection(KafkaSettings(address), host, int(port), deadline=until)


def _coordinator(any_: Connection, name: str, until: float) -> str:
    """Where the transactions of this producer are kept."""
    found = _ask(any_, lambda: metadata.FindCoordinatorRequest[1](key=name, key_type=_OF_TRANSACTIONS), until)
    return f"{found.host}:{found.port}"


def _begin(who: tuple[str, int, int], topic: str, partition: int) -> Any:
    wanted = producer.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[partition])
    return producer.AddPartitionsToTxnRequest[1](
        v3_and_below_transactional_id=who[0],
        v3_and_below_producer_id=who[1],
        v3_and_below_producer_epoch=who[2],
        v3_and_below_topics=[wanted],
    )


def _ask(broker: Connection, request: Any, until: float) -> Any:
    while True:
        answer = broker.ask(request(), deadline=until)
        codes = [getattr(answer, "error_code", 0)]
        for topic in getattr(answer, "results_by_topic_v3_and_below", None) or ():
            codes += [p.partition_error_code for p in topic.results_by_partition]
        if not any(codes):
            return answer
        assert set(codes) <= {0, *_BUSY}, codes
        assert time.monotonic() < until
        time.sleep(0.001)  # between two looks at whether the last transaction has ended
