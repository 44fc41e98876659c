"""The chunk contract: what is a chunk, what is not and why, and that no record whatever makes parsing fail."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.records import crc
from wavestitch.contracts import chunk_header
from wavestitch.contracts.chunk_header import (
    MAX_CHUNKS,
    MAX_ID_BYTES,
    MAX_META_BYTES,
    Chunk,
    Rejection,
    encode_headers,
    parse_chunk,
)
from wavestitch.contracts.chunk_metadata import SAMPLE_BYTES
from wavestitch.contracts.reasons import Reason

KEY = b"mitdb-208-MLII-0000"
VALUE = bytes(range(16))
DIGEST = "0123456789abcdef0123456789abcdef"
FIELDS: dict[str, Any] = {
    "source": "mitdb-208",
    "channel": "MLII",
    "start_time_ns": 1_700_000_000_123_456_789,
    "sampling_rate_hz": 360,
    "sample_format": "i16le",
    "units": "mV",
    "adc_gain": 200,
    "baseline": 1024,
    "sample_count": 24,
}
META = json.dumps(FIELDS)
OWN_REASONS = {
    Reason.NULL_VALUE,
    Reason.NOT_A_CHUNK,
    Reason.UNKNOWN_VERSION,
    Reason.BAD_ID,
    Reason.BAD_HEADER,
    Reason.BAD_SEQUENCE,
    Reason.BAD_METADATA,
    Reason.BAD_LENGTH,
    Reason.CORRUPT,
}

Headers = dict[str, bytes | None]


def headers(**changes: bytes | None) -> Headers:
    """Valid headers of chunk 1 of 3; what is changed is sealed with its own CRC unless that is changed, too."""
    found: Headers = {"ws-version": b"2", "ws-seq": b"1", "ws-count": b"3", "ws-meta": META.encode()}
    found |= {f"ws-{name}": content for name, content in changes.items()}
    if "crc" not in changes:
        said = (found["ws-seq"] or b"", found["ws-count"], found["ws-meta"] or b"")
        found["ws-crc"] = crc(KEY, *said, VALUE, digest=found.get("ws-digest") or b"")
    return found


def parse(claims: Headers, *, key: bytes | None = KEY, value: bytes | None = VALUE) -> Chunk | Rejection:
    return parse_chunk(key, list(claims.items()), value)


def without(name: str) -> Headers:
    return {k: v for k, v in headers().items() if k != f"ws-{name}"}


def rejected(found: Chunk | Rejection, reason: Reason) -> Rejection:
    assert isinstance(found, Rejection), found
    assert found.reason is reason, found
    return found


# What is a chunk


def test_a_chunk_written_by_the_contract_s_words_is_accepted() -> None:
    assert parse(headers(digest=DIGEST.encode())) == Chunk(
        waveform_id=KEY.decode(),
        seq=1,
        count=3,
        crc=int(crc(KEY, b"1", b"3", META.encode(), VALUE, digest=DIGEST.encode()), 16),
        piece=hashlib.sha256(hashlib.sha256(META.encode()).digest() + VALUE).digest(),
        length=16,
        meta=META,
        digest=DIGEST,
    )


def test_a_chunk_as_nearly_all_are_is_read_in_fewer_steps_and_what_is_remembered_is_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unasked(*_: object) -> None:
        raise AssertionError("read check by check")

    huge = headers() | {"ws-seq": b"0" * 100_000}
    assert isinstance(parse(huge), Rejection)
    known = chunk_header.shared_claims.cache_info().currsize, chunk_header.sequence_number.cache_info().currsize
    for name in ("ws-seq", "ws-count", "ws-meta", "ws-digest", "ws-id"):
        assert isinstance(parse(headers() | {name: b"0" * 100_000}), Rejection)
    assert known == (
        chunk_header.shared_claims.cache_info().currsize,
        chunk_header.sequence_number.cache_info().currsize,
    )
    monkeypatch.setattr(chunk_header, "_parse_any", unasked)
    assert isinstance(parse(headers()), Chunk)


@given(
    waveform_id=st.text(min_size=1, max_size=64).filter(lambda t: t.isprintable()),
    seq=st.integers(0, MAX_CHUNKS - 1),
    left=st.none() | st.integers(1, 5),
    fmt=st.sampled_from(sorted(SAMPLE_BYTES)),
    samples=st.integers(1, 9),
    digest=st.none() | st.just(DIGEST),
    note=st.text(max_size=20),
    data=st.data(),
)
def test_what_encode_headers_writes_parse_chunk_reads_back(
    waveform_id: str, seq: int, left: int | None, fmt: str, samples: int, digest: str | None, note: str, data: Any
) -> None:
    size = samples * SAMPLE_BYTES[fmt]
    value = data.draw(st.binary(min_size=size, max_size=size))
    count = None if left is None else min(seq + left, MAX_CHUNKS)
    meta = json.dumps({**FIELDS, "sample_format": fmt, "note": note})
    written = encode_headers(waveform_id=waveform_id, seq=seq, count=count, meta=meta, value=value, digest=digest)
    found = parse_chunk(waveform_id.encode(), written, value)
    assert isinstance(found, Chunk), found
    assert (found.waveform_id, found.seq, found.count, found.meta) == (waveform_id, seq, count, meta)
    assert (found.length, found.digest) == (len(value), digest)
    counted = None if count is None else b"%d" % count
    said = (waveform_id.encode(), b"%d" % seq, counted, meta.encode(), value)
    assert crc(*said, digest=(digest or "").encode()) == b"%08x" % found.crc


def test_all_headers_are_ascii_when_the_metadata_are() -> None:
    written = encode_headers(waveform_id="µ", seq=0, count=1, meta=META, value=VALUE, digest=DIGEST)
    assert all(content.isascii() for _, content in written)


def test_the_id_may_travel_in_a_header_where_there_is_no_key() -> None:
    found = parse(headers(id=KEY), key=None)
    assert isinstance(found, Chunk)
    assert found == parse(headers()) == parse(headers(id=KEY))


def test_a_live_recording_may_leave_its_count_open() -> None:
    sealed = crc(KEY, b"1", None, META.encode(), VALUE)
    found = parse({n: v for n, v in headers(crc=sealed).items() if n != "ws-count"})
    assert isinstance(found, Chunk)
    assert found.count is None


def test_foreign_headers_are_none_of_our_business() -> None:
    noisy = [("trace", None), ("trace", b"\xff"), *headers().items(), ("ws-other", b"x"), ("WS-SEQ", b"9")]
    assert parse_chunk(KEY, noisy, VALUE) == parse(headers())


def test_a_longest_id_and_longest_metadata_are_accepted() -> None:
    key = "µ".encode() * (MAX_ID_BYTES // 2)
    padding = MAX_META_BYTES - len(json.dumps({**FIELDS, "note": ""}))
    meta = json.dumps({**FIELDS, "note": "x" * padding}).encode()
    found = parse(headers(meta=meta, crc=crc(key, b"1", b"3", meta, VALUE)), key=key)
    assert isinstance(found, Chunk), found
    assert (len(found.waveform_id.encode()), len(found.meta)) == (MAX_ID_BYTES, MAX_META_BYTES)


# What is not, and why


def test_a_tombstone_is_rejected() -> None:
    rejected(parse(headers(), value=None), Reason.NULL_VALUE)


def test_a_record_without_the_version_header_is_not_a_chunk() -> None:
    for nothing in (None, [], [("content-type", b"text/plain")]):
        rejected(parse_chunk(KEY, nothing, VALUE), Reason.NOT_A_CHUNK)
    rejected(parse(without("version")), Reason.NOT_A_CHUNK)


@pytest.mark.parametrize("version", [b"1", b"3", b"", b"02", b"2 ", b"\xff"])
def test_another_version_is_rejected(version: bytes) -> None:
    assert "known is 2" in rejected(parse(headers(version=version)), Reason.UNKNOWN_VERSION).evidence


@pytest.mark.parametrize("name", ["version", "id", "seq", "count", "crc", "meta", "digest"])
def test_a_header_that_occurs_twice_or_is_null_is_rejected(name: str) -> None:
    claims = headers(id=KEY, digest=DIGEST.encode())
    twice = [*claims.items(), (f"ws-{name}", claims[f"ws-{name}"])]
    assert f"ws-{name} occurs more than once" in rejected(parse_chunk(KEY, twice, VALUE), Reason.BAD_HEADER).evidence
    null = {**claims, f"ws-{name}": None}
    assert f"ws-{name} is null" in rejected(parse(null), Reason.BAD_HEADER).evidence


@pytest.mark.parametrize("name", ["seq", "crc", "meta"])
def test_a_missing_header_is_rejected_by_name(name: str) -> None:
    found = rejected(parse(without(name)), Reason.BAD_HEADER)
    assert f"no ws-{name} header" in found.evidence
    assert found.waveform_id == KEY.decode()


@pytest.mark.parametrize(
    ("key", "header"),
    [
        (None, None),
        (b"", None),
        (None, b""),
        (KEY, b"another"),
        (b"x" * (MAX_ID_BYTES + 1), None),
        (None, b"x" * (MAX_ID_BYTES + 1)),
        (b"\xff\xfe", None),
        (b"\xed\xa0\x80", None),
    ],
)
def test_an_id_that_names_no_waveform_is_rejected(key: bytes | None, header: bytes | None) -> None:
    claims = headers() if header is None else headers(id=header)
    assert rejected(parse(claims, key=key), Reason.BAD_ID).waveform_id is None


@pytest.mark.parametrize(
    "raw", [b"", b"-1", b"+1", b"01", b"1.0", b" 1", b"1 ", b"0x1", b"1_0", b"\xd9\xa1", b"9" * 11]
)
def test_a_number_that_is_not_plain_decimal_is_rejected(raw: bytes) -> None:
    assert rejected(parse(headers(seq=raw)), Reason.BAD_HEADER).seq is None
    assert rejected(parse(headers(count=raw)), Reason.BAD_HEADER).seq == 1


@pytest.mark.parametrize(
    ("seq", "count"), [(b"3", b"3"), (b"4", b"3"), (b"0", b"0"), (b"%d" % MAX_CHUNKS, None), (b"0", b"9999999999")]
)
def test_a_place_outside_of_the_waveform_is_rejected(seq: bytes, count: bytes | None) -> None:
    claims = headers(seq=seq) if count is None else headers(seq=seq, count=count)
    rejected(parse(claims), Reason.BAD_SEQUENCE)


@pytest.mark.parametrize("raw", [b"", b"0", b"DEADBEEF", b"deadbee", b"deadbeef0", b"0xdeadbe", b"deadbeeg"])
def test_a_crc_that_is_not_eight_lower_case_hex_digits_is_rejected(raw: bytes) -> None:
    rejected(parse(headers(crc=raw)), Reason.BAD_HEADER)


@pytest.mark.parametrize("raw", [b"", b"0" * 31, b"0" * 33, b"A" * 32, b"g" * 32])
def test_a_digest_that_is_not_32_lower_case_hex_digits_is_rejected(raw: bytes) -> None:
    rejected(parse(headers(digest=raw)), Reason.BAD_HEADER)


def test_a_wrong_crc_is_corruption_and_says_where() -> None:
    found = rejected(parse(headers(crc=b"00000000")), Reason.CORRUPT)
    assert (found.waveform_id, found.seq) == (KEY.decode(), 1)
    assert "ws-crc says 00000000" in found.evidence


def test_damaged_metadata_are_corruption_and_not_a_bad_producer() -> None:
    claims = headers()
    claims["ws-meta"] = b"{" + META.encode()
    rejected(parse(claims), Reason.CORRUPT)


@pytest.mark.parametrize("value", [b"", b"x", b"xyz"])
def test_a_value_that_is_not_whole_samples_is_rejected(value: bytes) -> None:
    claims = headers(crc=crc(KEY, b"1", b"3", META.encode(), value))
    assert "whole samples of 2 bytes" in rejected(parse(claims, value=value), Reason.BAD_LENGTH).evidence


def test_evidence_is_short_and_never_shows_the_payload() -> None:
    secret = b"SECRET-PAYLOAD--"
    for claims in (headers(), headers(seq=b"x" * 5000), headers(crc=b"y" * 5000), headers(id=b"z" * 5000)):
        found = parse(claims, value=secret)
        assert isinstance(found, Rejection)
        assert "SECRET" not in found.evidence
        assert len(found.evidence) < 400


# Whatever comes

hostile_bytes = st.binary(max_size=40) | st.sampled_from(
    [b"1", b"0", b"3", KEY, META.encode(), META.encode("utf-16"), b"deadbeef", DIGEST.encode(), b"null", b"{}"]
)
hostile_headers = st.lists(
    st.tuples(
        st.sampled_from([f"ws-{n}" for n in ("version", "id", "seq", "count", "crc", "meta", "digest")]) | st.text(),
        st.none() | hostile_bytes,
    ),
    max_size=12,
)


def is_an_answer(found: Chunk | Rejection) -> bool:
    return isinstance(found, Chunk) or (found.reason in OWN_REASONS and len(found.evidence) < 400)


@settings(max_examples=300)
@given(key=st.none() | hostile_bytes, claims=st.none() | hostile_headers, value=st.none() | hostile_bytes)
def test_no_record_whatever_makes_parsing_raise(
    key: bytes | None, claims: list[tuple[str, bytes | None]] | None, value: bytes | None
) -> None:
    assert is_an_answer(parse_chunk(key, claims, value))


@settings(max_examples=300)
@given(changes=st.dictionaries(st.sampled_from(["version", "id", "seq", "count", "crc", "digest"]), hostile_bytes))
def test_no_single_hostile_header_beside_valid_ones_makes_parsing_raise(changes: dict[str, bytes]) -> None:
    assert is_an_answer(parse(headers(**changes)))


@pytest.mark.parametrize("part", ["id", "seq", "count", "meta", "value", "crc"])
def test_no_flipped_bit_in_what_the_crc_binds_is_ever_accepted(part: str) -> None:
    """Every bit, one at a time: the whole of it, not a sample."""
    whole = {"id": KEY, "seq": b"1", "count": b"3", "meta": META.encode(), "value": VALUE}
    whole["crc"] = crc(KEY, b"1", b"3", META.encode(), VALUE)
    original = parse(headers())
    assert isinstance(original, Chunk)
    for bit in range(8 * len(whole[part])):
        flipped = bytearray(whole[part])
        flipped[bit // 8] ^= 1 << bit % 8
        parts = {**whole, part: bytes(flipped)}
        claims = headers(seq=parts["seq"], count=parts["count"], meta=parts["meta"], crc=parts["crc"])
        assert isinstance(parse(claims, key=parts["id"], value=parts["value"]), Rejection), (part, bit)


@given(
    part=st.sampled_from(["id", "seq", "count", "meta", "value"]),
    at=st.integers(0, 10_000),
    mask=st.integers(1, 255),
    value=st.binary(min_size=1, max_size=200).map(lambda b: b + b),
)
def test_no_changed_byte_anywhere_is_ever_accepted(part: str, at: int, mask: int, value: bytes) -> None:
    whole = {"id": KEY, "seq": b"1", "count": b"3", "meta": META.encode(), "value": value}
    changed = bytearray(whole[part])
    changed[at % len(changed)] ^= mask
    sealed = crc(KEY, b"1", b"3", META.encode(), value)
    parts = {**whole, part: bytes(changed)}
    claims = headers(seq=parts["seq"], count=parts["count"], meta=parts["meta"], crc=sealed)
    assert isinstance(parse(claims, key=parts["id"], value=parts["value"]), Rejection)


@pytest.mark.parametrize("said", [b"1", b"2", b"4", None])
def test_a_count_that_was_changed_or_taken_away_is_corruption(said: bytes | None) -> None:
    changed = headers(crc=crc(KEY, b"0", b"3", META.encode(), VALUE), seq=b"0", count=said)
    claims = changed if said is not None else {n: v for n, v in changed.items() if n != "ws-count"}
    rejected(parse(claims), Reason.CORRUPT)


def test_two_chunks_are_the_same_by_metadata_and_bytes_and_by_nothing_else() -> None:
    def piece(*, meta: str = META, count: int | None = 3, seq: int = 1, value: bytes = VALUE) -> bytes:
        found = parse_chunk(
            KEY,
            encode_headers(waveform_id=KEY.decode(), seq=seq, count=count, meta=meta, value=value, digest=None),
            value,
        )
        assert isinstance(found, Chunk)
        return found.piece

    assert piece() == piece(count=None) == piece(seq=2)
    assert len({piece(), piece(meta=META + " "), piece(value=VALUE[::-1])}) == 3
