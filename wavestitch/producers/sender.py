"""Sends chunks: in order, once each, and loud about every one that did not arrive.

One idempotent producer sends everything in the given order, so the chunks of a waveform that were chosen the same
partition are one run of offsets there (as far as this producer decides: another one may write in between). Sizes are
checked against the topic before the first record leaves, so that no half waveform is left behind by a limit that
could have been known. Progress and results count acknowledged records only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding
from wavestitch.kafka.admin import Admin
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.clients import open_producer
from wavestitch.kafka.kafka_errors import PRODUCER_RIGHTS, kafka_error
from wavestitch.producers.chunking import ChunkRecord
from wavestitch.producers.partitioning import Strategy, choose_partitions
from wavestitch.producers.record_size import batch_bytes
from wavestitch.producers.send_report import Deliveries, SendReport

_QUEUE_KBYTES = 64 << 10
_BATCH_BYTES = 1_000_000
_POLL_SECONDS = 0.1
_GRACE_SECONDS = 2.0

Progress = Callable[[int, int], None]
"""Called with the acknowledged records and bytes so far."""


def send_chunks(
    chunks: Sequence[ChunkRecord],
    *,
    topic: str,
    settings: KafkaSettings,
    strategy: Strategy = Strategy.WAVEFORM_STICKY,
    timestamp_ms: int | Callable[[ChunkRecord], int] | None = None,
    deadline_seconds: float = 60.0,
    max_message_bytes: int | None = None,
    tuning: Mapping[str, Any] | None = None,
    ids: IdBinding = ANYWHERE,
    on_progress: Progress | None = None,
) -> SendReport:
    """Send `chunks` to `topic` in this order; returns when the broker has acknowledged every one.

    `timestamp_ms` is the record time, one for all or one per chunk, in ms since 1970; without it the records are
    stamped now. `deadline_seconds` is how long a record may wait for its acknowledgement. `max_message_bytes` replaces
    the question for the topic's `max.message.bytes`, for producers that may not ask. `tuning`: how the client fills
    its requests (`linger.ms`, …). `ids`: where the stream lets an id go.

    Raises `BadInput` or `Refused` before anything is sent (settings, topic, a chunk that is too large, a key that does
    not fit the strategy), and after that `Terminal` or `Transient`, with how many records failed in which partition and
    why.
    """
    if not 1 <= deadline_seconds <= 86_400:
        raise BadInput(f"the deadline is {deadline_seconds:g} s; allowed are 1 s to one day")
    admin = Admin(settings, deadline=deadline_seconds, nobody=deadline_seconds, rights=PRODUCER_RIGHTS)
    partitions = admin.partitions(topic)
    most = admin.max_message_bytes(topic) if max_message_bytes is None else max_message_bytes
    _check_sizes(chunks, topic=topic, most=most)
    placed = list(choose_partitions(strategy, chunks, partitions=partitions, ids=ids))
    stamps = [_stamp(timestamp_ms, chunk) for chunk in chunks]
    deliveries = Deliveries(topic)
    producer = open_producer(
        settings, own=_own(chunks, most, deadline_seconds), tuning=tuning, on_error=deliveries.note_client_error
    )
    try:
        _send(
            producer, placed, stamps, deliveries=deliveries, deadline_seconds=deadline_seconds, on_progress=on_progress
        )
    finally:
        # Nothing goes on being sent behind the caller's back once this function has ended.
        if len(producer):
            producer.purge()
    if deliveries.failed:
        raise deliveries.error(planned=len(chunks))
    return deliveries.report(waveforms=len({chunk.waveform_id for chunk in chunks}))


def _check_sizes(chunks: Sequence[ChunkRecord], *, topic: str, most: int) -> None:
    for chunk in chunks:
        size = batch_bytes(chunk)
        if size > most:
            raise BadInput(
                f"a chunk of {chunk.waveform_id} takes {size} bytes with its headers ({len(chunk.value)} of samples), "
                f"topic {topic} allows {most} (max.message.bytes): cut chunks of at most "
                f"{max(most - (size - len(chunk.value)), 0)} bytes, or raise the topic's limit",
                topic=topic,
                waveform_id=chunk.waveform_id,
                bytes=size,
                allowed=most,
            )


def _stamp(timestamp_ms: int | Callable[[ChunkRecord], int] | None, chunk: ChunkRecord) -> int:
    """0 means now to the client; an explicit time must not turn into that."""
    if timestamp_ms is None:
        return 0
    stamp = timestamp_ms(chunk) if callable(timestamp_ms) else timestamp_ms
    if stamp <= 0:
        raise BadInput(f"the record time of {chunk.waveform_id} is {stamp} ms; it must be after 1970")
    return stamp


def _own(chunks: Sequence[ChunkRecord], most: int, deadline_seconds: float) -> dict[str, Any]:
    """What the sender decides itself, because its promises rest on it."""
    largest = max((batch_bytes(c) for c in chunks), default=0)
    return {
        "linger.ms": 20,
        "log_level": 3,  # a failure comes back with its record; until then the client only chats
        "batch.size": min(_BATCH_BYTES, most),
        # The queue must have room for the largest record: one that never fits would wait for ever.
        "queue.buffering.max.kbytes": max(_QUEUE_KBYTES, 2 * largest >> 10),
        "message.max.bytes": min(max(most, 1000), 1_000_000_000),
        "message.timeout.ms": round(deadline_seconds * 1000),
    }


def _send(
    producer: Any,
    placed: Sequence[tuple[ChunkRecord, int | None]],
    stamps: Sequence[int],
    *,
    deliveries: Deliveries,
    deadline_seconds: float,
    on_progress: Progress | None,
) -> None:
    """Hand over everything up to the first failure, then wait until all that was handed over has its answer."""
    seen = 0
    for (chunk, partition), stamp in zip(placed, stamps, strict=True):
        _enqueue(producer, chunk, partition, stamp, deliveries)
        producer.poll(0)
        if deliveries.failed:
            break
        seen = _tell(on_progress, deliveries, seen)
    # The client gives up on every record by itself; the grace is for its doing so.
    until = time.monotonic() + deadline_seconds + _GRACE_SECONDS
    try:
        while (waiting := producer.flush(_POLL_SECONDS)) and time.monotonic() < until:
            seen = _tell(on_progress, deliveries, seen)
    except KafkaException as error:
        # The producer itself has ended, e.g. for want of the right to write; what it still held goes nowhere.
        deliveries.note_failure(kafka_error(error), partition=-1, records=max(1, len(producer)))
    else:
        if waiting:
            deliveries.note_unanswered(waiting)
    _tell(on_progress, deliveries, seen)


def _enqueue(producer: Any, chunk: ChunkRecord, partition: int | None, stamp: int, deliveries: Deliveries) -> None:
    """Hand one record to the client; waits while its queue is full, which the deadline of what is in it bounds."""
    value = bytes(chunk.value)
    while not deliveries.failed:
        try:
            producer.produce(
                deliveries.topic,
                value=value,
                key=chunk.key,
                partition=-1 if partition is None else partition,
                on_delivery=deliveries.note,
                timestamp=stamp,
                headers=list(chunk.headers),
            )
        except BufferError:
            producer.poll(_POLL_SECONDS)
        except KafkaException as error:
            deliveries.note_failure(kafka_error(error), partition=-1 if partition is None else partition)
        else:
            return


def _tell(on_progress: Progress | None, deliveries: Deliveries, seen: int) -> int:
    if on_progress is not None and deliveries.records > seen:
        on_progress(deliveries.records, deliveries.bytes)
    return deliveries.records
