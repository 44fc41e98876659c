"""The metadata of a chunk: what they mean, what they must not be, and that no text whatever makes reading them fail."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.test_chunk_header import FIELDS, META, headers, is_an_answer, parse, rejected
from wavestitch.contracts import chunk_metadata
from wavestitch.contracts.chunk_header import MAX_META_BYTES, Chunk
from wavestitch.contracts.chunk_metadata import MAX_DEPTH, MAX_TIME_NS, Metadata, parse_metadata
from wavestitch.contracts.reasons import Reason


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"source": None}, "source"),
        ({"source": 7}, "source"),
        ({"channel": "x" * 257}, "channel"),
        ({"units": ["mV"]}, "units"),
        ({"source": "\ud800"}, "source is not valid Unicode"),
        ({"sample_format": "i16be"}, "sample_format is 'i16be'"),
        ({"sample_format": None}, "sample_format"),
        ({"sample_format": ["i16le"]}, "sample_format"),
        ({"sampling_rate_hz": 0}, "sampling_rate_hz is 0"),
        ({"sampling_rate_hz": -360}, "sampling_rate_hz is -360"),
        ({"sampling_rate_hz": 1e13}, "sampling_rate_hz"),
        ({"sampling_rate_hz": True}, "sampling_rate_hz is True"),
        ({"sampling_rate_hz": "360"}, "sampling_rate_hz"),
        ({"sampling_rate_hz": float("nan")}, "not JSON"),
        ({"sampling_rate_hz": 10**400}, "sampling_rate_hz"),
        ({"adc_gain": 0}, "adc_gain is 0"),
        ({"adc_gain": None}, "adc_gain"),
        ({"baseline": float("inf")}, "not JSON"),
        ({"baseline": "1024"}, "baseline"),
        ({"start_time_ns": 1.0}, "start_time_ns is 1.0"),
        ({"start_time_ns": True}, "start_time_ns is True"),
        ({"start_time_ns": MAX_TIME_NS + 1}, "start_time_ns"),
        ({"start_time_ns": -MAX_TIME_NS - 1}, "start_time_ns"),
        ({"sample_count": 0}, "sample_count is 0"),
        ({"sample_count": -1}, "sample_count is -1"),
        ({"sample_count": 2.0}, "sample_count is 2.0"),
        ({"sample_count": (1 << 40) + 1}, "sample_count"),
    ],
)
def test_metadata_that_mean_nothing_are_rejected_by_field(changes: dict[str, Any], says: str) -> None:
    meta = json.dumps({**FIELDS, **changes}).encode()
    assert says in rejected(parse(headers(meta=meta)), Reason.BAD_METADATA).evidence


@pytest.mark.parametrize("name", sorted(FIELDS.keys() - {"sample_count"}))
def test_metadata_without_a_required_field_are_rejected(name: str) -> None:
    meta = json.dumps({k: v for k, v in FIELDS.items() if k != name}).encode()
    assert name in rejected(parse(headers(meta=meta)), Reason.BAD_METADATA).evidence


@pytest.mark.parametrize(
    "meta",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"{'a':1}",
        b"\xff\xfe",
        b"[" * 8000,
        b'{"a":' * 3000,
        b"9" * 5000,
        b'{"sampling_rate_hz":1e999}',
        META.encode() + b"x",
        b'{"note":"' + b"x" * MAX_META_BYTES + b'"}',
    ],
)
def test_metadata_that_are_not_one_json_object_of_bounded_size_are_rejected(meta: bytes) -> None:
    rejected(parse(headers(meta=meta)), Reason.BAD_METADATA)


def below(frames: int, meta: str) -> Metadata | str:
    """What it is read as by a caller that stands so much deeper."""
    return parse_metadata(meta) if frames == 0 else below(frames - 1, meta)


@pytest.mark.parametrize("opened, closed", ["[]", ('[{"a":', "}]")])
@pytest.mark.parametrize("depth", [30, 31, 32, 62, 63, 64, 300, 440, 480, 495, 800, 880, 930, 960, 990])
def test_metadata_mean_the_same_however_deep_their_reader_stands(opened: str, closed: str, depth: int) -> None:
    meta = META[:-1] + ',"note":' + opened * depth + ("1" if len(opened) > 1 else "") + closed * depth + "}"
    found = parse_metadata(meta)
    inside = depth * sum(map(opened.count, "[{"))
    assert isinstance(found, Metadata) == (inside < MAX_DEPTH)
    assert all(below(frames, meta) == found for frames in (50, 200, 500, 700))


def test_brackets_in_texts_are_no_depth_and_a_text_without_an_end_costs_no_more_than_its_length() -> None:
    assert isinstance(parse_metadata(META[:-1] + ',"note":"' + "[" * 1000 + '\\"{"}'), Metadata)
    for torn in ('"\\' * 8000, '"[' * 8000, "[" * 65 + '"' + "\\" * 15_999):
        assert isinstance(parse_metadata(torn), str)


@pytest.mark.parametrize("depth", [300, 500, 700, 900, 990])
def test_deeply_nested_metadata_are_rejected_and_not_followed_into_the_ground(depth: int) -> None:
    meta = b'{"sample_format":' + b"[" * depth + b"]" * depth + b"}"
    rejected(parse(headers(meta=meta)), Reason.BAD_METADATA)


@pytest.mark.parametrize("field", ["adc_gain", "baseline"])
@pytest.mark.parametrize("number", ["1e999", "-1e999"])
def test_a_number_that_no_float_holds_is_rejected_by_field(field: str, number: str) -> None:
    meta = json.dumps({**FIELDS, field: "#"}).replace('"#"', number)
    assert parse_metadata(meta) == f"{field} is {float(number)}; it must be finite"


def test_what_is_beside_each_other_is_no_depth() -> None:
    for inside, is_valid in ((MAX_DEPTH - 1, True), (MAX_DEPTH, False)):
        meta = META[:-1] + ',"beside":[[],{}],"note":' + "[" * inside + "]" * inside + "}"
        assert isinstance(parse_metadata(meta), Metadata) is is_valid


def test_metadata_are_interpreted_with_their_units() -> None:
    found = parse_metadata(META)
    assert found == Metadata(
        source="mitdb-208",
        channel="MLII",
        start_time_ns=1_700_000_000_123_456_789,
        sampling_rate_hz=360.0,
        sample_format="i16le",
        units="mV",
        adc_gain=200.0,
        baseline=1024.0,
        sample_count=24,
    )
    assert isinstance(found, Metadata)
    assert found.sample_bytes == 2
    assert found.end_time_ns(361) == found.start_time_ns + 1_000_000_000
    assert found.end_time_ns(1) == found.end_time_ns(0) == found.start_time_ns


# What is said of a text without reading it as JSON, since others like it were read


STARTS = (
    *("5", "0", "-0", "7", "8", "-1", "01", "1.0", "1e3", "+1", "null", "", "9" * 19, "9" * 20, "9" * 5000),
    *(str(n) for n in (MAX_TIME_NS, -MAX_TIME_NS, MAX_TIME_NS + 1, -MAX_TIME_NS - 1)),
)
REST = json.dumps({k: v for k, v in FIELDS.items() if k != "start_time_ns"})[1:-1]
FORMS = {
    "as producers write it": '{#,"start_time_ns":@}',
    "with blanks": '{"start_time_ns": \t@ , #}',
    "with a blank that is none": '{"start_time_ns":\u00a0@,#}',
    "not JSON behind it": '{"start_time_ns":@,#,}',
    "within a text": '{"note":"\\"start_time_ns\\":@,",#,"start_time_ns":5}',
    "at the end of another key": '{"\\"start_time_ns":@,#,"start_time_ns":5}',
    "of an object within": '{"note":{"start_time_ns":@},#,"start_time_ns":5}',
    "of an object within, and no other": '{"note":{"start_time_ns":@},#}',
    "twice": '{"start_time_ns":@,#,"start_time_ns":@}',
    "under an escaped name first": '{"\\u0073tart_time_ns":5,#,"start_time_ns":@}',
    "nested too deep": '{"start_time_ns":@,#,"note":' + "[" * 64 + "]" * 64 + "}",
    "of a long text": '{"start_time_ns":@,#,"note":"' + "x" * 900 + '"}',
}


@pytest.mark.parametrize("form", FORMS)
def test_what_texts_alike_have_proven_is_what_reading_the_next_one_says(form: str) -> None:
    texts = [FORMS[form].replace("#", REST).replace("@", start) for start in STARTS]
    read = [chunk_metadata._parse(text) for text in texts]
    for order in (texts, texts[::-1], [*texts, *texts]):
        chunk_metadata._met.clear()
        chunk_metadata._proven.clear()
        assert {text: parse_metadata(text) for text in order} == dict(zip(texts, read, strict=True))


def test_metadata_alike_are_read_twice_and_what_is_remembered_of_them_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    parse = chunk_metadata._parse

    def told(text: str) -> Metadata | str:
        read.append(text)
        return parse(text)

    monkeypatch.setattr(chunk_metadata, "_parse", told)
    monkeypatch.setattr(chunk_metadata, "_MOST_FORMS", 10)
    chunk_metadata._met.clear()
    chunk_metadata._proven.clear()
    alike = [json.dumps({**FIELDS, "start_time_ns": n}) for n in range(20)]
    assert [parse_metadata(text).start_time_ns for text in alike] == list(range(20))  # type: ignore[union-attr]
    assert read == alike[:2]
    for n in range(100):
        parse_metadata(json.dumps({**FIELDS, "channel": str(n)}))
        assert max(len(chunk_metadata._met), len(chunk_metadata._proven)) <= 11


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=300)
@given(changes=st.dictionaries(st.sampled_from(sorted(FIELDS)) | st.text(), json_values, max_size=4))
def test_no_sealed_metadata_make_parsing_raise_and_accepted_ones_can_be_read_again(changes: dict[str, Any]) -> None:
    meta = json.dumps({**FIELDS, **changes}).encode()
    found = parse(headers(meta=meta))
    assert is_an_answer(found)
    if isinstance(found, Chunk):
        assert isinstance(parse_metadata(found.meta), Metadata)


@settings(max_examples=300)
@given(meta=st.binary(max_size=60))
def test_no_sealed_bytes_as_metadata_make_parsing_raise(meta: bytes) -> None:
    rejected(parse(headers(meta=meta)), Reason.BAD_METADATA)


# Encodings of JSON other than UTF-8: `json.loads` understands them, the contract (and every later reader) does not


@pytest.mark.parametrize(
    "meta",
    [
        META.encode("utf-16"),
        META.encode("utf-16-le"),
        META.encode("utf-16-be"),
        META.encode("utf-32"),
        META.encode("utf-8-sig"),
        json.dumps({**FIELDS, "note": "@"}).encode().replace(b"@", b"\xed\xa0\x80"),
    ],
    ids=["utf-16", "utf-16-le", "utf-16-be", "utf-32", "bom", "surrogate"],
)
def test_metadata_that_are_not_utf_8_are_rejected(meta: bytes) -> None:
    rejected(parse(headers(meta=meta)), Reason.BAD_METADATA)


def test_the_end_time_of_any_accepted_metadata_can_be_computed() -> None:
    found = parse_metadata(json.dumps({**FIELDS, "sampling_rate_hz": 5e-324}))
    assert isinstance(found, str) or found.end_time_ns(2) > found.start_time_ns


@pytest.mark.parametrize(
    "more",
    [b',"sampling_rate_hz":360', b',"source":"another"', b',"\\u0073ource":"another"', b',"note":{"a":1,"a":1}'],
    ids=["same value", "another value", "escaped", "in a key that is not interpreted"],
)
def test_a_key_that_occurs_twice_is_rejected(more: bytes) -> None:
    """One reader takes the first, another the last: the same bytes would mean two things."""
    meta = META.encode()[:-1] + more + b"}"
    assert "occurs twice" in rejected(parse(headers(meta=meta)), Reason.BAD_METADATA).evidence
