"""HDF5, by h5py: one dataset `samples`, all the rest its attributes, metadata and provenance too."""

from __future__ import annotations

from pathlib import Path

import h5py

from wavestitch.reading.formats.file_format import FileFormat, Found, about
from wavestitch.reading.waveform import Waveform


def _write(waveform: Waveform, path: Path, _name: str) -> None:
    # Whoever writes a file once holds a lock on it; HDF5's own would wait for that.
    with h5py.File(path, "w", locking=False) as file:
        data = file.create_dataset("samples", data=waveform.samples)
        for name, value in about(waveform).items():
            data.attrs[name] = value
        data.attrs["sampling_rate_hz"] = waveform.rate_hz
        data.attrs["start_time_ns"] = waveform.start_ns
        data.attrs["meta"] = waveform.row["meta"]
        data.attrs["digest"] = waveform.provenance.digest


def _read(path: Path, _name: str) -> Found:
    with h5py.File(path, "r", locking=False) as file:
        data = file["samples"]
        said = data.attrs
        return Found(
            data[:],
            float(said["sampling_rate_hz"]),
            int(said["start_time_ns"]),
            said["units"],
            float(said["adc_gain"]),
            float(said["baseline"]),
            said["source"],
            said["channel"],
        )


FILE = FileFormat(".h5", _write, _read)
