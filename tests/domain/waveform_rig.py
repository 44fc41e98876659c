"""A stream with waveforms to look at: hours of an ECG in several sources and formats, and what is held beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tests.builders.records import letter, metadata
from tests.builders.table_rows import NOON, TOPIC_ID, first_head, held_row, published_row, stage, stage_held
from tests.domain.held_rig import T, _land, _record
from tests.domain.maintenance_rig import Rig
from tests.fakes.batch import facts_of
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.sample_kinds import SampleType

RATE = 360.0


def ecg(samples: int, *, seed: int = 1) -> Any:
    """Beats, a little noise, a wandering base: int16, shape (samples,)."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) / RATE
    beat = (t * 1.2) % 1
    wave = 0.12 * np.exp(-(((beat - 0.18) / 0.025) ** 2)) + 1.1 * np.exp(-(((beat - 0.30) / 0.008) ** 2))
    wave += -0.2 * np.exp(-(((beat - 0.325) / 0.01) ** 2)) + 0.25 * np.exp(-(((beat - 0.52) / 0.04) ** 2))
    wave += 0.05 * np.sin(2 * np.pi * 0.2 * t) + rng.normal(0, 0.01, samples)
    return np.round(wave * 200).astype("<i2")


def waveform_row(
    waveform_id: str,
    raw: Any,
    *,
    source: str = "monitor-1",
    channel: str = "II",
    start: datetime = NOON,
    rate: float = RATE,
    sample_format: str = "i16le",
    chunks: int = 4,
    gain: float = 200.0,
    units: str = "mV",
) -> dict[str, Any]:
    row = published_row(waveform_id, start=start, chunks=chunks, raw=raw, sample_format=sample_format, source=source)
    said = {"channel": channel, "sampling_rate_hz": rate, "adc_gain": gain, "baseline": 0.0, "units": units}
    end = start + timedelta(seconds=(len(raw) - 1) / rate)
    return {**row, **said, "end_time": end, "meta": json.dumps(json.loads(row["meta"]) | said)}


def waveform_rig(folder: Path, rows: Sequence[dict[str, Any]], *, samples: SampleType = "int", files: int = 1) -> Rig:
    """These rows, dealt to so many files and published."""
    rig = Rig(folder, samples=samples)
    staged = [
        stage(rig.tables.data_folder(), f"dealt-{n}", rows[n::files], samples=samples, row_group_size=3)
        for n in range(files)
        if rows[n::files]
    ]
    rig.record(rig.tables.commit(None, first_head(decision="d1"), staged))
    return rig


def hold_one(rig: Rig, waveform_id: str, **said: Any) -> None:
    """The first of two chunks of a waveform is there, and waits."""
    base = rig.tables.head()
    one = letter(waveform_id, 0, b"\x01\x00" * 20, meta=metadata(T, **said), count=2)
    landing = _land(rig.folder / f"{sha256(waveform_id.encode()).hexdigest()}.arrow", [one])
    chunk = facts_of(_record(0, one), 0, 0)._replace(carried=True, topic_id=TOPIC_ID)
    row = held_row(chunk, landing=landing, row=0, reason=Reason.OPEN, decision="dh", sequence=base.sequence + 1)
    mark = stage_held(rig.tables, base, [row])
    rig.record(rig.tables.commit(base, base.next(held=mark, decision="dh", watermark_ms=T), []))
    rig.tables.settle_held()
