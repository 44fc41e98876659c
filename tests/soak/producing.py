"""What the soak sends, and what must come out: the truth is kept beside the platform and shares no code with it.

Every round makes whole waveforms, and beside them what happens to real streams: chunks that come late, twice, out of
order or damaged. A damaged copy comes in addition to the good one, so that every waveform can be published in the end.
"""

from __future__ import annotations

import hashlib
import random
import time
from dataclasses import dataclass, field, replace

import numpy as np

from wavestitch.producers.chunking import ChunkRecord, cut_recording
from wavestitch.producers.recording import make_recording

CHUNK_BYTES = 4096


@dataclass
class Production:
    """`truth`: id to digest of the samples. `withheld`: chunks that are sent in a later round."""

    rng: random.Random
    truth: dict[str, bytes] = field(default_factory=dict)
    withheld: list[ChunkRecord] = field(default_factory=list)
    bytes: int = 0
    corrupt: int = 0
    duplicates: int = 0

    def round(self, waveforms: int) -> list[ChunkRecord]:
        """The chunks of one round, in the order in which they are sent."""
        due, self.withheld = self.withheld, []
        out: list[ChunkRecord] = []
        for _ in range(waveforms):
            out += self._disturbed(self._waveform())
        at = self.rng.randrange(len(out) + 1)
        return out[:at] + due + out[at:]

    def rest(self) -> list[ChunkRecord]:
        due, self.withheld = self.withheld, []
        return due

    def _waveform(self) -> list[ChunkRecord]:
        samples = np.random.default_rng(self.rng.getrandbits(64)).integers(
            -2000, 2000, self.rng.randint(500, 30_000), dtype="<i2"
        )
        waveform_id = f"soak-{len(self.truth):07d}"
        raw = samples.tobytes()
        self.truth[waveform_id] = hashlib.blake2b(raw, digest_size=16).digest()
        self.bytes += len(raw)
        recording = make_recording(
            waveform_id=waveform_id,
            source="soak",
            channel="x",
            start_time_ns=time.time_ns(),
            sampling_rate_hz=1000,
            sample_format="i16le",
            units="mV",
            adc_gain=200,
            baseline=0,
            samples=raw,
        )
        return cut_recording(recording, CHUNK_BYTES)

    def _disturbed(self, chunks: list[ChunkRecord]) -> list[ChunkRecord]:
        found, lot = list(chunks), self.rng.random()
        if lot < 0.05:
            self.rng.shuffle(found)
        elif lot < 0.12:
            self.withheld.append(found.pop(self.rng.randrange(len(found))))
        elif lot < 0.20:
            found.append(self.rng.choice(chunks))
            self.duplicates += 1
        elif lot < 0.24:
            victim = self.rng.choice(chunks)
            damaged = bytearray(victim.value)
            damaged[self.rng.randrange(len(damaged))] ^= 0x40
            found.insert(self.rng.randrange(len(found) + 1), replace(victim, value=memoryview(bytes(damaged))))
            self.corrupt += 1
        return found


def digest_of(samples: bytes) -> bytes:
    return hashlib.blake2b(samples, digest_size=16).digest()
