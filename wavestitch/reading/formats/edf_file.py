"""EDF+C, by edfio: one signal, in data records that it fills. Names are an annotation at the beginning."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
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
    records = data_records(len(samples), waveform.rate_hz)
    if scale is None or records is None:
        raise BadInput(f"the samples of {waveform.id!r} are not those that its row speaks of")
    start = _EPOCH + timedelta(microseconds=waveform.start_ns // 1000)
    signal = EdfSignal.from_digital(
        np.ascontiguousarray(samples, np.int16),
        waveform.rate_hz,
        label=waveform.channel,
        physical_dimension=waveform.units,
        physical_range=_from_within(scale.physical),
        digital_range=scale.digital,
    )
    Edf(
        [signal],
        recording=Recording(startdate=start.date()),
        starttime=start.time(),
        data_record_duration=records.seconds,
        annotations=[EdfAnnotation(0, None, _spaced(about_json(waveform), len(samples), records, start))],
    ).write(path)


def _spaced(text: str, samples: int, records: DataRecords, start: datetime) -> str:
    """With spaces behind it, so that the signal of annotations is of the length that the library asks for."""
    # The first data record says when it begins, and then the text: the time, which is 0 or a fraction of a second, and
    # three bytes around it, twice.
    onset = np.format_float_positional(start.microsecond / 10**6, trim="-", sign=True)
    beside = 2 * (len(onset) + 3)
    least = math.ceil((beside + len(text)) / 2)
    return text.ljust(2 * annotation_samples(least, samples, records) - beside)


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
