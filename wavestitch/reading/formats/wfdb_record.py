"""A WFDB record, by wfdb: a header and a signal file, in a folder of their own. Names are a comment of the header."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import wfdb

from wavestitch.reading.formats.file_format import FileFormat, Found, about_json
from wavestitch.reading.waveform import Waveform

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _write(waveform: Waveform, path: Path, name: str) -> None:
    start = _EPOCH + timedelta(microseconds=waveform.start_ns // 1000)
    # Of 16 bits, -32768 means that there is no sample.
    narrow = waveform.format == "i16le" and waveform.samples.min() > -(2**15)
    wfdb.wrsamp(
        name,
        fs=waveform.rate_hz,
        units=[waveform.units],
        sig_name=[waveform.channel],
        d_signal=waveform.samples.reshape(-1, 1),
        fmt=["16" if narrow else "32"],
        adc_gain=[waveform.gain],
        baseline=[int(waveform.baseline)],
        comments=[about_json(waveform)],
        base_time=start.time(),
        base_date=start.date(),
        write_dir=str(path),
    )


def _read(path: Path, name: str) -> Found:
    record = wfdb.rdrecord(str(path / name), physical=False)
    said = json.loads(record.comments[0])
    start = datetime.combine(record.base_date, record.base_time, tzinfo=UTC)
    return Found(
        record.d_signal[:, 0],
        float(record.fs),
        (start - _EPOCH) // timedelta(microseconds=1) * 1000,
        record.units[0],
        record.adc_gain[0],
        float(record.baseline[0]),
        said["source"],
        record.sig_name[0],
    )


FILE = FileFormat("", _write, _read)
