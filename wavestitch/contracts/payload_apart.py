"""Landed payload that lies apart, in an object store: where, under which names, and how a landing file says so. Pure.

A landing file whose payload is apart is as long as any other, with a hole where the bytes would be; each of its record
batches names the objects that have them, one behind the other. A name is the digest of its object's bytes: two who
write one write the same, and nobody makes other bytes for it (I3, I6).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

PIECE_BYTES = 8 << 20
"""Of an object, at most. So much goes by one request, which a store takes whole or not at all; more would be put
together of parts, and a process that is killed would leave those where no listing shows them."""
_KEY = b"wavestitch.payload"
_NAME = re.compile(r"payload-[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class PayloadPlace:
    """`place`: `s3://BUCKET/PREFIX`. `properties`: of the store, as the settings say them: a login by reference.
    `connect_timeout`, `answer_timeout`: seconds, of each of the `attempts` at a request."""

    place: str
    properties: dict[str, str]
    connect_timeout: float
    answer_timeout: float
    attempts: int


def cut_payload(data: memoryview) -> Iterator[memoryview]:
    """The payload of a record batch, as objects have it."""
    for begin in range(0, len(data), PIECE_BYTES):
        yield data[begin : begin + PIECE_BYTES]


def name_payload(piece: bytes | memoryview) -> str:
    return f"payload-{hashlib.sha256(piece).hexdigest()[:32]}"


def is_payload_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def say_apart(names: list[str]) -> dict[bytes, bytes]:
    """What a record batch says of where its payload lies."""
    return {_KEY: ",".join(names).encode()}


def read_apart(said: Mapping[bytes, bytes] | None, payload_bytes: int) -> list[tuple[str, int]]:
    """The objects of a record batch with so much payload, and how long each is; none where it has its payload itself.

    Raises `ValueError` where that is not what a reader wrote.
    """
    if not said or _KEY not in said:
        return []
    names = said[_KEY].decode("ascii", "replace").split(",")
    sizes = [len(piece) for piece in _spans(payload_bytes)]
    if len(names) != len(sizes) or not all(map(is_payload_name, names)):
        raise ValueError(f"it names {len(names)} objects for {payload_bytes} bytes of payload")
    return list(zip(names, sizes, strict=True))


def _spans(payload_bytes: int) -> Iterator[range]:
    for begin in range(0, payload_bytes, PIECE_BYTES):
        yield range(begin, min(begin + PIECE_BYTES, payload_bytes))
