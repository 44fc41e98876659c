"""`ws-meta`: what is said of a waveform as a whole, one JSON object, strictly read.

A claim like all headers: lengths and ranges are checked here, and what is wrong with it is said in a sentence. Pure.
Every number and text comes out as the JSON has it; keys that are not known are left alone, and are kept as text.

The same text means the same wherever it is read: how deep it is nested is counted here, since how deep Python follows
depends on how deep its caller stands, and what one step takes for valid no later one may take for junk.

Nearly all metadata are like those of the waveform before but for the start: what two texts with two starts have proven
of their common rest is said of the next one without reading it as JSON again.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

MAX_TIME_NS = 1 << 62
MAX_DEPTH = 64
"""Objects and lists of `ws-meta` inside each other, the outermost one included."""
SAMPLE_BYTES = {"i16le": 2, "i32le": 4, "i64le": 8, "f32le": 4, "f64le": 8}
_MOST_TEXT = 256
_EVIDENCE_CHARS = 120
_START = re.compile(r'"start_time_ns":\s*(-?(?:0|[1-9][0-9]{0,18}))(?=[\s,}])')
_MOST_FORMS = 4096
_MOST_FORM_CHARS = 600
# A text that is never closed is taken to the end, so that no place is looked at twice.
_BRACKETS = re.compile(r'"(?:[^"\\]+|\\.)*"?|[][{}]', re.DOTALL)


class Metadata(NamedTuple):
    """The interpreted part of `ws-meta`. Times in ns since the epoch (UTC), rate in Hz, gain in counts per unit."""

    source: str
    channel: str
    start_time_ns: int
    sampling_rate_hz: float
    sample_format: str
    units: str
    adc_gain: float
    baseline: float
    sample_count: int | None

    @property
    def sample_bytes(self) -> int:
        return SAMPLE_BYTES[self.sample_format]

    def end_time_ns(self, sample_count: int) -> int:
        """Time of the last of `sample_count` samples."""
        return self.start_time_ns + round(max(sample_count - 1, 0) * 1e9 / self.sampling_rate_hz)


_AT_START = Metadata._fields.index("start_time_ns")
_Form = tuple[str, str]
"""What stands before a start, and what behind it."""
_met: dict[_Form, int] = {}
"""Of a form that is valid with this start, the start: that it is the one that was read is not proven by one."""
_proven: dict[_Form, Metadata] = {}


def parse_metadata(meta: str | bytes) -> Metadata | str:
    """The metadata, or a sentence saying what is wrong with it."""
    try:
        # Decoded here: of bytes, `json` would also take UTF-16, UTF-32 and lone surrogates.
        text = meta if isinstance(meta, str) else meta.decode("utf-8")
    except UnicodeDecodeError:
        return "ws-meta is not UTF-8; it must be one JSON object in UTF-8"
    place = _START.search(text)
    if place is None or len(text) > _MOST_FORM_CHARS:
        return _parse(text)
    begin, end = place.span(1)
    form, start = (text[:begin], text[end:]), int(text[begin:end])
    alike = _proven.get(form)
    if alike is not None and -MAX_TIME_NS <= start <= MAX_TIME_NS:
        return Metadata._make((*alike[:_AT_START], start, *alike[_AT_START + 1 :]))
    found = _parse(text)
    if isinstance(found, Metadata) and found.start_time_ns == start:
        _remember(form, start, found)
    return found


def _remember(form: _Form, start: int, found: Metadata) -> None:
    """`found`: what the form says with this start. Where it says two starts as they stand in its place, it says every
    one: in a text, or in an object within, the number would not be the start."""
    if _met.setdefault(form, start) != start:
        _proven[form] = found
    if len(_met) > _MOST_FORMS:
        _met.clear()
        _proven.clear()


def _parse(text: str) -> Metadata | str:
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(text) > MAX_DEPTH:
        return f"ws-meta is nested more than {MAX_DEPTH} deep; allowed are so many objects and lists inside each other"
    try:
        found = _read(text)
    except _BadField as bad:
        return str(bad)
    except (ValueError, RecursionError):
        return "ws-meta is not JSON; it must be one JSON object"
    if not isinstance(found, dict):
        return f"ws-meta is a JSON {type(found).__name__}; it must be an object"
    try:
        return _interpret(found)
    except _BadField as bad:
        return str(bad)


def show(value: Any) -> str:
    """A short, printable form of a hostile value."""
    text = ascii(value)
    return text if len(text) <= _EVIDENCE_CHARS else text[:_EVIDENCE_CHARS] + "…"


class _BadField(Exception):
    """A field of ws-meta that is not what it must be."""


def _depth(text: str) -> int:
    """How deep the brackets outside of texts are nested; of JSON, exactly."""
    deepest = depth = 0
    for found in _BRACKETS.finditer(text):
        if found[0] in ("[", "{"):
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in ("]", "}"):
            depth -= 1
    return deepest


def _read(text: str) -> Any:
    if text[:1] == "{":
        found, end = _DECODER.raw_decode(text)
        if end == len(text):
            return found
    return _DECODER.decode(text)  # with blanks around it, or something else


def _interpret(found: dict[str, Any]) -> Metadata:
    fmt = found.get("sample_format")
    if fmt not in SAMPLE_BYTES if isinstance(fmt, str) else True:
        raise _BadField(f"sample_format is {show(fmt)}; allowed are {' '.join(SAMPLE_BYTES)}")
    rate = _number(found, "sampling_rate_hz")
    if not 1e-6 <= rate <= 1e12:
        raise _BadField(f"sampling_rate_hz is {rate}; it must be between 1e-6 and 1e12")
    gain = _number(found, "adc_gain")
    if gain == 0:
        raise _BadField("adc_gain is 0; physical = (sample - baseline) / adc_gain needs another value")
    start = found.get("start_time_ns")
    if type(start) is not int or not -MAX_TIME_NS <= start <= MAX_TIME_NS:
        raise _BadField(f"start_time_ns is {show(start)}; it must be a whole number of nanoseconds since 1970")
    total = found.get("sample_count")
    if total is not None and (type(total) is not int or not 0 < total <= 1 << 40):
        raise _BadField(f"sample_count is {show(total)}; it must be a whole number above 0")
    return Metadata(
        source=_text(found, "source"),
        channel=_text(found, "channel"),
        start_time_ns=start,
        sampling_rate_hz=rate,
        sample_format=str(fmt),
        units=_text(found, "units"),
        adc_gain=gain,
        baseline=_number(found, "baseline"),
        sample_count=total,
    )


def _number(found: dict[str, Any], name: str) -> float:
    value: Any = found.get(name)
    if type(value) is float and math.isfinite(value):
        return value
    # A JSON integer may have thousands of digits: it is bounded before it becomes a float.
    if type(value) not in (int, float) or (type(value) is int and abs(value) > 1 << 62):
        raise _BadField(f"{name} is {show(value)}; it must be a number")
    if not math.isfinite(value):
        raise _BadField(f"{name} is {value}; it must be finite")
    return float(value)


def _text(found: dict[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or len(value) > _MOST_TEXT:
        raise _BadField(f"{name} is {show(value)}; it must be a text of at most 256 characters")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _BadField(f"{name} is not valid Unicode text") from None
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        # One reader would take the first, another the last: then the same bytes mean two things.
        raise _BadField("a key occurs twice in an object of ws-meta; allowed is once")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)


# Made once: with a decoder of its own for each, reading one would take twice as long.
_DECODER = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_each_once)
