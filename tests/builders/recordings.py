"""Recordings of tests, and the chunks that they are cut into, by the producer's own functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wavestitch.producers.chunking import ChunkRecord, cut_recording
from wavestitch.producers.recording import Recording, make_recording

START_NS = 1_767_225_600 * 1_000_000_000


def record_samples(samples: bytes = bytes(range(20)), **changes: Any) -> Recording:
    """One recording of these samples."""
    known: dict[str, Any] = {
        "waveform_id": "bench-7/x",
        "source": "bench-7",
        "channel": "x",
        "start_time_ns": START_NS,
        "sampling_rate_hz": 1000,
        "sample_format": "i16le",
        "units": "mV",
        "adc_gain": 200,
        "baseline": 0,
        "samples": samples,
    }
    return make_recording(**{**known, **changes})


def recordings(
    count: int, *, samples: int = 4000, seed: int = 1, prefix: str = "w", start_ns: int = START_NS
) -> list[Recording]:
    """`count` recordings of `samples` int16 samples of noise, an hour apart."""
    rng = np.random.default_rng(seed)
    return [
        record_samples(
            rng.integers(-2000, 2000, samples, dtype="<i2").tobytes(),
            waveform_id=f"{prefix}-{i:04d}",
            source="rig",
            start_time_ns=start_ns + i * 3600 * 1_000_000_000,
        )
        for i in range(count)
    ]


def cut(found: Sequence[Recording], chunk_bytes: int = 1024) -> list[ChunkRecord]:
    return [c for r in found for c in cut_recording(r, chunk_bytes)]


def bare_record(waveform_id: str, size: int = 8, *, keyed: bool = True) -> ChunkRecord:
    """A chunk to be sent, of which id, key and size alone count."""
    return ChunkRecord(waveform_id, waveform_id.encode() if keyed else None, memoryview(bytes(size)), ())
