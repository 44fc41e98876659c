"""What a kind of hostile record is, and how one is written: by the contract's own words, with nothing of the product.

A kind says what it is, what is wrong with it, and what must become of each of its records. Nothing here is random: the
same kinds are used at every level, from the parser to a real broker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.builders.recordings import START_NS
from tests.builders.records import crc
from wavestitch.contracts.reasons import Reason

Headers = tuple[tuple[str, bytes | None], ...]
PUBLISHED, DUPLICATE = "published", "duplicate"
BY_PARSER = frozenset(
    (
        Reason.NULL_VALUE,
        Reason.NOT_A_CHUNK,
        Reason.UNKNOWN_VERSION,
        Reason.BAD_ID,
        Reason.BAD_HEADER,
        Reason.BAD_SEQUENCE,
        Reason.BAD_METADATA,
        Reason.BAD_LENGTH,
        Reason.CORRUPT,
    )
)
"""Found in one record alone; all other reasons are of waveforms."""
VALUE = bytes(range(16))
FIELDS: dict[str, Any] = {
    "source": "hostile",
    "channel": "x",
    "start_time_ns": START_NS,
    "sampling_rate_hz": 1000,
    "sample_format": "i16le",
    "units": "mV",
    "adc_gain": 200,
    "baseline": 0,
}


@dataclass(frozen=True, slots=True)
class Record:
    """As a producer hands it to the log. `age_s`: how much older than the newest record it says it is."""

    key: bytes | None
    headers: Headers
    value: bytes | None
    age_s: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """`becomes`: of each record `published`, `duplicate`, or the reason it is held for. `samples`: what is published of
    it, by waveform id."""

    level: str
    name: str
    wrong: str
    records: tuple[Record, ...]
    becomes: tuple[str, ...]
    samples: Mapping[str, bytes] = field(default_factory=dict)

    def parsed(self) -> list[Reason | None]:
        """What the parser alone must say of each record; None: a valid chunk."""
        return [Reason(b) if b in BY_PARSER else None for b in self.becomes]


def meta(**changes: Any) -> bytes:
    """Metadata; a field changed to `...` is left out."""
    return json.dumps({k: v for k, v in {**FIELDS, **changes}.items() if v is not ...}).encode()


META = meta()


def sealed(
    waveform_id: str | bytes,
    *,
    seq: bytes = b"0",
    count: bytes | None = b"1",
    meta: bytes = META,
    value: bytes = VALUE,
    digest: str | None = None,
    keyed: bool = True,
    age_s: int = 0,
    **changes: bytes | None,
) -> Record:
    """A record with a right CRC, whatever it says. `changes`: headers put in after that (`ws_seq=b"9"`), None: null."""
    raw_id = waveform_id.encode() if isinstance(waveform_id, str) else waveform_id
    found: dict[str, bytes | None] = {"ws-version": b"2", "ws-seq": seq, "ws-meta": meta}
    found["ws-crc"] = crc(raw_id, seq, count, meta, value, digest=(digest or "").encode())
    if count is not None:
        found["ws-count"] = count
    if digest is not None:
        found["ws-digest"] = digest.encode()
    if not keyed:
        found["ws-id"] = raw_id
    found |= {name.replace("_", "-"): content for name, content in changes.items()}
    return Record(raw_id if keyed else None, tuple(found.items()), value, age_s)


def without(record: Record, name: str) -> Record:
    return Record(record.key, tuple(h for h in record.headers if h[0] != name), record.value, record.age_s)


def beside(record: Record, *more: tuple[str, bytes | None]) -> Record:
    """The record with further headers, before its own."""
    return Record(record.key, (*more, *record.headers), record.value, record.age_s)


def held(level: str, name: str, wrong: str, reason: Reason, *records: Record) -> Kind:
    """Every record is held for this reason."""
    return Kind(level, name, wrong, records, (reason.value,) * len(records))


def fine(level: str, name: str, wrong: str, *records: Record, samples: Mapping[str, bytes]) -> Kind:
    """Strange, but a whole waveform (or some) by the contract: all of it is published as it came."""
    return Kind(level, name, wrong, records, (PUBLISHED,) * len(records), samples)


def mixed(level: str, name: str, wrong: str, becoming: Sequence[tuple[Record, str]], **samples: bytes) -> Kind:
    """Each record with what becomes of it."""
    records, becomes = zip(*becoming, strict=True)
    return Kind(level, name, wrong, records, tuple(str(b) for b in becomes), samples)


def chunked(waveform_id: str, count: int, *, value: bytes = VALUE) -> list[Record]:
    """The chunks of a whole waveform, in order."""
    return [sealed(waveform_id, seq=b"%d" % n, count=b"%d" % count, value=value) for n in range(count)]
