"""Waveforms, their chunks on disk, and what must come of them: the oracle of the stitching tests.

Plain Python that shares no code with the product: bytes by struct, CRC by zlib, metadata by json, metrics by loops.
Only the landing schema is the product's, because it is the contract between the two.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import xxhash

from wavestitch.contracts.rows import LANDING

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOON_NS = 1_714_564_800_000_000_000  # 2024-05-01 12:00 UTC
LETTERS = {"i16le": "h", "i32le": "i", "i64le": "q", "f32le": "f", "f64le": "d"}
TOPIC_ID = "topic-id"
LAYOUTS = ("sticky", "round robin", "hashed")


@dataclass
class Sent:
    """One waveform as a producer sent it. `pieces`: samples per chunk."""

    waveform_id: str
    samples: list[float]
    pieces: list[int]
    sample_format: str = "i16le"
    start_time_ns: int = NOON_NS
    sampling_rate_hz: float = 500.0
    adc_gain: float = 200.0
    baseline: float = 12.0
    digest: str | None = "right"
    record_ms: int = NOON_NS // 1_000_000
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def meta(self) -> str:
        return json.dumps(
            {
                "source": "Überwachung 7",
                "channel": "II",
                "start_time_ns": self.start_time_ns,
                "sampling_rate_hz": self.sampling_rate_hz,
                "sample_format": self.sample_format,
                "units": "mV",
                "adc_gain": self.adc_gain,
                "baseline": self.baseline,
                **self.more,
            },
            ensure_ascii=False,
        )

    @property
    def raw(self) -> bytes:
        return struct.pack(f"<{len(self.samples)}{LETTERS[self.sample_format]}", *self.samples)

    @property
    def true_digest(self) -> str:
        return xxhash.xxh3_128_hexdigest(self.raw)

    def chunks(self) -> list[dict[str, Any]]:
        """Landing rows; coordinates are given when they are laid out."""
        size = struct.calcsize(LETTERS[self.sample_format])
        found, at = [], 0
        for seq, count in enumerate(self.pieces):
            value = self.raw[at * size : (at + count) * size]
            at += count
            numbers = (str(seq).encode(), str(len(self.pieces)).encode())
            last = seq == len(self.pieces) - 1
            digest = (self.true_digest if self.digest == "right" else self.digest) if last else None
            whole = (digest or "").encode()
            bound = b"\0".join([self.waveform_id.encode(), *numbers, self.meta.encode(), whole, value])
            found.append(
                {
                    "timestamp_ms": self.record_ms + seq,
                    "waveform_id": self.waveform_id,
                    "seq": seq,
                    "count": len(self.pieces),
                    "crc": zlib.crc32(bound),
                    "length": len(value),
                    "meta": self.meta,
                    "digest": digest,
                    "piece": hashlib.sha256(hashlib.sha256(self.meta.encode()).digest() + value).digest(),
                    "payload": value,
                }
            )
        assert at == len(self.samples)
        return found

    def expected(self, chunks: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The published row, given its landing rows in order."""
        read = list(struct.unpack(f"<{len(self.samples)}{LETTERS[self.sample_format]}", self.raw))
        finite = [x for x in read if math.isfinite(x)]
        end_ns = self.start_time_ns + round((len(read) - 1) * 1e9 / self.sampling_rate_hz)
        times = [c["timestamp_ms"] for c in chunks]
        return {
            "waveform_id": self.waveform_id,
            "source": "Überwachung 7",
            "channel": "II",
            "start_time": EPOCH + timedelta(microseconds=self.start_time_ns // 1000),
            "start_time_ns": self.start_time_ns,
            "end_time": EPOCH + timedelta(microseconds=end_ns // 1000),
            "sampling_rate_hz": self.sampling_rate_hz,
            "sample_count": len(read),
            "sample_format": self.sample_format,
            "units": "mV",
            "adc_gain": self.adc_gain,
            "baseline": self.baseline,
            "samples": self.raw,
            "meta": self.meta,
            "digest": self.true_digest,
            "sample_min": float(min(finite)) if finite else None,
            "sample_max": float(max(finite)) if finite else None,
            "nonfinite_count": len(read) - len(finite),
            "chunk_count": len(self.pieces),
            "chunks": [
                {"topic_id": TOPIC_ID, **{n: c[n] for n in ("partition", "offset", "length", "piece")}} for c in chunks
            ],
            "first_record_time": EPOCH + timedelta(milliseconds=min(times)),
            "last_record_time": EPOCH + timedelta(milliseconds=max(times)),
        }

    def physical(self) -> tuple[float | None, float | None]:
        values = [
            (x - self.baseline) / self.adc_gain
            for x in struct.unpack(f"<{len(self.samples)}{LETTERS[self.sample_format]}", self.raw)
            if math.isfinite(x)
        ]
        return (min(values), max(values)) if values else (None, None)


def random_waveform(rng: random.Random, waveform_id: str, *, longest: int = 4000, **overrides: Any) -> Sent:
    """Any format, any length, cut anywhere; floats have NaN and infinities now and then."""
    sample_format = overrides.pop("sample_format", rng.choice(list(LETTERS)))
    count = rng.randint(1, longest)
    if sample_format[0] == "i":
        most = 2 ** (int(sample_format[1:3]) - 1)
        # Within 2^53 a float64 metric is exact.
        most = min(most, 2**53)
        samples: list[float] = [rng.randint(-most, most - 1) for _ in range(count)]
    else:
        strange = [math.nan, math.inf, -math.inf] if rng.random() < 0.3 else [0.5]
        samples = [rng.choice(strange) if rng.random() < 0.01 else rng.gauss(0, 1000) for _ in range(count)]
    cuts = sorted(rng.sample(range(1, count), min(count - 1, rng.randint(0, 12))))
    pieces = [b - a for a, b in zip([0, *cuts], [*cuts, count], strict=True)]
    overrides.setdefault("adc_gain", rng.choice([200.0, -3.5]))
    overrides.setdefault("digest", rng.choice(["right", None]))
    return Sent(waveform_id, samples, pieces, sample_format, **overrides)


def lay_out(rng: random.Random, sent: Sequence[Sent], layout: str, files: int) -> list[list[dict[str, Any]]]:
    """The landing rows of every file, as the layout's producers would have filled them."""
    found: list[list[dict[str, Any]]] = [[] for _ in range(files)]
    if layout == "sticky":
        for s in sent:
            rng.choice(found).extend(s.chunks())
    elif layout == "round robin":
        for n, s in enumerate(sent):
            for c in s.chunks():
                found[(n + c["seq"]) % files].append(c)
        for rows in found:
            rng.shuffle(rows)
    else:
        assert layout == "hashed"
        queues = [s.chunks() for s in sent]
        while queues:  # producers at the same time: chunks of different waveforms interleave, in order each
            q = rng.choice(queues)
            c = q.pop(0)
            found[zlib.crc32(c["waveform_id"].encode()) % files].append(c)
            queues = [q for q in queues if q]
    for partition, rows in enumerate(found):
        for offset, c in enumerate(rows):
            c |= {"partition": partition, "offset": 1000 + offset}
    return found


def land(path: Path, rows: Sequence[dict[str, Any]], rng: random.Random, *, batch_rows: int | None = None) -> None:
    """One landing file, in record batches of any size or of the size asked for."""
    with pa.ipc.new_file(str(path), LANDING) as out:
        at = 0
        while at < len(rows):
            step = batch_rows or rng.randint(1, 40)
            some = [_whole(r, n) for n, r in enumerate(rows[at : at + step])]
            out.write_batch(pa.RecordBatch.from_pylist(some, schema=LANDING))
            at += step


def no_chunk(rng: random.Random) -> dict[str, Any]:
    """A landed record that is not a chunk; its odd length leaves what follows unaligned."""
    return {
        "timestamp_ms": 0,
        "crc": 0,
        "length": 0,
        "piece": bytes(32),
        "reason": "not_a_chunk",
        "payload": rng.randbytes(rng.choice([1, 3, 7])),
    }


def _whole(row: dict[str, Any], number: int) -> dict[str, Any]:
    return {n: row.get(n) for n in LANDING.names} | {"meta_row": number if row.get("meta") is not None else None}
