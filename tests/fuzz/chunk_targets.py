"""Records and their metadata: what the parser takes for a chunk is one by the contract's own words, and the other way
about."""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Iterator
from contextlib import suppress

from tests.builders.records import crc
from tests.domain.oracle import piece_of
from tests.fuzz.draw import Draw, packed
from tests.fuzz.target import Target, check_sentence
from tests.hostile.kind import FIELDS, META, VALUE, Record, sealed
from wavestitch.contracts.chunk_header import MAX_META_BYTES, Chunk, Rejection, encode_headers, parse_chunk
from wavestitch.contracts.chunk_metadata import SAMPLE_BYTES, Metadata, parse_metadata
from wavestitch.contracts.chunk_proof import NO_PROOF, ChunkProof

_KEY = b"k" * 16
_PROOFS = (NO_PROOF, ChunkProof("sha256", topic="t"), ChunkProof("mac", _KEY, "t"))
_NAMES = (
    "ws-version",
    "ws-id",
    "ws-seq",
    "ws-count",
    "ws-crc",
    "ws-meta",
    "ws-digest",
    "ws-sha256",
    "ws-mac",
    "other",
)
_NULL = 128
_NO_KEY, _NO_VALUE, _SEAL, _PROVE = 1, 2, 4, 8
_MOST_HEADERS = 20


def chunk_record(data: bytes) -> None:
    draw = Draw(data)
    flags, proof = draw.byte(), draw.pick(_PROOFS)
    key = None if flags & _NO_KEY else draw.field()
    value = None if flags & _NO_VALUE else draw.field()
    headers: list[tuple[str, bytes | None]] = []
    while draw.left and len(headers) < _MOST_HEADERS:
        kind = draw.byte()
        headers.append((_NAMES[kind % _NULL % len(_NAMES)], None if kind & _NULL else draw.field()))
    if flags & _SEAL:
        headers = _put(headers, "ws-crc", lambda h: _crc(key, h, value or b""))
    if flags & _PROVE:
        headers = _put(headers, "ws-sha256", lambda h: _proof(b"", key, h, value or b""))
        headers = _put(headers, "ws-mac", lambda h: _proof(_KEY, key, h, value or b""))
    record = Record(key, tuple(headers), value)
    found = parse_chunk(key, headers, value, proof)
    piece = piece_of.__wrapped__(_Sent(record))
    if isinstance(found, Rejection):
        check_sentence(found.evidence)
        assert len(found.evidence) < 400
        return
    assert piece is not None, f"{found} is no chunk by the contract's words"
    assert (piece.id, piece.seq, piece.count) == (found.waveform_id, found.seq, found.count)
    assert (piece.meta.decode(), piece.digest, len(piece.value)) == (found.meta, found.digest, found.length)
    assert piece.proof == found.piece
    h = {n: v or b"" for n, v in headers}
    if proof.kind != "none":
        secret = _KEY if proof.kind == "mac" else b""
        assert h[f"ws-{proof.kind}"] == _proof(secret, key, h, value or b""), "a chunk without its proof"
    written = encode_headers(
        waveform_id=found.waveform_id,
        seq=found.seq,
        count=found.count,
        meta=found.meta,
        value=value or b"",
        digest=found.digest,
        proof=proof,
    )
    assert parse_chunk(found.waveform_id.encode(), written, value, proof) == found
    assert dict(written)["ws-crc"] == h["ws-crc"] == b"%08x" % found.crc


def ws_meta(data: bytes) -> None:
    found = parse_metadata(data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        assert isinstance(found, str)
        return
    assert parse_metadata(text) == found
    if len(data) <= MAX_META_BYTES:
        record = sealed("x", meta=data, value=VALUE)
        assert isinstance(parse_chunk(record.key, record.headers, VALUE), Chunk) is isinstance(found, Metadata)
    if isinstance(found, str):
        check_sentence(found)
        assert len(found) < 400
        return
    said = json.loads(text)
    assert (found.source, found.start_time_ns) == (said["source"], said["start_time_ns"])
    assert all(math.isfinite(n) for n in (found.sampling_rate_hz, found.adc_gain, found.baseline))
    assert found.adc_gain
    assert found.sample_bytes == SAMPLE_BYTES[said["sample_format"]]
    assert found.end_time_ns(1 << 40) >= found.start_time_ns
    # What nobody asks for may be a number that no double holds; it stays the text that it is.
    with suppress(ValueError):
        assert parse_metadata(json.dumps(said, allow_nan=False)) == found


class _Sent:
    """A record as the oracle wants it."""

    def __init__(self, record: Record) -> None:
        self.timestamp_ms = 0
        self.key, self.headers, self.value = record.key, record.headers, record.value


def _put(headers: list[tuple[str, bytes | None]], name: str, make: object) -> list[tuple[str, bytes | None]]:
    said = {n: v or b"" for n, v in headers}
    right = make(said)  # type: ignore[operator]
    return [(n, right if n == name else v) for n, v in headers]


def _bound(key: bytes | None, h: dict[str, bytes]) -> tuple[bytes, ...]:
    said = (h.get(f"ws-{n}", b"") for n in ("seq", "count", "meta", "digest"))
    return (key if key is not None else h.get("ws-id", b"")), *said


def _crc(key: bytes | None, h: dict[str, bytes], value: bytes) -> bytes:
    raw_id, seq, count, meta, digest = _bound(key, h)
    return crc(raw_id, seq, count, meta, value, digest=digest)


def _proof(secret: bytes, key: bytes | None, h: dict[str, bytes], value: bytes) -> bytes:
    """As `docs/chunk-contract.md` has it."""
    parts = (b"t", *_bound(key, h))
    said = b" ".join(b"%d" % len(p) for p in parts) + b"\n" + b"".join(p + b"\0" for p in parts) + value
    made = hmac.digest(secret, said, "sha256").hex() if secret else hashlib.sha256(said).hexdigest()
    return made.encode()


def _record_seeds() -> Iterator[bytes]:
    for flags in (0, _SEAL, _SEAL | _PROVE, _SEAL | _NO_KEY, _NO_VALUE):
        for proof in range(len(_PROOFS)):
            record = sealed("w", count=b"2", digest="0123456789abcdef" * 2)
            headers: list[tuple[str, bytes | None]] = [*record.headers, ("ws-sha256", b"a" * 64), ("ws-mac", b"b" * 64)]
            if flags & _NO_KEY:
                headers.append(("ws-id", b"w"))
            parts: list[int | bytes | str] = [flags, proof]
            parts += [] if flags & _NO_KEY else [b"w"]
            parts += [] if flags & _NO_VALUE else [VALUE]
            for name, content in headers:
                parts += [_NAMES.index(name), content or b""]
            yield packed(*parts)


def _meta_seeds() -> Iterator[bytes]:
    yield META
    yield json.dumps({**FIELDS, "sample_count": 8, "note": {"a": [1, None, "\ud800"]}}).encode()
    yield META[:-1] + b',"sampling_rate_hz":1}'
    yield META.replace(b"1000", b"1e400")
    yield META.decode().encode("utf-16")
    yield b"[" * 2000


_WORDS = (*FIELDS, *SAMPLE_BYTES, "sample_count", "NaN", "Infinity", "1e308", "-0", "\\ud800", "null", "true")

TARGETS = (
    Target("chunk_record", chunk_record, _record_seeds, (*_WORDS, "01", "1048576", "9999999999", "٣")),
    Target("ws_meta", ws_meta, _meta_seeds, _WORDS, longest=20_000),
)
