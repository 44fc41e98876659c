"""What was really produced to a topic, record by record with its offset: the other side of every comparison.

Writes small record batches, so that a fetch of a few records is possible, and keeps of a transaction what became of it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tests.fakes.kept_partition import Record
from wavestitch.contracts.quantities import Offset
from wavestitch.producers.chunking import ChunkRecord

_SECONDS = 60.0
Placed = tuple[ChunkRecord, int]
"""A chunk and the partition that it goes to."""


class Ledger:
    """`records`: all that is committed in the log, in the order of their acknowledgements. `topic_id`: of the topic
    as it is now; set anew where the topic is made anew."""

    def __init__(self, bootstrap: str, topic: str, topic_id: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        self.topic_id = topic_id
        self.records: list[Record] = []

    def send(self, placed: Iterable[Placed], *, timestamp_ms: int = 0) -> None:
        """Send and wait for every acknowledgement."""
        producer = self._producer()
        sent = self._produce(producer, placed, timestamp_ms)
        assert producer.flush(_SECONDS) == 0, "the broker did not acknowledge everything in time"
        self.records += self._settled(sent)

    def open_transaction(self, placed: Iterable[Placed]) -> Transaction:
        """Begin a transaction and flush its records; the caller ends it."""
        producer = self._producer(**{"transactional.id": f"tx-{uuid.uuid4().hex}"})
        producer.init_transactions(_SECONDS)
        producer.begin_transaction()
        sent = self._produce(producer, placed, 0)
        assert producer.flush(_SECONDS) == 0, "the broker did not acknowledge everything in time"
        return Transaction(self, producer, self._settled(sent))

    def _producer(self, **more: Any) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "batch.num.messages": 3,
                "message.timeout.ms": int(_SECONDS * 1000),
                "log_level": 0,
                **({"message.timeout.ms": 30_000} if more else {}),
                **more,
            }
        )

    def _produce(
        self, producer: Producer, placed: Iterable[Placed], timestamp_ms: int
    ) -> list[tuple[ChunkRecord, Any]]:
        sent: list[tuple[ChunkRecord, Any]] = []

        def keep(chunk: ChunkRecord, error: object, message: Message) -> None:
            assert error is None, f"a record was not delivered: {error}"
            sent.append((chunk, message))

        for chunk, partition in placed:
            producer.produce(
                self.topic,
                bytes(chunk.value),
                chunk.key,
                partition=partition,
                headers=list(chunk.headers),
                timestamp=timestamp_ms,
                on_delivery=lambda error, message, chunk=chunk: keep(chunk, error, message),
            )
            producer.poll(0)
        return sent

    def _settled(self, sent: list[tuple[ChunkRecord, Any]]) -> list[Record]:
        taken = {(r.partition, r.offset) for r in self.records} | {(m.partition(), m.offset()) for _, m in sent}
        settled = []
        for c, m in sent:
            # A batch that reached the broker twice is acknowledged without an offset.
            offset = m.offset() if m.offset() is not None else self._find(c, m.partition(), taken)
            settled.append(
                Record(
                    self.topic_id,
                    m.partition(),
                    Offset(offset),
                    m.timestamp()[1],
                    c.key,
                    tuple(c.headers),
                    bytes(c.value),
                )
            )
        return settled

    def _find(self, chunk: ChunkRecord, partition: int, taken: set[tuple[int, int]]) -> int:
        """Where the log has this chunk, at an offset that is nobody else's."""
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "ledger", "isolation.level": "read_uncommitted"}
        )
        try:
            consumer.assign([TopicPartition(self.topic, partition, 0)])
            while (message := consumer.poll(10)) is not None:
                at = (partition, message.offset())
                if message.error() is None and message.value() == bytes(chunk.value) and at not in taken:
                    taken.add(at)
                    return int(message.offset())
        finally:
            consumer.close()
        raise AssertionError(f"a chunk that was acknowledged is not in partition {partition} of {self.topic}")


class Transaction:
    """An open transaction, its records flushed."""

    def __init__(self, ledger: Ledger, producer: Producer, records: list[Record]) -> None:
        self._ledger = ledger
        self._producer = producer
        self._records = records

    def commit(self) -> None:
        self._producer.commit_transaction(_SECONDS)
        self._ledger.records += self._records

    def abort(self) -> None:
        self._producer.abort_transaction(_SECONDS)
