"""How large a record is on its way to the broker: the number that a topic's `max.message.bytes` is compared with.

Kafka's limit is on a record *batch*, headers included, and the smallest batch holds one record. Pure; an upper bound
by at most a few dozen bytes, and by more only where the client compresses.
"""

from __future__ import annotations

from wavestitch.producers.chunking import ChunkRecord

BATCH_OVERHEAD = 61
"""Bytes of a v2 record batch before its first record."""
RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 5
"""At most: length, attributes, timestamp and offset deltas, key length, value length, number of headers."""
HEADER_OVERHEAD = 10
"""At most: length of a header's name and of its value."""


def batch_bytes(record: ChunkRecord) -> int:
    """At most this many bytes take the batch that holds only `record`, uncompressed."""
    headers = sum(len(name.encode()) + len(value) + HEADER_OVERHEAD for name, value in record.headers)
    return BATCH_OVERHEAD + RECORD_OVERHEAD + len(record.key or b"") + len(record.value) + headers
