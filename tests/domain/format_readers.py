"""What a file says, read as a user of the format's own library reads it: none of our readers."""

from __future__ import annotations

import json
import warnings
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import edfio
import h5py
import numpy as np
import polars
import pymseed

with warnings.catch_warnings():
    # Of what pandas will change some day.
    warnings.simplefilter("ignore")
    import wfdb

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Said(NamedTuple):
    samples: Any
    rate_hz: float
    start_ns: int
    units: str
    gain: float
    baseline: float
    channel: str


def _ns(time: datetime) -> int:
    return (time.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1) * 1000


def mseed(path: Path) -> Said:
    with pymseed.MS3Record.from_file(path) as records:
        seen = [(r.extra, r.samprate, r.starttime) for r in records]
    ((extra, rate),) = {(extra, rate) for extra, rate, _ in seen}
    said = json.loads(extra)["Wavestitch"]
    with pymseed.MS3TraceList.from_file(path, unpack_data=True) as traces:
        (part,) = [p for t in traces for p in t]
        samples = np.array(part.np_datasamples)
    return Said(samples, rate, seen[0][2], said["units"], said["adc_gain"], said["baseline"], said["channel"])


def wfdb_(path: Path) -> Said:
    record = wfdb.rdrecord(str(path / path.name), physical=False)
    start = datetime.combine(record.base_date, record.base_time)
    about = (record.units[0], record.adc_gain[0], record.baseline[0], record.sig_name[0])
    return Said(record.d_signal[:, 0], record.fs, _ns(start), *about)


def edf(path: Path) -> Said:
    file = edfio.read_edf(path)
    assert file.is_continuous, "readers of EDF+C refuse it"
    (signal,) = file.signals
    low, high = (Fraction(repr(v)) for v in (signal.physical_min, signal.physical_max))
    gain = Fraction(signal.digital_max - signal.digital_min) / (high - low)
    baseline = signal.digital_min - low * gain
    return Said(
        signal.digital,
        signal.samples_per_data_record / file.data_record_duration,
        _ns(file.startdatetime),
        signal.physical_dimension,
        float(gain),
        float(baseline),
        signal.label,
    )


def _named(said: Any, samples: Any) -> Said:
    one = [said[n] for n in ("sampling_rate_hz", "start_time_ns", "units", "adc_gain", "baseline", "channel")]
    rate, start, units, gain, baseline, channel = one
    return Said(samples, float(rate), int(start), str(units), float(gain), float(baseline), str(channel))


def hdf5(path: Path) -> Said:
    with h5py.File(path) as file:
        return _named(file["samples"].attrs, file["samples"][()])


def parquet(path: Path) -> Said:
    (row,) = polars.read_parquet(path).to_dicts()
    return _named(row, polars.read_parquet(path)["samples"][0].to_numpy())


def npz(path: Path) -> Said:
    with np.load(path) as said:
        return _named(said, said["samples"])


READERS = {"mseed": mseed, "wfdb": wfdb_, "edf": edf, "hdf5": hdf5, "parquet": parquet, "npz": npz}
