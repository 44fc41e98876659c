"""A producer in plain Python: cuts waveforms into records by the chunk contract, and breaks it on purpose."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import xxhash


class Letter(NamedTuple):
    """A record that is ready to be sent."""

    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    value: bytes | None


class Lie(StrEnum):
    """Ways of breaking the contract of one record."""

    FLIPPED_BYTE = "flipped byte"
    NO_VALUE = "no value"
    NO_HEADERS = "no headers"
    BEYOND_COUNT = "sequence beyond the count"
    OTHER_COUNT = "another count"
    HUGE_SEQUENCE = "huge sequence"
    FOREIGN_VERSION = "foreign version"
    HALF_A_SAMPLE = "half a sample"
    TWICE = "a header twice"
    OTHER_ID = "key and header disagree"


def metadata(start_ms: int, **more: object) -> bytes:
    fields = {"source": "s", "channel": "c", "start_time_ns": start_ms * 1_000_000, "sampling_rate_hz": 100.0}
    known = {"sample_format": "i16le", "units": "mV", "adc_gain": 1.0, "baseline": 0.0}
    return json.dumps(fields | known | more).encode()


def crc(raw_id: bytes, seq: bytes, count: bytes | None, meta: bytes, value: bytes, *, digest: bytes = b"") -> bytes:
    """The seal, by the contract's own words: with zlib and nothing of the product."""
    return b"%08x" % zlib.crc32(b"\0".join((raw_id, seq, count or b"", meta, digest, value)))


def letter(
    waveform_id: str,
    seq: int,
    value: bytes,
    *,
    meta: bytes,
    count: int | None,
    digest: str | None = None,
    keyed: bool = True,
) -> Letter:
    """One valid chunk."""
    raw_id, raw_seq = waveform_id.encode(), b"%d" % seq
    raw_count = None if count is None else b"%d" % count
    said = crc(raw_id, raw_seq, raw_count, meta, value, digest=(digest or "").encode())
    headers: list[tuple[str, bytes | None]] = [("ws-version", b"2"), ("ws-seq", raw_seq), ("ws-meta", meta)]
    headers.append(("ws-crc", said))
    if count is not None:
        headers.append(("ws-count", raw_count))
    if digest is not None:
        headers.append(("ws-digest", digest.encode()))
    if not keyed:
        headers.append(("ws-id", raw_id))
    return Letter(raw_id if keyed else None, tuple(headers), value)


def cut(
    waveform_id: str,
    values: Sequence[bytes],
    *,
    meta: bytes,
    live: bool = False,
    digest: str | None = None,
    keyed: bool = True,
) -> list[Letter]:
    """A whole waveform. `live`: only the last chunk says how many there are. `digest`: instead of the true one."""
    top = len(values) - 1
    true = xxhash.xxh3_128_hexdigest(b"".join(values))
    return [
        letter(
            waveform_id,
            seq,
            value,
            meta=meta,
            count=None if live and seq < top else len(values),
            digest=(digest or true) if seq == top else None,
            keyed=keyed,
        )
        for seq, value in enumerate(values)
    ]


def lied(about: Letter, lie: Lie) -> Letter:
    """The same record, broken in one way."""
    key, headers, value = about
    claims = dict(headers)
    raw_id = key if key is not None else claims["ws-id"] or b""
    match lie:
        case Lie.FLIPPED_BYTE:
            assert value
            return Letter(key, headers, bytes([value[0] ^ 1]) + value[1:])
        case Lie.NO_VALUE:
            return Letter(key, headers, None)
        case Lie.NO_HEADERS:
            return Letter(key, (), value)
        case Lie.BEYOND_COUNT:
            claims["ws-count"] = b"0"
        case Lie.OTHER_COUNT:
            whole = b"%d" % (int(claims["ws-seq"] or b"") + 1)
            claims["ws-count"] = whole if claims.get("ws-count") != whole else whole + b"0"
        case Lie.HUGE_SEQUENCE:
            claims["ws-seq"] = b"9" * 30
        case Lie.FOREIGN_VERSION:
            claims["ws-version"] = b"1"
        case Lie.HALF_A_SAMPLE:
            meta, short = claims["ws-meta"], (value or b"")[:1]
            digest = claims.get("ws-digest") or b""
            said = crc(raw_id, claims["ws-seq"] or b"", claims.get("ws-count"), meta or b"", short, digest=digest)
            return Letter(key, tuple((claims | {"ws-crc": said}).items()), short)
        case Lie.TWICE:
            return Letter(key, (*headers, ("ws-seq", b"0")), value)
        case Lie.OTHER_ID:
            return Letter(b"one", tuple((claims | {"ws-id": b"another"}).items()), value)
    return Letter(key, tuple(claims.items()), value)
