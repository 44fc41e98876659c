"""EDF+C, by edfio: one signal, in data records that it fills. Names are an annotation at the beginning."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
from edfio import Edf, EdfAnnotation, EdfSignal, Recording, read_edf

from wavestitch.contracts.errors import BadInput
from wavestitch.reading.edf_layout import (
    Calibration,
    DataRecords,
    annotation_samples,
    calibration,
    data_records,
    gain_and_baseline,
)
from wavestitch.reading.formats.file_format import FileFormat, Found, about_json
from wavestitch.reading.waveform import Waveform

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _write(waveform: Waveform, path: Path, _name: str) -> None:
    samples = waveform.samples
    extremes = {"sample_min": samples.min(), "sample_max": samples.max()}
    scale = calibration({"adc_gain": waveform.gain, "baseline": waveform.baseline, **extremes})
    start = _EPOCH + timedelta(microseconds=waveform.start_ns // 1000)
    text = about_json(waveform)
    beside = _around(start) + len(text)
    records = data_records(len(samples), waveform.rate_hz, beside=math.ceil(beside / 2))
    if scale is None or records is None:
        raise BadInput(f"the samples of {waveform.id!r} are not those that its row speaks of")
    # With spaces behind it, so that the signal of annotations is of the length that the library asks for.
    room = 2 * annotation_samples(math.ceil(beside / 2), len(samples), records)
    signal = EdfSignal.from_digital(
        np.ascontiguousarray(samples, np.int16),
        waveform.rate_hz,
        label=waveform.channel,
        physical_dimension=waveform.units,
        physical_range=_from_within(scale.physical),
        digital_range=scale.digital,
    )
    edf = Edf(
        [signal],
        recording=Recording(startdate=start.date()),
        starttime=start.time(),
        data_record_duration=records.seconds,
        annotations=[EdfAnnotation(0, None, text.ljust(room - _around(start)))],
    )
    edf.write(path)
    _say_times_exactly(path, edf, records, start)


def _say_times_exactly(path: Path, edf: Edf, records: DataRecords, start: datetime) -> None:
    """When each data record but the first begins, which the library reckons in floats: 1 after 0.816 is
    1.8159999999999998 there, and whoever reads finds a gap. Nothing else is said in these."""
    at, lasts = Decimal(start.microsecond) / 10**6, Decimal(repr(records.seconds))
    header, count = edf.bytes_in_header_record, edf.num_data_records
    each = (path.stat().st_size - header) // count
    room = each - 2 * records.samples
    with path.open("r+b") as file:
        for n in range(1, count):
            file.seek(header + (n + 1) * each - room)
            file.write(f"+{(at + n * lasts).normalize():f}\x14\x14".encode().ljust(room, b"\0"))


def _around(start: datetime) -> int:
    """Bytes around the text of the annotation: the first data record says when it begins, and then the text. The time,
    which is 0 or a fraction of a second, and three bytes around it, twice."""
    return 2 * (len(np.format_float_positional(start.microsecond / 10**6, trim="-", sign=True)) + 3)


def _from_within(physical: tuple[float, float]) -> tuple[float, float]:
    """The ends as the library has to be told them. It rounds each outwards to 8 characters, in floats, where
    -163.845 * 1000 is below -163845 and ends as -163.846; from the next float further in it ends at what is meant."""
    low, high = physical
    low = low if low.is_integer() else math.nextafter(low, math.inf)
    return low, high if high.is_integer() else math.nextafter(high, -math.inf)


def _read(path: Path, _name: str) -> Found:
    edf = read_edf(path)
    (signal,) = edf.signals
    said = json.loads(edf.annotations[0].text)
    physical = (signal.physical_min, signal.physical_max)
    gain, baseline = gain_and_baseline(Calibration((signal.digital_min, signal.digital_max), physical))
    start = edf.startdatetime.replace(tzinfo=UTC)
    return Found(
        signal.digital,
        signal.sampling_frequency,
        (start - _EPOCH) // timedelta(microseconds=1) * 1000,
        signal.physical_dimension,
        gain,
        baseline,
        said["source"],
        signal.label,
    )


FILE = FileFormat(".edf", _write, _read)
