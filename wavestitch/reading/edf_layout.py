"""How a waveform lies in an EDF file, where it can exactly: its calibration and its data records. Pure arithmetic.

EDF says neither gain nor rate: it says two digital and two physical values, and samples and duration of a data record,
each in 8 characters. Both are looked for with fractions, so that they give back the very gain, baseline and rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import count as count_from
from math import ceil, isqrt
from typing import Any, NamedTuple

_CHARACTERS = 8
_LEAST, _MOST = -(2**15), 2**15 - 1
_RECORD_SAMPLES = 30_720
"""EDF asks for data records of 61,440 bytes at most."""
_LEAST_SAMPLES = 256
"""Of each of several data records: what is said once takes as much room in every one, some hundred bytes."""
_MOST_RECORDS = 10**8 - 1
_BESIDE = 10
"""A data record of a second, which EDF recommends, has so many times what annotations take beside its samples."""


class Calibration(NamedTuple):
    """Digital values and the physical ones that they mean."""

    digital: tuple[int, int]
    physical: tuple[float, float]


class DataRecords(NamedTuple):
    """How many samples a data record has, and how long it lasts."""

    samples: int
    seconds: float


def calibration(row: Mapping[str, Any]) -> Calibration | None:
    """Of a row's gain and baseline, for a range that all its samples lie in; None where there is none."""
    gain, baseline = Fraction(_decimal(row["adc_gain"])), Fraction(_decimal(row["baseline"]))
    if gain <= 0:
        return None
    least, most = int(row["sample_min"]), int(row["sample_max"])
    # Physical values are (digital - baseline) / gain. The whole range first; then, for a gain like 3, that range whose
    # ends are multiples of it away from the baseline.
    step = gain.numerator
    whole = baseline.denominator == 1
    low = _LEAST + (int(baseline) - _LEAST) % step if whole else _LEAST
    high = _MOST - (_MOST - int(baseline)) % step if whole else _MOST
    for first, last in ((_LEAST, _MOST), (low, high)):
        ends = [_eight((digital - baseline) / gain) for digital in (first, last)]
        if first <= least and most <= last and first < last and None not in ends:
            return Calibration((first, last), (float(ends[0] or 0), float(ends[1] or 0)))
    return None


def gain_and_baseline(found: Calibration) -> tuple[float, float]:
    """What a calibration that was read means, exactly as its decimal numbers say."""
    (first, last), (low, high) = found.digital, (Fraction(_decimal(value)) for value in found.physical)
    gain = Fraction(last - first) / (high - low)
    return float(gain), float(first - low * gain)


def data_records(samples: int, rate_hz: float, *, beside: int = 0) -> DataRecords | None:
    """Equal data records that hold so many samples at this rate exactly. None where there are none.

    `beside`: room of so many samples that annotations take in each: where that is little, they last a second; else they
    are the longest that EDF recommends, or, where even these would have less of samples than of it, the next longer."""
    rate = Fraction(_decimal(rate_hz))
    found = [r for each in _divisors(samples) if (r := _record(each, samples, rate)) is not None]
    right = [r for r in found if r.samples <= _RECORD_SAMPLES]
    second = next((r for r in right if r.seconds == 1 and r.samples >= _BESIDE * beside), None)
    longest = max(right, default=None)
    longer = min((r for r in found if r.samples > _RECORD_SAMPLES), default=None)
    if longest is None or (longer is not None and longest.samples < beside):
        return longer
    return second or longest


def _record(each: int, samples: int, rate: Fraction) -> DataRecords | None:
    text = _eight(each / rate)
    count = samples // each
    if text is None or count > _MOST_RECORDS or each > _MOST_RECORDS or (count > 1 and each < _LEAST_SAMPLES):
        return None
    seconds, rate_hz = float(text), float(rate)
    # As the library does it, in floats: on the way in, and out, where it looks for annotations up to the end of the
    # last data record that it reckons with.
    lasts = _seconds(samples, rate_hz)
    whole = lasts / seconds == count or Decimal(str(lasts)) / Decimal(text) == count
    back = each / seconds == rate_hz and ceil(count * seconds / seconds - 1e-12) <= count
    return DataRecords(each, seconds) if whole and back else None


def annotation_samples(least: int, samples: int, records: DataRecords) -> int:
    """How many samples, or two characters each, annotations have in a data record: so many at least, and such that by
    the library's reckoning, in floats, they last as long as the waveform's. Twice as many, or four times, last as long:
    there is such a number."""
    count, lasts = samples // records.samples, _seconds(samples, records.samples / records.seconds)
    return next(each for each in count_from(least) if _seconds(each * count, each / records.seconds) == lasts)


def _seconds(samples: int, rate_hz: float) -> float:
    return round(samples / rate_hz, 12)


def _divisors(number: int) -> Iterator[int]:
    for low in range(1, isqrt(number) + 1):
        if number % low == 0:
            yield low
            if low != number // low:
                yield number // low


def _decimal(value: float) -> Decimal:
    """The shortest decimal number that is this float: what people write, and files say."""
    return Decimal(repr(float(value)))


def _eight(value: Fraction) -> str | None:
    """A number in 8 characters as the library writes it; None where it is not exactly that. EDF knows no exponents."""
    try:
        number = float(value)
    except OverflowError:  # a producer may say a gain of 1e-300
        return None
    text = str(int(number)) if number.is_integer() else str(number)
    plain = len(text) <= _CHARACTERS and "e" not in text
    return text if plain and Fraction(Decimal(text)) == value else None
