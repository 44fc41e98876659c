"""What must come out, worked out in plain Python from the records that were produced. Shares no code with the product.

Reads the headers by itself, as `docs/chunk-contract.md` has them, and looks at the whole multiset of records at once:
it knows nothing of batches, offsets or order.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

import xxhash

WIDTH = {"i16le": 2, "i32le": 4, "i64le": 8, "f32le": 4, "f64le": 8}
WEEK_MS = 7 * 86400 * 1000


class Sent(Protocol):
    """A record as it was produced."""

    @property
    def timestamp_ms(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...
    @property
    def value(self) -> bytes | None: ...


class Piece(NamedTuple):
    """A record that is a valid chunk."""

    id: str
    seq: int
    count: int | None  # type: ignore[assignment]
    meta: bytes
    digest: str | None
    value: bytes
    time_ms: int

    @property
    def proof(self) -> bytes:
        """What the tables keep of its metadata and bytes."""
        return hashlib.sha256(hashlib.sha256(self.meta).digest() + self.value).digest()

    @property
    def start_ns(self) -> int:
        return int(json.loads(self.meta)["start_time_ns"])

    @property
    def same(self) -> tuple[str, int, int, bytes]:
        """Equal for two copies of one chunk."""
        return self.id, self.seq, len(self.value), self.proof


@lru_cache(maxsize=8192)
def piece_of(sent: Sent) -> Piece | None:
    """The chunk that a record is, or None where it breaks the contract."""
    try:
        return _piece(sent)
    except (KeyError, ValueError, TypeError, AttributeError, AssertionError):
        return None


def size_of(sent: Sent) -> int:
    """Of a record that is no chunk, what is kept of it: key, value, and two lengths of four bytes for each header."""
    headers = sum(8 + len(name.encode()) + len(value or b"") for name, value in sent.headers)
    return len(sent.key or b"") + headers + len(sent.value or b"")


def digest_of(sent: Sent) -> bytes:
    """What is said of a record that is no chunk: key, value, then each header's name and value, with their lengths."""
    parts = [sent.key, sent.value]
    for name, value in sent.headers:
        parts += [name.encode(), value]
    said = b"".join(b"-" if part is None else str(len(part)).encode() + b":" + part for part in parts)
    return hashlib.sha256(said).digest()


def _piece(sent: Sent) -> Piece:
    names = [n for n, _ in sent.headers if n.startswith("ws-")]
    assert len(names) == len(set(names))
    h = {n: v for n, v in sent.headers if n.startswith("ws-") and v is not None}
    assert h["ws-version"] == b"2"
    assert sent.value
    raw_id = sent.key if sent.key is not None else h["ws-id"]
    assert h.get("ws-id", raw_id) == raw_id
    assert 1 <= len(raw_id) <= 256
    seq, count = _number(h["ws-seq"]), _number(h["ws-count"]) if "ws-count" in h else None
    assert count is None or seq < count
    said = (raw_id, h["ws-seq"], h.get("ws-count", b""), h["ws-meta"], h.get("ws-digest", b""))
    crc = zlib.crc32(b"\0".join((*said, sent.value)))
    assert h["ws-crc"] == f"{crc:08x}".encode()
    meta = json.loads(h["ws-meta"])
    assert len(sent.value) % WIDTH[meta["sample_format"]] == 0
    assert isinstance(meta["start_time_ns"], int)
    digest = h["ws-digest"].decode() if "ws-digest" in h else None
    return Piece(raw_id.decode(), seq, count, h["ws-meta"], digest, sent.value, sent.timestamp_ms)


def _number(raw: bytes) -> int:
    assert raw == str(int(raw)).encode()
    return int(raw)


@dataclass(frozen=True)
class Truth:
    """All chunks of one waveform that were ever produced."""

    pieces: tuple[Piece, ...]

    @property
    def contradicts_itself(self) -> bool:
        """Whether two of its chunks cannot both be right: then neither, or the first that was whole, is published."""
        by_seq: dict[int, bytes] = {}
        values_differ = any(by_seq.setdefault(p.seq, p.value) != p.value for p in self.pieces)
        counts = {p.count for p in self.pieces if p.count is not None}
        digests = {p.digest for p in self.pieces if p.digest is not None}
        beyond = any(p.seq >= c for p in self.pieces for c in counts)
        return values_differ or beyond or max(len(counts), len(digests), len({p.meta for p in self.pieces})) > 1

    @property
    def whole(self) -> bool:
        counts = {p.count for p in self.pieces if p.count is not None}
        return bool(counts) and {p.seq for p in self.pieces} >= set(range(min(counts)))

    @property
    def samples(self) -> bytes:
        """The bytes of a whole waveform that does not contradict itself."""
        by_seq = {p.seq: p.value for p in self.pieces}
        return b"".join(by_seq[s] for s in range(len(by_seq)))

    @property
    def keeps_its_word(self) -> bool:
        """Whether a whole waveform is what its own metadata and digest say."""
        meta = json.loads(self.pieces[0].meta)
        digests = {p.digest for p in self.pieces if p.digest is not None}
        claimed = meta.get("sample_count")
        return (
            digests <= {xxhash.xxh3_128_hexdigest(self.samples)}
            and claimed in (None, len(self.samples) // WIDTH[meta["sample_format"]])
            and self.is_of_its_time
        )

    @property
    def is_of_its_time(self) -> bool:
        """Whether any of its chunks was sent when it says that it began, more or less."""
        return min(abs(self.pieces[0].start_ns // 1_000_000 - p.time_ms) for p in self.pieces) <= WEEK_MS

    @property
    def publishable(self) -> bool:
        return self.whole and not self.contradicts_itself and self.keeps_its_word


def truths(sent: Iterable[Sent]) -> dict[str, Truth]:
    """Every waveform that has a valid chunk among these records."""
    found: dict[str, list[Piece]] = {}
    for record in sent:
        piece = piece_of(record)  # type: ignore[arg-type]
        if piece is not None:
            found.setdefault(piece.id, []).append(piece)
    return {i: Truth(tuple(pieces)) for i, pieces in found.items()}


def must_be_published(sent: Iterable[Sent]) -> dict[str, bytes]:
    """Waveform id → its bytes, of all that are whole and clean."""
    return {i: t.samples for i, t in truths(sent).items() if t.publishable}
