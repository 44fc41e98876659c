"""Streams in a folder, for whoever reads them: nothing but settings, and tables that rows are published into."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.builders.table_rows import NOON, first_head, published_row, stage
from wavestitch.contracts.sample_kinds import SampleType
from wavestitch.reading.stream import OpenStream


def row(name: str, seconds: int, **changes: Any) -> dict[str, Any]:
    start = NOON + timedelta(seconds=seconds)
    made = published_row(name, start=start, size=7200)
    end = start + timedelta(seconds=3599 / 360)
    said = {"source": "monitor-1", "channel": "II", "units": "mV", "sampling_rate_hz": 360.0, "adc_gain": 200.0}
    return {**made, **said, "baseline": 0.0, "end_time": end, "meta": '{"device": "A7"}', **changes}


def declare_streams(folder: Path) -> Path:
    """`ecg` and `empty`; the path of the settings."""
    (folder / "streams").mkdir()
    for name in ("ecg", "empty"):
        (folder / "streams" / f"{name}.yaml").write_text(f"topic: {name}\ngroup: {name}\n")
    settings = folder / "wavestitch.toml"
    settings.write_text(
        f'landing = "{folder}/landing"\ndocs = "{folder}/docs"\nstreams = "{folder}/streams"\n'
        f'cache = "{folder}/cache"\n[kafka]\nbootstrap = "127.0.0.1:1"\n'
        f'[tables]\nuri = "sqlite:///{folder}/catalog.db"\nwarehouse = "file://{folder}/warehouse"\n'
    )
    return settings


def publish(opened: OpenStream, *rows: dict[str, Any], samples: SampleType = "int") -> None:
    tables = opened._tables
    head = tables.head()
    name = f"f{0 if head is None else head.sequence}"
    staged = stage(tables.data_folder(), name, rows, samples=tables.sample_type() or samples)
    tables.commit(head, first_head() if head is None else head.next(), [staged])
