"""Hostile metadata: text that is no JSON object, and objects whose fields mean nothing, or too much."""

from __future__ import annotations

import json
from typing import Any

from tests.hostile.kind import FIELDS, META, VALUE, Kind, fine, held, meta, sealed
from wavestitch.contracts.chunk_metadata import MAX_DEPTH
from wavestitch.contracts.reasons import Reason

LEVEL = "metadata"

NO_OBJECTS: dict[str, bytes] = {
    "nothing": b"",
    "null": b"null",
    "a list": b"[" + META + b"]",
    "a text": b'"text"',
    "a number": b"1",
    "half an object": META[:-1],
    "two objects": META + META,
    "an object and a NUL": META + b"\0",
    "single quotes": META.replace(b'"', b"'"),
    "a comment": b"{/* x */" + META[1:],
    "a comma too many": META[:-1] + b",}",
    "UTF-16": META.decode().encode("utf-16"),
    "UTF-16 without mark": META.decode().encode("utf-16-le"),
    "UTF-32": META.decode().encode("utf-32"),
    "a byte order mark": META.decode().encode("utf-8-sig"),
    "no UTF-8": META[:-1] + b',"note":"\xff"}',
    "an encoded surrogate": META[:-1] + b',"note":"\xed\xa0\x80"}',
    "a raw newline in a text": META[:-1] + b',"note":"\n"}',
    "8,000 open brackets": b"[" * 8000,
    "3,000 open objects": b'{"a":' * 3000,
    "a note 5,000 lists deep": META[:-1] + b',"note":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "a note that is one list too deep": META[:-1] + b',"note":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}",
    "a note that Python follows from some callers": META[:-1] + b',"note":' + b"[" * 950 + b"]" * 950 + b"}",
    "a note of 5,000 digits": META[:-1] + b',"note":' + b"9" * 5000 + b"}",
    "NaN in a note": META[:-1] + b',"note":NaN}',
    "infinity in a note": META[:-1] + b',"note":-Infinity}',
    "more than 16 KiB": META[:-1] + b',"note":"' + b"x" * (16 * 1024) + b'"}',
    "half a megabyte": META[:-1] + b',"note":"' + b"x" * (1 << 19) + b'"}',
    "the sampling rate twice": META[:-1] + b',"sampling_rate_hz":1}',
    "a key twice inside a note": META[:-1] + b',"note":{"a":1,"a":2}}',
    "a key twice, once escaped": META[:-1] + b',"\\u0073ource":"other"}',
}
NO_FIELDS: dict[str, dict[str, Any]] = {
    "a source that is a number": {"source": 7},
    "a source that is null": {"source": None},
    "a source of 257 characters": {"source": "x" * 257},
    "a source with half a surrogate pair": {"source": "\ud800"},
    "a channel that is a list": {"channel": ["II"]},
    "a channel of 10,000 characters": {"channel": "x" * 10_000},
    "units that are an object": {"units": {"mV": 1}},
    "units that are true": {"units": True},
    "an unknown sample format": {"sample_format": "i16be"},
    "a sample format in capitals": {"sample_format": "I16LE"},
    "a sample format of numpy's": {"sample_format": "<i2"},
    "a sample format that is a list": {"sample_format": ["i16le"]},
    "a sample format that is null": {"sample_format": None},
    "a sample format of 3 bytes": {"sample_format": "i24le"},
    "a rate of zero": {"sampling_rate_hz": 0},
    "a rate of minus zero": {"sampling_rate_hz": -0.0},
    "a negative rate": {"sampling_rate_hz": -1000},
    "a rate that is a text": {"sampling_rate_hz": "1000"},
    "a rate that is true": {"sampling_rate_hz": True},
    "the least rate above zero": {"sampling_rate_hz": 5e-324},
    "a rate above 1e12": {"sampling_rate_hz": 1e13},
    "a rate of 401 digits": {"sampling_rate_hz": 10**400},
    "a gain of zero": {"adc_gain": 0},
    "a gain of 0.0": {"adc_gain": 0.0},
    "a gain that is null": {"adc_gain": None},
    "a gain that is false": {"adc_gain": False},
    "a gain of 2**63": {"adc_gain": 1 << 63},
    "a baseline that is a text": {"baseline": "0"},
    "a baseline that is a list": {"baseline": [0]},
    "a baseline of 300 digits": {"baseline": 10**300},
    "a start that is a float": {"start_time_ns": 1.7e18},
    "a start that is a text": {"start_time_ns": "2026-01-01T00:00:00Z"},
    "a start that is true": {"start_time_ns": True},
    "a start at 2**63 - 1": {"start_time_ns": (1 << 63) - 1},
    "a start at 2**63": {"start_time_ns": 1 << 63},
    "a start at -2**63": {"start_time_ns": -(1 << 63)},
    "a start at 2**64": {"start_time_ns": 1 << 64},
    "a start one beyond 2**62": {"start_time_ns": (1 << 62) + 1},
    "a start of 4,000 digits": {"start_time_ns": 10**3999},
    "no samples at all": {"sample_count": 0},
    "a negative sample count": {"sample_count": -8},
    "a sample count that is a float": {"sample_count": 8.0},
    "a sample count that is true": {"sample_count": True},
    "a sample count that is a text": {"sample_count": "8"},
    "a sample count beyond 2**40": {"sample_count": (1 << 40) + 1},
}
TEXTS = {
    "a rate of 1e400": b'"sampling_rate_hz": 1e400',
    "a gain of NaN": b'"adc_gain": NaN',
    "a baseline of -1e999": b'"baseline": -1e999',
    "a start of -Infinity": b'"start_time_ns": -Infinity',
}
STRANGE: dict[str, dict[str, Any]] = {
    "empty texts": {"source": "", "channel": "", "units": ""},
    "a NUL in a text": {"source": "a\0b"},
    "a source that is a path": {"source": "../../etc/passwd", "channel": "/dev/null"},
    "a source that is a template": {"source": "{{ conf }}", "units": "<img src=x>"},
    "characters beyond 16 bits": {"source": "\U0010ffff" * 256},
    "units that nobody knows": {"units": "furlong/fortnight"},
    "a rate in exponent form": {"sampling_rate_hz": 3.6e2},
    "the least rate that is allowed": {"sampling_rate_hz": 1e-6},
    "the greatest rate that is allowed": {"sampling_rate_hz": 1e12},
    "the least gain above zero": {"adc_gain": 5e-324},
    "a negative gain": {"adc_gain": -1e-9},
    "the greatest gain": {"adc_gain": 1.7976931348623157e308},
    "the least baseline": {"baseline": -1.7976931348623157e308},
    "a sample count that is null": {"sample_count": None},
    "a foreign key of 4,000 digits": {"note": 10**3999},
    "a foreign key as deep as is allowed": {"note": json.loads("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))},
    "brackets inside of texts": {"note": '[{\\"' * 1000},
    "foreign keys without end": {f"k{n}": n for n in range(1000)},
    "a key that is called like ours, almost": {"Sample_Format": "f64le", "sample_count ": 3},
    "a key without a name": {"": None},
    "the keys of an object's own": {"__class__": "x", "__proto__": {"polluted": True}},
}


def metadata_kinds() -> list[Kind]:
    return [*_no_objects(), *_no_fields(), *_strange(), *_times()]


def _no_objects() -> list[Kind]:
    return [
        held(LEVEL, f"metadata: {what}", "one JSON object, each key once", Reason.BAD_METADATA, sealed("m", meta=raw))
        for what, raw in NO_OBJECTS.items()
    ]


def _no_fields() -> list[Kind]:
    lacking = {f"no {name}": {name: ...} for name in FIELDS}
    found = {what: meta(**changes) for what, changes in {**NO_FIELDS, **lacking}.items()}
    for what, text in TEXTS.items():
        name = json.loads(b"{" + text.split(b":")[0] + b":0}")
        rest = {k: v for k, v in FIELDS.items() if k not in name}
        found[what] = b"{" + text + b"," + json.dumps(rest)[1:].encode()
    return [
        held(LEVEL, what, "the contract names each field's values", Reason.BAD_METADATA, sealed("m", meta=raw))
        for what, raw in found.items()
    ]


def _strange() -> list[Kind]:
    found = [
        fine(
            LEVEL,
            what,
            "nothing: the contract allows it",
            sealed(f"strange: {what}", meta=meta(**changes)),
            samples={f"strange: {what}": VALUE},
        )
        for what, changes in STRANGE.items()
    ]
    padding = 16 * 1024 - len(meta(note=""))
    raw = {"exactly 16 KiB": meta(note="x" * padding), "infinity by overflow in a note": META[:-1] + b',"note":1e400}'}
    return found + [
        fine(LEVEL, what, "nothing: the contract allows it", sealed(what, meta=text), samples={what: VALUE})
        for what, text in raw.items()
    ]


def _times() -> list[Kind]:
    """Times that can be said and cannot be meant: a thousand day partitions would be made of them."""
    starts = {"1970": 0, "the year 1823": -(1 << 62), "the year 2116": 1 << 62, "the year 1896": -(1 << 61)}
    found = [
        held(
            LEVEL,
            f"a start in {what}",
            "too far from the record's own time",
            Reason.IMPLAUSIBLE_TIME,
            sealed(f"start {ns}", meta=meta(start_time_ns=ns)),
        )
        for what, ns in starts.items()
    ]
    endless = sealed("endless", meta=meta(sampling_rate_hz=1e-6), value=bytes(2 * 5000))
    found.append(
        held(LEVEL, "an end beyond time", "5,000 samples, a million s apart", Reason.IMPLAUSIBLE_TIME, endless)
    )
    counts = {"one sample more": 9, "one sample less": 7, "a trillion samples": 1 << 40}
    return found + [
        held(
            LEVEL,
            f"a sample count that promises {what}",
            "the chunks hold 8",
            Reason.WRONG_SAMPLE_COUNT,
            sealed(f"promise {n}", meta=meta(sample_count=n)),
        )
        for what, n in counts.items()
    ]
