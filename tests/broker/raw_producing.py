"""Record batches made byte by byte, as no client library makes them, and produced over the product's connection."""

from __future__ import annotations

import struct
import time
from typing import Any

import pyarrow as pa
from kafka.protocol.producer import ProduceRequest
from kafka.record.util import calc_crc32c

from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.connection import Connection

ZSTD = 4
NOT_LEADER_OR_FOLLOWER = 6


def zigzag(number: int) -> bytes:
    """A number of 64 bits, as records write theirs."""
    left = ((number << 1) ^ (number >> 63)) & ((1 << 64) - 1)
    out = bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    out.append(left)
    return bytes(out)


def record(
    delta: int,
    value: bytes | None,
    *,
    since: int = 0,
    key: bytes | None = None,
    headers: bytes = b"",
    count: int = 0,
) -> bytes:
    """One record. `delta`, `since`: offset and time behind the batch's first. `headers`: `count` of them, encoded."""
    body = b"\0" + zigzag(since) + zigzag(delta) + part(key) + part(value) + zigzag(count) + headers
    return zigzag(len(body)) + body


def part(content: bytes | None) -> bytes:
    """A key, a value, or what a header is made of."""
    return zigzag(-1) if content is None else zigzag(len(content)) + content


def zstd(body: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(body, asbytes=True))


def batch_of(body: bytes, records: int, *, codec: int = ZSTD, first: int | None = None) -> bytes:
    """A batch of format 2 with this (compressed) body. `first`: ms, of its first and of its newest record."""
    now = int(time.time() * 1000) if first is None else first
    tail = struct.pack(">hiqqqhii", codec, records - 1, now, now, -1, -1, -1, records) + body
    data = struct.pack(">iB", -1, 2) + struct.pack(">I", calc_crc32c(tail)) + tail
    return struct.pack(">qi", 0, len(data)) + data


def produce(bootstrap: str, topic: str, batch: bytes) -> int:
    """Where the broker put it on partition 0."""
    host, _, port = bootstrap.rpartition(":")
    until = time.monotonic() + 60
    with Connection(KafkaSettings(bootstrap), host, int(port), deadline=until) as connection:
        data = ProduceRequest.TopicProduceData
        part = data.PartitionProduceData(index=0, records=batch)
        request = ProduceRequest[8](
            transactional_id=None, acks=-1, timeout_ms=50_000, topic_data=[data(name=topic, partition_data=[part])]
        )
        answer = _answer(connection, request, until)
        while answer.error_code == NOT_LEADER_OR_FOLLOWER and time.monotonic() < until:
            time.sleep(0.02)  # between two looks at whether the broker leads a topic that was made a moment ago
            answer = _answer(connection, request, until)  # nothing was written by the one before
    assert answer.error_code == 0, answer
    return int(answer.base_offset)


def _answer(connection: Connection, request: Any, until: float) -> Any:
    return connection.ask(request, deadline=until).responses[0].partition_responses[0]
