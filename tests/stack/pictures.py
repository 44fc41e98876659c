"""Makes the pictures of the docs anew: `python -m tests.stack.pictures`, docs/images/*.png. Needs a Chromium.

Pages are the real ones over real tables, served as in tests. Those of Airflow's own that need a whole Airflow are taken
by `airflow_in_a_browser.py` where PICTURES names a folder.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.builders.records import metadata
from tests.builders.table_rows import NOON
from tests.domain.held_rig import T, held_rig
from tests.domain.maintenance_rig import STREAM
from tests.domain.waveform_rig import RATE, ecg, hold_one, waveform_rig, waveform_row
from tests.stack.airflow_home import ROOT, make_database, prepare_airflow
from tests.stack.pages_lab import Served, prepare, served
from tests.stack.waveforms_in_a_browser import page_of, shown
from wavestitch.contracts.reasons import Reason

IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 150 << 10
_NOON_NS = 1_767_614_400 * 10**9


def take(page: Any, name: str, *, folder: Path | None = None, height: int = 0) -> None:
    """What the page shows, in few colours, where somebody wants pictures. `height`: as much of it; 0: what is seen."""
    named = os.environ.get("PICTURES", "")
    into = folder or (Path(named) if named else None)
    if into is None:
        return
    clip = {"clip": {"x": 0, "y": 0, "width": page.viewport_size["width"], "height": height}} if height else {}
    found = Image.open(io.BytesIO(page.screenshot(**clip))).convert("RGB")
    path = into / f"{name}.png"
    found.quantize(160, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    assert size < MOST_BYTES, f"{path} has {size} bytes; at most {MOST_BYTES} are for a picture"


def rows() -> list[dict[str, Any]]:
    """Two hours of three channels: with gaps, and a piece that is there twice."""
    made, at = [], 0
    for n in range(60):
        at += {12: 240, 30: -15, 41: 600}.get(n, 0)
        made.append(waveform_row(f"ward-7-{n:03}", ecg(60 * 360, seed=n), start=_after(at), source="ward-7", chunks=6))
        at += 60
    for n in range(36):
        pulse = np.round(900 * np.sin(np.arange(12_000) / 14 + n)).astype("<i2")
        about: dict[str, Any] = {"source": "ward-7", "channel": "pleth", "rate": 100.0, "gain": 1000.0, "units": "1"}
        made.append(waveform_row(f"pleth-{n:03}", pulse, start=_after(n * 120 + (300 if n > 20 else 0)), **about))
    for n in range(20):
        start = _after(n * 240)
        made.append(waveform_row(f"ward-9-{n:03}", ecg(180 * 360, seed=n), start=start, source="ward-9", chunks=8))
    return made


def _after(seconds: float) -> Any:
    return NOON + timedelta(seconds=seconds)


@contextmanager
def waveforms() -> Iterator[Served]:
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patch:
        folder = Path(made)
        rig = waveform_rig(folder, rows(), files=4)
        said = {"sampling_rate_hz": RATE, "sample_count": 60 * 360}
        for n, seconds in enumerate((4380, 4560)):
            start_ns = _NOON_NS + seconds * 10**9
            hold_one(rig, f"ward-7-late-{n}", source="ward-7", channel="II", start_time_ns=start_ns, **said)
        patch.setenv("WAVESTITCH_CONFIG", str(folder / "wavestitch.toml"))
        with served() as pages:
            yield pages


@contextmanager
def half_there() -> Iterator[Served]:
    """A waveform of twelve chunks, three of which miss, and one of which there are two truths about."""
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patch:
        raw = ecg(36_000)
        held = [("ward-7-004", n, raw[n * 3000 : (n + 1) * 3000].tobytes(), Reason.CONFLICT) for n in range(12)]
        held = [row for row in held if row[1] not in (4, 7, 8)]
        held.append(("ward-7-004", 2, ecg(3000, seed=9).tobytes(), Reason.CONFLICT))
        said = {"source": "ward-7", "channel": "II", "adc_gain": 200.0, "sampling_rate_hz": RATE}
        held_rig(Path(made), held, meta=metadata(T, **said, sample_count=36_000), count=12)
        patch.setenv("WAVESTITCH_CONFIG", str(Path(made) / "wavestitch.toml"))
        with served() as pages:
            yield pages


@contextmanager
def streams() -> Iterator[Served]:
    with tempfile.TemporaryDirectory() as made, pytest.MonkeyPatch.context() as patch:
        prepare(Path(made), patch)
        with served() as pages:
            yield pages


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with waveforms() as pages:
        with page_of(pages, f"/waveforms/{STREAM}/one?id=ward-7-003") as page:
            shown(page)
            page.focus(".plot")
            page.keyboard.press("+")
            shown(page)
            take(page, "waveform", folder=IMAGES)
        window = "start=2026-01-05T11:55&end=2026-01-05T13:30"
        with page_of(pages, f"/waveforms/{STREAM}/map?{window}") as page:
            take(page, "map", folder=IMAGES, height=560)
        with page_of(pages, f"/held/{STREAM}") as page:
            page.get_by_label("ward-7-late-0").check()
            page.get_by_label("Why").fill("the monitor was changed")
            take(page, "held", folder=IMAGES, height=560)
    with half_there() as pages, page_of(pages, f"/held/{STREAM}/one?id=ward-7-004") as page:
        shown(page)
        take(page, "held-plot", folder=IMAGES, height=880)
    with streams() as pages, page_of(pages, "/") as page:
        page.wait_for_selector("#streams[aria-busy=false]")
        take(page, "overview", folder=IMAGES, height=560)


if __name__ == "__main__":
    prepare_airflow()
    make_database()
    main()
