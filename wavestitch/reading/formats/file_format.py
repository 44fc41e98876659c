"""What every file format here is: a writer, and a reader by the format's own library that says what stands there."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from wavestitch.reading.waveform import Waveform


@dataclass(frozen=True, slots=True)
class Found:
    """What a file says of its waveform. `samples`: shape (n,), raw, in a dtype that holds each value."""

    samples: npt.NDArray[np.generic]
    rate_hz: float
    start_ns: int
    units: str
    gain: float
    baseline: float
    source: str
    channel: str


@dataclass(frozen=True, slots=True)
class FileFormat:
    """`suffix`: of the file, `""` where it is a folder of several; then `write` gets an empty folder, and the name that
    it will have. `write` and `read` raise what the library raises."""

    suffix: str
    write: Callable[[Waveform, Path, str], None]
    read: Callable[[Path, str], Found]


def about(waveform: Waveform) -> dict[str, str | float]:
    """What formats that have no field for it keep beside the samples."""
    return {
        "waveform_id": waveform.id,
        "source": waveform.source,
        "channel": waveform.channel,
        "sample_format": waveform.format,
        "units": waveform.units,
        "adc_gain": waveform.gain,
        "baseline": waveform.baseline,
    }


def about_json(waveform: Waveform) -> str:
    """The same in ASCII, in one line."""
    return json.dumps(about(waveform))
