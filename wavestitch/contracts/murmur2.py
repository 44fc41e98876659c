"""Murmur2 as Kafka's Java client computes it: where a keyed record goes when nobody chooses its partition. Pure."""

from __future__ import annotations

_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash as Java shows it: a signed 32-bit number."""
    h = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        k = (k ^ k >> 24) * _MULTIPLIER & _MASK
        h = h * _MULTIPLIER & _MASK ^ k
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    h = (h ^ h >> 13) * _MULTIPLIER & _MASK
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


def key_partition(key: bytes, partitions: int) -> int:
    """The partition that Java's default partitioner gives `key`: the sign bit is dropped, not negated."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
