"""What each file format can carry exactly: the one place where that is written down, as data.

A waveform goes into a format where all of the format's rules hold for it; otherwise it is refused by the first that
does not, and nothing is ever rounded, padded, cut or left out to make it fit. Decided by the table's row alone, without
its samples. Pure. docs/reading.md shows the same table; a test holds them against each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from wavestitch.contracts.errors import Refused
from wavestitch.reading.edf_layout import calibration, data_records

Format = Literal["mseed", "wfdb", "edf", "hdf5", "parquet", "npz"]
FORMATS: tuple[Format, ...] = get_args(Format)

Row = Mapping[str, Any]
_WHOLE_US = 1000
_YEAR_1903_NS = -2_114_380_800 * 10**9
_YEAR_1985_NS, _YEAR_2085_NS = 473_385_600 * 10**9, 3_629_059_200 * 10**9
_TEXTS = ("waveform_id", "source", "channel", "units")


@dataclass(frozen=True, slots=True)
class Rule:
    """`about`: the columns that are looked at, and shown where it does not hold. `allowed`: what holds, in words."""

    about: tuple[str, ...]
    allowed: str
    holds: Callable[[Row], bool]


def _formats(*named: str) -> Rule:
    return Rule(("sample_format",), " ".join(named), lambda row: row["sample_format"] in named)


def source_id(row: Row) -> str:
    """What miniSEED calls the series: an FDSN identifier names its channel, any other source does not."""
    source, channel = str(row["source"]), str(row["channel"])
    return source if source.startswith("FDSN:") else f"{source}_{channel}"


def _plain_ascii(text: str, *, most: int) -> bool:
    return len(text) <= most and text.isascii() and text.isprintable() and text == text.strip()


def _mseed_rate(row: Row) -> bool:
    rate = row["sampling_rate_hz"]
    # Below 1 Hz the library writes the period.
    return bool(rate <= 1e8 and (rate >= 1 or 1 / (1 / rate) == rate))


def _wfdb_rate(row: Row) -> bool:
    rate = row["sampling_rate_hz"]
    # The library writes what is within 5e-9 of a whole number as that number.
    return "e" not in repr(rate) and (rate == int(rate) or round(rate, 8) != int(rate))


def _no_nul(row: Row) -> bool:
    return not any("\0" in str(row[name]) for name in _TEXTS)


_ANY = _formats("i16le", "i32le", "i64le", "f32le", "f64le")
_WHOLE_MICROSECONDS = Rule(
    ("start_time_ns",), "a start at a whole microsecond", lambda row: row["start_time_ns"] % _WHOLE_US == 0
)
_POSITIVE_GAIN = Rule(("adc_gain",), "a gain above 0", lambda row: row["adc_gain"] > 0)
_NO_NUL = Rule(_TEXTS, "texts without a NUL", _no_nul)

EXACT: Mapping[Format, tuple[Rule, ...]] = {
    "mseed": (
        _formats("i16le", "i32le", "f32le", "f64le"),
        Rule(("sampling_rate_hz",), "a rate of up to 100 MHz; below 1 Hz one that its period gives back", _mseed_rate),
        Rule(("start_time_ns",), "a start from 1903 on", lambda row: row["start_time_ns"] >= _YEAR_1903_NS),
        Rule(
            ("source", "channel"),
            "a source identifier (the source, and the channel where it is not FDSN's) of 63 printable ASCII characters",
            lambda row: _plain_ascii(source_id(row), most=63),
        ),
    ),
    "wfdb": (
        _formats("i16le", "i32le"),
        Rule(
            ("sample_format", "sample_min"),
            "no sample of -2147483648, which means that there is none",
            lambda row: row["sample_min"] > -(2**31),
        ),
        Rule(("sampling_rate_hz",), "a rate that is written without exponent", _wfdb_rate),
        _POSITIVE_GAIN,
        Rule(
            ("baseline",),
            "a baseline that is a whole number of 32 bits",
            lambda row: row["baseline"] == int(row["baseline"]) and -(2**31) <= row["baseline"] < 2**31,
        ),
        Rule(
            ("units",),
            "units of letters, digits and ^ - ? % / _",
            lambda row: re.fullmatch(r"[A-Za-z0-9_^?%/-]+", row["units"]) is not None,
        ),
        Rule(
            ("channel",),
            "a channel in printable ASCII",
            lambda row: bool(row["channel"]) and _plain_ascii(row["channel"], most=256),
        ),
        _WHOLE_MICROSECONDS,
    ),
    "edf": (
        _formats("i16le"),
        _POSITIVE_GAIN,
        Rule(
            ("adc_gain", "baseline", "sample_min", "sample_max"),
            "a gain and a baseline that two physical values of 8 characters each say exactly",
            lambda row: calibration(row) is not None,
        ),
        Rule(
            ("sampling_rate_hz", "sample_count"),
            "a length of whole data records, of one or of several of 256 samples and more, whose duration is said "
            "exactly by 8 characters, and whose number is reckoned back from how long they last",
            lambda row: data_records(int(row["sample_count"]), float(row["sampling_rate_hz"])) is not None,
        ),
        Rule(("units",), "units of 8 printable ASCII characters", lambda row: _plain_ascii(row["units"], most=8)),
        Rule(
            ("channel",),
            "a channel of 16 printable ASCII characters",
            lambda row: _plain_ascii(row["channel"], most=16) and row["channel"] != "EDF Annotations",
        ),
        _WHOLE_MICROSECONDS,
        Rule(
            ("start_time_ns",),
            "a start in the years 1985 to 2084",
            lambda row: _YEAR_1985_NS <= row["start_time_ns"] < _YEAR_2085_NS,
        ),
    ),
    "hdf5": (_ANY, _NO_NUL),
    "parquet": (_ANY,),
    "npz": (_ANY, _NO_NUL),
}


def broken_rule(row: Row, to: Format) -> Rule | None:
    """The first rule of the format that does not hold for a row; None where the format can carry it exactly."""
    return next((rule for rule in EXACT[to] if not rule.holds(row)), None)


def refuse_inexact(row: Row, to: Format) -> None:
    """Raises `Refused` where the format cannot carry this waveform exactly."""
    rule = broken_rule(row, to)
    if rule is None:
        return
    seen = ", ".join(f"{name} {row[name]!r}" for name in rule.about)
    others = [name for name in FORMATS if broken_rule(row, name) is None]
    raise Refused(
        f"waveform {row['waveform_id']!r} cannot be written as {to} exactly: it has {seen}; {to} takes {rule.allowed}. "
        f"Nothing is rounded: take {', '.join(others)} for it, or leave it out",
        waveform=row["waveform_id"],
        to=to,
    )
