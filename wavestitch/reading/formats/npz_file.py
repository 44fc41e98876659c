"""A NumPy archive: `samples`, and a scalar for each thing that is said of them. Nothing is pickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from wavestitch.reading.formats.file_format import FileFormat, Found, about
from wavestitch.reading.waveform import Waveform


def _write(waveform: Waveform, path: Path, _name: str) -> None:
    said: dict[str, Any] = {name: np.array(value) for name, value in about(waveform).items()}
    said["samples"] = waveform.samples
    said["sampling_rate_hz"] = np.float64(waveform.rate_hz)
    said["start_time_ns"] = np.int64(waveform.start_ns)
    said["meta"] = np.array(waveform.row["meta"])
    said["digest"] = np.array(waveform.provenance.digest)
    with path.open("wb") as file:
        np.savez(file, **said)


def _read(path: Path, _name: str) -> Found:
    with np.load(path, allow_pickle=False) as said:
        return Found(
            said["samples"],
            float(said["sampling_rate_hz"]),
            int(said["start_time_ns"]),
            str(said["units"]),
            float(said["adc_gain"]),
            float(said["baseline"]),
            str(said["source"]),
            str(said["channel"]),
        )


FILE = FileFormat(".npz", _write, _read)
