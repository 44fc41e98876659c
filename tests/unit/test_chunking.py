"""Cutting: what comes out parses as chunks of the contract, and joins to exactly what went in (I3)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.recordings import record_samples
from wavestitch.contracts.chunk_header import MAX_CHUNKS, MAX_META_BYTES, Chunk, parse_chunk
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.stream import Limits
from wavestitch.producers.chunking import cut_recording
from wavestitch.producers.record_size import batch_bytes
from wavestitch.producers.recording import Recording


@given(
    samples=st.binary(min_size=1, max_size=300),
    chunk_bytes=st.integers(8, 64),
    fmt=st.sampled_from(["i16le", "i32le", "i64le", "f32le", "f64le"]),
    keyed=st.booleans(),
    waveform_id=st.text(min_size=1, max_size=60).filter(lambda t: t.isprintable()),
)
def test_the_chunks_of_any_recording_are_valid_and_join_to_it(
    samples: bytes, chunk_bytes: int, fmt: str, keyed: bool, waveform_id: str
) -> None:
    whole = record_samples(samples * 8, sample_format=fmt, waveform_id=waveform_id)
    records = cut_recording(whole, chunk_bytes, keyed=keyed)
    parsed = [parse_chunk(r.key, r.headers, bytes(r.value)) for r in records]
    chunks = [c for c in parsed if isinstance(c, Chunk)]
    assert chunks == parsed
    assert [c.seq for c in chunks] == list(range(len(records)))
    assert {c.count for c in chunks} == {len(records)}
    assert {c.waveform_id for c in chunks} == {waveform_id}
    assert {c.meta for c in chunks} == {whole.meta}
    assert b"".join(r.value for r in records) == whole.samples
    assert all(len(r.value) <= chunk_bytes for r in records)
    assert len({len(r.value) for r in records[:-1]}) <= 1
    assert [c.digest for c in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert chunks[-1].digest == xxhash.xxh3_128_hexdigest(whole.samples)


def test_a_chunk_size_between_samples_is_rounded_down_to_whole_samples() -> None:
    assert [len(r.value) for r in cut_recording(record_samples(), 7)] == [6, 6, 6, 2]


def test_cutting_copies_no_sample() -> None:
    whole = record_samples()
    assert all(r.value.obj is whole.samples for r in cut_recording(whole, 8))


def test_keyed_chunks_have_no_id_header_and_keyless_ones_have_no_key() -> None:
    keyed, keyless = cut_recording(record_samples(), 8), cut_recording(record_samples(), 8, keyed=False)
    assert {r.key for r in keyed} == {b"bench-7/x"}
    assert not [r for r in keyed if "ws-id" in dict(r.headers)]
    assert {(r.key, dict(r.headers)["ws-id"]) for r in keyless} == {(None, b"bench-7/x")}


@pytest.mark.parametrize("chunk_bytes", [1, 0, -1, -8])
def test_a_chunk_smaller_than_a_sample_is_refused(chunk_bytes: int) -> None:
    with pytest.raises(BadInput, match="cannot hold a sample of 2 bytes"):
        cut_recording(record_samples(), chunk_bytes)


def test_a_waveform_of_just_the_allowed_size_is_cut_and_one_sample_more_is_refused() -> None:
    limits = Limits(max_waveform_bytes=20)
    assert len(cut_recording(record_samples(), 8, limits=limits)) == 3
    with pytest.raises(BadInput, match=r"has 22 bytes; the stream allows 20 \(max_waveform_bytes\)"):
        cut_recording(record_samples(bytes(22)), 8, limits=limits)


def test_as_many_chunks_as_allowed_are_cut_and_one_more_is_refused() -> None:
    limits = Limits(max_chunks=10)
    assert len(cut_recording(record_samples(), 2, limits=limits)) == 10
    with pytest.raises(BadInput, match="would be 11 chunks of 2 bytes; allowed are 10"):
        cut_recording(record_samples(bytes(22)), 2, limits=limits)


def test_more_chunks_than_the_contract_can_number_are_refused_before_they_are_made() -> None:
    with pytest.raises(BadInput, match=f"allowed are {MAX_CHUNKS}"):
        cut_recording(record_samples(bytes(2 * MAX_CHUNKS + 2)), 2, limits=Limits(max_chunks=MAX_CHUNKS))


def test_metadata_have_one_canonical_spelling() -> None:
    said: dict[str, Any] = {"start_time_ns": 1_700_000_000_000_000_000, "baseline": 1024}
    further = {"bed": "4b", "lead placement": "Mason-Likar µ"}
    meta = record_samples(sampling_rate_hz=360.0, adc_gain=200, further=further, **said).meta
    assert meta == (
        '{"adc_gain":200,"baseline":1024,"bed":"4b","channel":"x","lead placement":"Mason-Likar \\u00b5",'
        '"sample_count":10,"sample_format":"i16le","sampling_rate_hz":360,"source":"bench-7",'
        '"start_time_ns":1700000000000000000,"units":"mV"}'
    )
    again = dict(reversed(further.items()))
    assert meta == record_samples(sampling_rate_hz=360, adc_gain=200.0, further=again, **said).meta


def test_a_rate_that_is_no_whole_number_keeps_every_digit() -> None:
    assert json.loads(record_samples(sampling_rate_hz=359.99999).meta)["sampling_rate_hz"] == 359.99999


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"waveform_id": ""}, "has 0 bytes; allowed are 1 to 256"),
        ({"waveform_id": "µ" * 129}, "has 258 bytes"),
        ({"waveform_id": "\ud800"}, "not valid Unicode"),
        ({"samples": b""}, "sample_count is 0"),
        ({"samples": b"123"}, "whole samples of 2 bytes"),
        ({"sample_format": "i16be"}, "sample_format is 'i16be'"),
        ({"sampling_rate_hz": 0}, "sampling_rate_hz is 0"),
        ({"sampling_rate_hz": float("nan")}, "not JSON"),
        ({"adc_gain": 0}, "adc_gain is 0"),
        ({"start_time_ns": 1.5}, "start_time_ns is 1.5"),
        ({"further": {"source": "other"}}, "further keys source are the contract's own"),
        ({"further": {"noise": float("inf")}}, "not JSON"),
        ({"further": {"raw": b"bytes"}}, "not JSON"),
        ({"further": {"note": "x" * MAX_META_BYTES}}, "drop some of the further keys"),
    ],
)
def test_a_recording_that_could_not_become_valid_chunks_is_refused(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        record_samples(**changes)


def test_a_recording_whose_metadata_count_other_samples_is_refused() -> None:
    whole = record_samples()
    with pytest.raises(BadInput, match="9 samples, but its metadata say 10"):
        Recording(whole.waveform_id, whole.meta, whole.samples[2:])


def test_the_size_on_the_wire_covers_key_headers_and_value() -> None:
    record = cut_recording(record_samples(), 20)[0]
    content = len(record.key or b"") + len(record.value) + sum(len(k) + len(v) for k, v in record.headers)
    assert content + 61 < batch_bytes(record) < content + 200
