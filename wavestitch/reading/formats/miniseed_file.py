"""miniSEED 3, by pymseed. Unit, gain and names, which miniSEED has no field for, are extra headers of every record.

Whole numbers are Steim-2 where their differences fit into its 30 bits, 32 bits each otherwise; 16-bit ones are read
back as 32-bit ones, as any miniSEED is.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pymseed

from wavestitch.contracts.errors import BadInput
from wavestitch.reading.exactness import source_id
from wavestitch.reading.formats.file_format import FileFormat, Found, about
from wavestitch.reading.waveform import Waveform

_RECORD_BYTES = 1 << 14
"""Enough for the longest names beside samples."""
_OURS = "Wavestitch"
_TYPES = {"i16le": "i", "i32le": "i", "f32le": "f", "f64le": "d"}
_STEIM2_MOST = 2**29 - 1


def _write(waveform: Waveform, path: Path, _name: str) -> None:
    kind = _TYPES[waveform.format]
    samples = waveform.samples.astype("<i4") if kind == "i" else waveform.samples
    record = pymseed.MS3Record()
    record.formatversion = 3
    record.reclen = _RECORD_BYTES
    record.sourceid = source_id({"source": waveform.source, "channel": waveform.channel})
    record.starttime = waveform.start_ns
    record.samprate = waveform.rate_hz
    record.encoding = _encoding(samples, kind)
    record.extra = json.dumps({_OURS: about(waveform)}, ensure_ascii=False)
    with path.open("wb") as file:
        for each in record.generate(np.ascontiguousarray(samples), kind):
            file.write(each)


def _encoding(samples: np.ndarray, kind: str) -> pymseed.DataEncoding:
    if kind != "i":
        return pymseed.DataEncoding.FLOAT32 if kind == "f" else pymseed.DataEncoding.FLOAT64
    steps = np.abs(np.diff(samples.astype(np.int64), prepend=np.int64(0)))
    return pymseed.DataEncoding.STEIM2 if steps.max() <= _STEIM2_MOST else pymseed.DataEncoding.INT32


def _read(path: Path, _name: str) -> Found:
    with pymseed.MS3Record.from_file(path) as records:
        said = json.loads(next(records).extra)[_OURS]
    with pymseed.MS3TraceList.from_file(path, unpack_data=True) as traces:
        parts = [part for trace in traces for part in trace]
        if len(parts) != 1:
            raise BadInput(f"{path} is read as {len(parts)} runs of samples")
        samples = np.array(parts[0].np_datasamples)
        rate, start = parts[0].samprate, parts[0].starttime
    return Found(
        samples, rate, start, said["units"], said["adc_gain"], said["baseline"], said["source"], said["channel"]
    )


FILE = FileFormat(".mseed", _write, _read)
