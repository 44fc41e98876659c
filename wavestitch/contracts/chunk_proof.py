"""Proof against people: what a stream may ask of its chunks beside the CRC, and how it is made and compared.

`sha256` is a digest: it finds every accident, and nobody can make other bytes for a digest that was written down. `mac`
is keyed (HMAC-SHA-256): it also says that whoever sent the chunk has the stream's key. Never decides what becomes of a
chunk that fails. Keeps I3. Pure: the key is handed in.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

ProofKind = Literal["none", "sha256", "mac"]
H_SHA256, H_MAC = "ws-sha256", "ws-mac"
_HEADERS: dict[ProofKind, str | None] = {"none": None, "sha256": H_SHA256, "mac": H_MAC}
STRENGTH: dict[str, int] = {"none": 0, "sha256": 1, "mac": 2}
LEAST_KEY_BYTES = 16
MOST_KEY_BYTES = 4096


class Bound(NamedTuple):
    """What is said about a value, as it stands in the record: CRC and proof bind all of it. Empty: not said."""

    waveform_id: bytes
    seq: bytes
    count: bytes  # type: ignore[assignment]  # shadows tuple.count, which nobody calls on it
    meta: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class ChunkProof:
    """What every chunk of a stream must carry. `topic`: its name is bound: a chunk proves nothing in another topic."""

    kind: ProofKind = "none"
    key: bytes = field(default=b"", repr=False)
    topic: str = ""

    def __post_init__(self) -> None:
        if self.kind == "mac" and not LEAST_KEY_BYTES <= len(self.key) <= MOST_KEY_BYTES:
            raise ValueError(f"the key has {len(self.key)} bytes; allowed are {LEAST_KEY_BYTES} to {MOST_KEY_BYTES}")

    @property
    def header(self) -> str | None:
        """The header that carries it."""
        return _HEADERS[self.kind]

    def of(self, bound: Bound, value: bytes | bytearray | memoryview) -> bytes:
        """The header's value, 64 hex digits: over the topic and what the CRC covers, and before it
        how long these parts are.

        Without the lengths an id with zero bytes in it could take over what belongs to the next part.
        """
        said = (self.topic.encode(), *bound)
        begin = b"%d %d %d %d %d %d\n" % tuple(map(len, said)) + b"%b\0%b\0%b\0%b\0%b\0%b\0" % said
        if self.kind == "mac":
            keyed = hmac.new(self.key, begin, hashlib.sha256)
            keyed.update(value)
            return keyed.hexdigest().encode()
        plain = hashlib.sha256(begin)
        plain.update(value)
        return plain.hexdigest().encode()


NO_PROOF = ChunkProof()


def meets(proof: ProofKind, asked: ProofKind) -> bool:
    """Whether a chunk that met one is as good as one that met the other."""
    return STRENGTH[proof] >= STRENGTH[asked]


def same(one: bytes, other: bytes) -> bool:
    """In a time that says nothing about where they differ."""
    return hmac.compare_digest(one, other)
