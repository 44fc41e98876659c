"""miniSEED 3, by pymseed. Unit, gain and names, which miniSEED has no field for, are extra headers of every record.

Whole numbers are Steim-2 where their differences fit into its 30 bits, 32 bits each otherwise; 16-bit ones are read
back as 32-bit ones, as any miniSEED is.

The library takes a second off the times behind a leap second, which neither time since 1970 nor other libraries know:
no record here has samples from both sides, and each says the time that the table does.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pymseed

from wavestitch.contracts.errors import BadInput
from wavestitch.reading.exactness import source_id
from wavestitch.reading.formats.file_format import FileFormat, Found, about
from wavestitch.reading.waveform import Waveform, ns_after

_RECORD_BYTES = 1 << 14
"""Enough for the longest names beside samples."""
_OURS = "Wavestitch"
_TYPES = {"i16le": "i", "i32le": "i", "f32le": "f", "f64le": "d"}
_STEIM2_MOST = 2**29 - 1
_LEAST_SHIFT_NS = 10**8
"""Less is how numbers are rounded; a leap second is ten times as much."""


def _write(waveform: Waveform, path: Path, _name: str) -> None:
    kind = _TYPES[waveform.format]
    samples = waveform.samples.astype("<i4") if kind == "i" else waveform.samples
    record = pymseed.MS3Record()
    record.formatversion = 3
    record.reclen = _RECORD_BYTES
    record.sourceid = source_id({"source": waveform.source, "channel": waveform.channel})
    record.samprate = waveform.rate_hz
    record.encoding = _encoding(samples, kind)
    record.extra = json.dumps({_OURS: about(waveform)}, ensure_ascii=False)
    with path.open("wb") as file:
        for begin, end in pairwise([*_parts(waveform), len(samples)]):
            record.starttime = _time(waveform.start_ns, begin, waveform.rate_hz)
            for each in record.generate(np.ascontiguousarray(samples[begin:end]), kind):
                file.write(each)


def _parts(waveform: Waveform) -> Iterator[int]:
    """Where each part begins for whose samples the library reckons the times that are meant."""
    begin, count = 0, len(waveform)
    while begin < count:
        yield begin
        begin += bisect_left(range(1, count - begin), 1, key=partial(_shifted, waveform, begin)) + 1


def _shifted(waveform: Waveform, begin: int, after: int) -> bool:
    since = _time(waveform.start_ns, begin, waveform.rate_hz)
    by_library: int = pymseed.sample_time(since, after, waveform.rate_hz)
    return abs(by_library - _time(waveform.start_ns, begin + after, waveform.rate_hz)) >= _LEAST_SHIFT_NS


def _time(start_ns: int, sample: int, rate_hz: float) -> int:
    return start_ns + int(ns_after(sample, rate_hz))


def _encoding(samples: np.ndarray, kind: str) -> pymseed.DataEncoding:
    if kind != "i":
        return pymseed.DataEncoding.FLOAT32 if kind == "f" else pymseed.DataEncoding.FLOAT64
    steps = np.abs(np.diff(samples.astype(np.int64), prepend=np.int64(0)))
    return pymseed.DataEncoding.STEIM2 if steps.max() <= _STEIM2_MOST else pymseed.DataEncoding.INT32


def _read(path: Path, _name: str) -> Found:
    with pymseed.MS3Record.from_file(path) as records:
        said = json.loads(_checked_times(path, records))[_OURS]
    with pymseed.MS3TraceList.from_file(path, unpack_data=True) as traces:
        parts = [part for trace in traces for part in trace]
        if len(parts) != 1:
            raise BadInput(f"{path} is read as {len(parts)} runs of samples")
        samples = np.array(parts[0].np_datasamples)
        rate, start = parts[0].samprate, parts[0].starttime
    return Found(
        samples, rate, start, said["units"], said["adc_gain"], said["baseline"], said["source"], said["channel"]
    )


def _checked_times(path: Path, records: Iterator[Any]) -> str:
    """What the first record says beside its samples. Raises `BadInput` where a record begins at another time than its
    samples do."""
    first = next(records)
    start, rate, extra, at = first.starttime, first.samprate, first.extra, first.samplecnt
    for one in records:
        if abs(one.starttime - _time(start, at, rate)) >= _LEAST_SHIFT_NS:
            raise BadInput(f"{path} has a record that begins at {one.starttime} ns, not {_time(start, at, rate)} ns")
        at += one.samplecnt
    return str(extra)


FILE = FileFormat(".mseed", _write, _read)
