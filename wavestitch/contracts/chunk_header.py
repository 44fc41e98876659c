"""The chunk contract, version 2: what a Kafka record must look like to be a piece of a waveform.

Headers are claims: they are length- and range-checked here, before anything is allocated or compared. Parsing never
raises on what a record contains; it returns a `Chunk` or a `Rejection`. Keeps I3: the CRC binds id, sequence, count,
metadata, digest and bytes against accidents, and `piece` says whether two chunks are the same, whoever wrote them.
`docs/chunk-contract.md` is the same contract in prose.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from wavestitch.contracts.chunk_metadata import parse_metadata, show
from wavestitch.contracts.chunk_proof import H_MAC, H_SHA256, NO_PROOF, Bound, ChunkProof, same
from wavestitch.contracts.reasons import Reason

try:
    # The same CRC-32 as zlib's, several times faster; zlib's stays the meaning of the contract.
    from isal import isal_zlib

    crc32: Callable[..., int] = isal_zlib.crc32
except ImportError:  # pragma: no cover - platforms without a wheel
    crc32 = zlib.crc32

VERSION = b"2"
MAX_ID_BYTES = 256
MAX_META_BYTES = 16 * 1024
MAX_CHUNKS = 1 << 20

H_VERSION, H_ID, H_SEQ, H_COUNT, H_CRC, H_META, H_DIGEST = (
    "ws-version",
    "ws-id",
    "ws-seq",
    "ws-count",
    "ws-crc",
    "ws-meta",
    "ws-digest",
)
KNOWN = frozenset((H_VERSION, H_ID, H_SEQ, H_COUNT, H_CRC, H_META, H_DIGEST, H_SHA256, H_MAC))
_HEX = b"0123456789abcdef"
MOST_DIGITS = 10
MOST_SHARED = MAX_META_BYTES + 2 * MAX_ID_BYTES + MOST_DIGITS + 32

RecordHeaders = Sequence[tuple[str, bytes | None]]


class Chunk(NamedTuple):
    """One valid piece: `value` is not part of it, only its `length` in bytes. `meta` is the header's exact text.
    `piece`: see `piece_digest`."""

    waveform_id: str
    seq: int
    count: int | None  # type: ignore[assignment]  # shadows tuple.count, which nobody calls on a chunk
    crc: int
    length: int
    meta: str
    digest: str | None
    piece: bytes


class Rejection(NamedTuple):
    """A record that is not a valid chunk. `evidence`: what was seen and what was allowed, never payload bytes."""

    reason: Reason
    evidence: str
    waveform_id: str | None = None
    seq: int | None = None


def chunk_crc(bound: Bound, value: bytes | memoryview) -> int:
    """CRC-32 over id, 0, sequence, 0, count (empty: none), 0, metadata, 0, digest (empty: none), 0, value.

    Binds a piece to its waveform, place, number, metadata and the whole. Proof against accidents, not against people.
    """
    return crc32(value, crc32(b"%b\0%b\0%b\0%b\0%b\0" % bound)) & 0xFFFFFFFF


def crc_of_id(waveform_id: bytes) -> int:
    """`chunk_crc` as far as the sequence number: of all chunks of a waveform the same."""
    return crc32(waveform_id + b"\0")


def behind_sequence(count: bytes, meta: bytes, digest: bytes) -> bytes:
    """What `chunk_crc` covers between the sequence number and the value."""
    return b"%b%b\0" % (before_digest(count, meta), digest)


def before_digest(count: bytes, meta: bytes) -> bytes:
    """What `chunk_crc` covers between the sequence number and the digest."""
    return b"\0%b\0%b\0" % (count, meta)


def bound_of(waveform_id: str, seq: int, count: int | None, *, meta: str, digest: str | None) -> Bound:
    """What is said of a chunk, as its record says it."""
    counted = b"" if count is None else b"%d" % count
    return Bound(waveform_id.encode(), b"%d" % seq, counted, meta.encode(), (digest or "").encode())


def piece_digest(claims: bytes, value: bytes | memoryview) -> bytes:
    """SHA-256 over SHA-256 of what is said about a value, and the value.

    Of a chunk `claims` are the metadata: two chunks of one place with equal digests are the same, and nobody can make
    another that has the digest of one that exists. The count is left out: a repeat may bring it.
    """
    whole = _begun_digest(claims).copy()
    whole.update(value)
    digest: bytes = whole.digest()
    return digest


def record_digest(key: bytes | None, headers: RecordHeaders | None, value: bytes | None) -> bytes:
    """The same of a record that is no chunk: over all that it is, null told from empty."""
    whole = hashlib.sha256()
    for part in (key, value, *(p for name, content in headers or () for p in (name.encode(), content))):
        whole.update(b"-" if part is None else b"%d:%b" % (len(part), part))
    return whole.digest()


@lru_cache(maxsize=1024)
def _begun_digest(claims: bytes) -> Any:
    """`piece_digest` before the value: of small chunks, which come by the thousand with the same metadata, making the
    objects is half of its cost."""
    return hashlib.sha256(hashlib.sha256(claims).digest())


def parse_chunk(
    key: bytes | None, headers: RecordHeaders | None, value: bytes | None, proof: ChunkProof = NO_PROOF
) -> Chunk | Rejection:
    """What a record is. Never raises on its content; the work is bounded by the record's own size.

    `proof`: what the stream demands of its chunks beside the CRC.
    """
    found = _parse_usual(key, headers or (), value) if value and proof.header is None else None
    return _parse_any(key, headers, value, proof) if found is None else found


class SharedClaims(NamedTuple):
    """What all chunks of a waveform say alike, looked at once. (A digest may be said by one of them alone.) `head`: the
    CRC of what it covers before the sequence number; `tail`: what it covers between that and the digest. `begun`: as
    `_begun_digest`."""

    waveform_id: str
    count: int | None  # type: ignore[assignment]  # shadows tuple.count, which nobody calls on it
    meta: str
    sample_bytes: int
    head: int
    tail: bytes
    begun: Any


def _parse_usual(key: bytes | None, headers: RecordHeaders, value: bytes) -> Chunk | None:
    """A chunk as nearly all are, in fewer steps; None: perhaps none, which `_parse_any` says."""
    claims: dict[str, Any] = dict(headers)
    said = claims.get
    raw_seq, raw_meta = said(H_SEQ), said(H_META)
    if len(claims) != len(headers) or said(H_VERSION) != VERSION or raw_seq is None or raw_meta is None:
        return None
    raw_id, raw_count, raw_digest = said(H_ID), said(H_COUNT), said(H_DIGEST)
    # Whatever is remembered is small.
    size = len(raw_meta) + len(key or b"") + len(raw_id or b"") + len(raw_count or b"") + len(raw_digest or b"")
    if len(raw_seq) > MOST_DIGITS or size > MOST_SHARED:
        return None
    shared = shared_claims(key, raw_id, raw_count, raw_meta)
    if shared is None or (raw_digest is not None and not is_digest(raw_digest)):
        return None
    waveform_id, count, meta, sample_bytes, head, tail, begun = shared
    seq, length = sequence_number(raw_seq), len(value)
    if seq is None or (count is not None and seq >= count) or length % sample_bytes:
        return None
    crc = crc32(value, crc32(b"%b%b%b\0" % (raw_seq, tail, raw_digest or b""), head)) & 0xFFFFFFFF
    if said(H_CRC) != b"%08x" % crc or None in claims.values():
        return None
    whole = begun.copy()
    whole.update(value)
    digest = None if raw_digest is None else raw_digest.decode()
    return Chunk(waveform_id, seq, count, crc, length, meta, digest, whole.digest())


@lru_cache(maxsize=1024)
def shared_claims(
    key: bytes | None, header: bytes | None, raw_count: bytes | None, raw_meta: bytes
) -> SharedClaims | None:
    if len(raw_meta) > MAX_META_BYTES:
        return None
    try:
        meta, sample_bytes = _checked_metadata(raw_meta)
    except _Refused:
        return None
    return claims_with(key, header, raw_count, raw_meta, meta=meta, sample_bytes=sample_bytes)


def claims_with(
    key: bytes | None,
    header: bytes | None,
    raw_count: bytes | None,
    raw_meta: bytes,
    *,
    meta: str,
    sample_bytes: int,
) -> SharedClaims | None:
    """The same where it is known what the metadata are: this text, which is valid, of samples of so many bytes."""
    found = _waveform_id(key, header)
    if isinstance(found, Rejection):
        return None
    try:
        count = None if raw_count is None else _decimal(H_COUNT, raw_count, MAX_CHUNKS)
    except _Refused:
        return None
    raw_id, waveform_id = found
    tail = before_digest(raw_count or b"", raw_meta)
    return SharedClaims(waveform_id, count, meta, sample_bytes, crc_of_id(raw_id), tail, _begun_digest(raw_meta))


@lru_cache(maxsize=4096)
def sequence_number(raw: bytes) -> int | None:
    found = int(raw) if _is_decimal(raw) else MAX_CHUNKS
    return found if found < MAX_CHUNKS else None


def is_digest(raw: bytes) -> bool:
    return len(raw) == 32 and not raw.translate(None, _HEX)


def _parse_any(
    key: bytes | None, headers: RecordHeaders | None, value: bytes | None, proof: ChunkProof
) -> Chunk | Rejection:
    """The same, check by check, each with its own sentence: the specification of `_parse_usual`."""
    if value is None:
        return Rejection(Reason.NULL_VALUE, "the record has no value (a tombstone); a chunk carries samples")
    claims = _claims(headers or ())
    if isinstance(claims, Rejection):
        return claims
    version = claims.get(H_VERSION)
    if version is None:
        return Rejection(Reason.NOT_A_CHUNK, f"no {H_VERSION} header; a chunk has the headers of the chunk contract")
    if version != VERSION:
        return Rejection(Reason.UNKNOWN_VERSION, f"{H_VERSION} is {show(version)}; known is 2")
    found = _waveform_id(key, claims.get(H_ID))
    if isinstance(found, Rejection):
        return found
    raw_id, waveform_id = found
    try:
        return _parse_claims(claims, raw_id, waveform_id, value, proof)
    except _Refused as refused:
        seq = claims.get(H_SEQ, b"")
        known_seq = int(seq) if _is_decimal(seq) and int(seq) < MAX_CHUNKS else None
        return Rejection(refused.reason, refused.evidence, waveform_id, known_seq)


def _claims(headers: Sequence[tuple[str, bytes | None]]) -> Mapping[str, bytes] | Rejection:
    """The headers that the contract knows, by name; perhaps others among them."""
    found: dict[str, Any] = dict(headers)
    if len(found) == len(headers) and None not in found.values():
        return found
    claims: dict[str, bytes] = {}
    for name, content in headers:
        if name in KNOWN:
            if name in claims:
                return Rejection(Reason.BAD_HEADER, f"header {name} occurs more than once; allowed is once")
            if content is None:
                return Rejection(Reason.BAD_HEADER, f"header {name} is null; it must have a value")
            claims[name] = content
    return claims


def encode_headers(
    *,
    waveform_id: str,
    seq: int,
    count: int | None,
    meta: str,
    value: bytes | memoryview,
    digest: str | None,
    proof: ChunkProof = NO_PROOF,
) -> list[tuple[str, bytes]]:
    """The headers of one keyed chunk; the inverse of `parse_chunk`."""
    bound = bound_of(waveform_id, seq, count, meta=meta, digest=digest)
    crc = chunk_crc(bound, value)
    headers = [(H_VERSION, VERSION), (H_SEQ, bound.seq), (H_CRC, b"%08x" % crc), (H_META, bound.meta)]
    if count is not None:
        headers.append((H_COUNT, bound.count))
    if digest is not None:
        headers.append((H_DIGEST, bound.digest))
    if proof.header is not None:
        headers.append((proof.header, proof.of(bound, value)))
    return headers


class _Refused(Exception):
    def __init__(self, reason: Reason, evidence: str) -> None:
        super().__init__(evidence)
        self.reason = reason
        self.evidence = evidence


def _waveform_id(key: bytes | None, header: bytes | None) -> tuple[bytes, str] | Rejection:
    raw = key if key is not None else header
    if raw is None:
        return Rejection(Reason.BAD_ID, "neither a key nor a ws-id header; one of them names the waveform")
    if key is not None and header is not None and key != header:
        return Rejection(Reason.BAD_ID, f"key {show(key)} and ws-id {show(header)} disagree")
    if not 1 <= len(raw) <= MAX_ID_BYTES:
        return Rejection(Reason.BAD_ID, f"the waveform id has {len(raw)} bytes; allowed are 1 to {MAX_ID_BYTES}")
    try:
        return raw, raw.decode("utf-8")
    except UnicodeDecodeError:
        return Rejection(Reason.BAD_ID, f"the waveform id {show(raw)} is not UTF-8")


def _parse_claims(
    claims: Mapping[str, bytes], raw_id: bytes, waveform_id: str, value: bytes, proof: ChunkProof
) -> Chunk:
    raw_seq = _required(claims, H_SEQ)
    seq = _decimal(H_SEQ, raw_seq, MAX_CHUNKS - 1)
    count = None
    if H_COUNT in claims:
        count = _decimal(H_COUNT, claims[H_COUNT], MAX_CHUNKS)
        if seq >= count:
            raise _Refused(Reason.BAD_SEQUENCE, f"ws-seq is {seq} with ws-count {count}; allowed is 0 to count - 1")
    raw_crc = _required(claims, H_CRC)
    if len(raw_crc) != 8 or raw_crc.translate(None, _HEX):
        raise _Refused(Reason.BAD_HEADER, f"ws-crc is {show(raw_crc)}; it must be 8 lower-case hex digits")
    raw_digest = claims.get(H_DIGEST)
    if raw_digest is not None and not is_digest(raw_digest):
        raise _Refused(Reason.BAD_HEADER, f"ws-digest is {show(raw_digest)}; it must be 32 lower-case hex digits")
    raw_meta = _required(claims, H_META)
    if len(raw_meta) > MAX_META_BYTES:
        raise _Refused(Reason.BAD_METADATA, f"ws-meta has {len(raw_meta)} bytes; allowed are {MAX_META_BYTES}")
    crc = int(raw_crc, 16)
    bound = Bound(raw_id, raw_seq, claims.get(H_COUNT, b""), raw_meta, raw_digest or b"")
    seen = chunk_crc(bound, value)
    # Before any meaning is read into the metadata: a flipped bit there is corruption, not a bad producer.
    if seen != crc:
        raise _Refused(Reason.CORRUPT, f"ws-crc says {crc:08x}, the record's bytes give {seen:08x}")
    if proof.header is not None:
        _check_proof(claims.get(proof.header), proof, bound, value)
    meta, sample_bytes = _checked_metadata(raw_meta)
    if len(value) == 0 or len(value) % sample_bytes:
        raise _Refused(
            Reason.BAD_LENGTH, f"the value has {len(value)} bytes; it must be whole samples of {sample_bytes} bytes"
        )
    digest = raw_digest.decode() if raw_digest is not None else None
    return Chunk(waveform_id, seq, count, crc, len(value), meta, digest, piece_digest(raw_meta, value))


def _check_proof(said: bytes | None, proof: ChunkProof, bound: Bound, value: bytes) -> None:
    if said is None:
        raise _Refused(Reason.UNPROVEN, f"no {proof.header} header; the stream demands one of every chunk")
    if len(said) != 64 or said.translate(None, _HEX):
        raise _Refused(Reason.BAD_HEADER, f"{proof.header} is {show(said)}; it must be 64 lower-case hex digits")
    if not same(said, proof.of(bound, value)):
        raise _Refused(
            Reason.FORGED, f"{proof.header} does not fit the record's bytes: it was changed, or sealed with another key"
        )


@lru_cache(maxsize=1024)
def _checked_metadata(raw_meta: bytes) -> tuple[str, int]:
    """The text and the bytes per sample of a valid `ws-meta`. All chunks of a waveform carry the same: it is judged
    once, and kept once."""
    found = parse_metadata(raw_meta)
    if isinstance(found, str):
        raise _Refused(Reason.BAD_METADATA, found)
    return raw_meta.decode(), found.sample_bytes


def _required(claims: Mapping[str, bytes], name: str) -> bytes:
    found = claims.get(name)
    if found is None:
        raise _Refused(Reason.BAD_HEADER, f"no {name} header; a chunk has one")
    return found


def _is_decimal(raw: bytes) -> bool:
    return 1 <= len(raw) <= MOST_DIGITS and raw.isdigit() and (raw == b"0" or raw[:1] != b"0")


@lru_cache(maxsize=4096)
def _decimal(name: str, raw: bytes, most: int) -> int:
    if not _is_decimal(raw):
        raise _Refused(Reason.BAD_HEADER, f"{name} is {show(raw)}; it must be a decimal number without sign or zeros")
    found = int(raw)
    if found > most:
        raise _Refused(Reason.BAD_SEQUENCE, f"{name} is {found}; allowed is at most {most}")
    return found
