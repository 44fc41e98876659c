"""Anything at all as a record: the parser answers, and says *chunk* only where the contract's own words say so, too.

`WAVESTITCH_DEEP` makes it try more. What was once found is kept as an example.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.builders.records import crc
from tests.domain.effort import effort
from tests.domain.oracle import piece_of
from tests.hostile.corpus import record_kinds
from tests.hostile.kind import BY_PARSER, FIELDS, META, VALUE, Record, sealed
from wavestitch.contracts.chunk_header import MAX_CHUNKS, Chunk, Rejection, _parse_any, encode_headers, parse_chunk
from wavestitch.contracts.chunk_metadata import SAMPLE_BYTES, Metadata, parse_metadata
from wavestitch.contracts.chunk_proof import NO_PROOF

RECORDS = [r for k in record_kinds() for r in k.records[:3] if sum(len(v or b"") for _, v in r.headers) < 40_000]
NAMES = [f"ws-{n}" for n in ("version", "id", "seq", "count", "crc", "meta", "digest")]
some_bytes = st.none() | st.binary(max_size=24) | st.sampled_from([b"0", b"1", b"-1", b"1048576", VALUE, META, b"\0"])
changes = st.lists(
    st.one_of(
        st.tuples(st.just("drop"), st.integers(0, 9)),
        st.tuples(st.just("double"), st.integers(0, 9)),
        st.tuples(st.just("add"), st.sampled_from(NAMES) | st.text(max_size=8), some_bytes),
        st.tuples(st.just("put"), st.integers(0, 9), some_bytes),
        st.tuples(st.just("flip"), st.integers(0, 9), st.integers(0, 1 << 20)),
        st.tuples(st.just("key"), some_bytes),
        st.tuples(st.just("value"), some_bytes),
        st.tuples(st.just("seal")),
    ),
    max_size=5,
)


def changed(record: Record, wanted: list[Any]) -> Record:
    key, headers, value = record.key, list(record.headers), record.value
    for what, *said in wanted:
        at = said[0] % len(headers) if headers and said and isinstance(said[0], int) else None
        match what:
            case "drop" if at is not None:
                headers.pop(at)
            case "double" if at is not None:
                headers.insert(0, headers[at])
            case "add":
                headers.append((said[0], said[1]))
            case "put" if at is not None:
                headers[at] = headers[at][0], said[1]
            case "flip" if at is not None and headers[at][1]:
                name, content = headers[at]
                flipped = bytearray(content or b"")
                flipped[said[1] // 8 % len(flipped)] ^= 1 << said[1] % 8
                headers[at] = name, bytes(flipped)
            case "key":
                key = said[0]
            case "value":
                value = said[0]
            case "seal":
                headers = resealed(key, headers, value)
    return Record(key, tuple(headers), value)


def resealed(key: bytes | None, headers: list[Any], value: bytes | None) -> list[Any]:
    """With the CRC that fits: so that what lies behind that check is reached."""
    h = {n: v or b"" for n, v in headers}
    raw_id = key if key is not None else h.get("ws-id", b"")
    said = (raw_id, *(h.get(name, b"") for name in ("ws-seq", "ws-count", "ws-meta")), value or b"")
    right = crc(*said, digest=h.get("ws-digest", b""))
    return [(n, right if n == "ws-crc" else v) for n, v in headers]


def judge(record: Record) -> Chunk | Rejection:
    found = parse_chunk(record.key, record.headers, record.value)
    assert found == _parse_any(record.key, record.headers, record.value, NO_PROOF), "what is usual is read differently"
    if isinstance(found, Rejection):
        assert found.reason in BY_PARSER
        assert 0 < len(found.evidence) < 400
        assert found.evidence.isprintable()
    else:
        assert isinstance(parse_metadata(found.meta), Metadata)
        piece = piece_of(_Timed(record))
        assert piece is not None, f"{found} is no chunk by the contract's words"
        assert (piece.id, piece.seq, piece.count) == (found.waveform_id, found.seq, found.count)
        assert (piece.meta.decode(), piece.digest, len(piece.value)) == (found.meta, found.digest, found.length)
        assert piece.proof == found.piece
    return found


class _Timed:
    """A record as the oracle wants it."""

    def __init__(self, record: Record) -> None:
        self.timestamp_ms = 0
        self.key, self.headers, self.value = record.key, record.headers, record.value


@effort(400)
@given(record=st.sampled_from(RECORDS), wanted=changes)
@example(record=sealed("x", meta=META[:-1] + b',"sampling_rate_hz":1}'), wanted=[])
@example(record=sealed("x", meta=META.decode().encode("utf-16")), wanted=[])
def test_no_change_of_any_record_raises_or_passes_for_a_chunk_that_it_is_not(record: Record, wanted: list[Any]) -> None:
    judge(changed(record, wanted))


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@effort(300)
@given(fields=st.dictionaries(st.sampled_from(sorted(FIELDS)) | st.text(), json_values, max_size=5))
@example(fields={"sampling_rate_hz": 10**400})
@example(fields={"source": "\ud800"})
@example(fields={"note": 10**4400})
def test_metadata_of_any_values_are_taken_or_refused_with_a_sentence(fields: dict[str, Any]) -> None:
    try:
        text = json.dumps({**FIELDS, **fields})
    except ValueError:
        return  # an integer too long for Python to write
    found = parse_metadata(text)
    if isinstance(found, Metadata):
        said = json.loads(text)
        assert (found.source, found.start_time_ns) == (said["source"], said["start_time_ns"])
        assert found.sampling_rate_hz == float(said["sampling_rate_hz"])
    else:
        assert 0 < len(found) < 400
        assert found.isprintable()


@effort(400)
@given(
    at=st.integers(0, len(META) - 1),
    insert=st.binary(max_size=6) | st.text('[]{},:"\\u0e+-.', max_size=6).map(str.encode),
)
@example(at=1, insert=b'"source":1,')
@example(at=0, insert=b"\xef\xbb\xbf")
def test_any_bytes_put_into_good_metadata_are_taken_or_refused_with_a_sentence(at: int, insert: bytes) -> None:
    judge(sealed("x", meta=META[:at] + insert + META[at:]))


@effort(200)
@given(
    waveform_id=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=64),
    seq=st.integers(0, MAX_CHUNKS - 1),
    left=st.none() | st.integers(1, 5),
    sample_format=st.sampled_from(sorted(SAMPLE_BYTES)),
    value=st.binary(min_size=8, max_size=64).map(lambda b: b[: len(b) // 8 * 8]),
    digest=st.none() | st.text("0123456789abcdef", min_size=32, max_size=32),
    source=st.text(st.characters(exclude_categories=["Cs"]), max_size=256),
    more=st.dictionaries(st.text().filter(lambda k: k not in {*FIELDS, "sample_count"}), st.text(), max_size=3),
    ascii_only=st.booleans(),
)
def test_every_valid_chunk_comes_back_as_it_was_written(
    waveform_id: str,
    seq: int,
    left: int | None,
    sample_format: str,
    value: bytes,
    digest: str | None,
    source: str,
    more: dict[str, str],
    ascii_only: bool,
) -> None:
    count = None if left is None else min(seq + left, MAX_CHUNKS)
    more = {k.encode(errors="ignore").decode(): v.encode(errors="ignore").decode() for k, v in more.items()}
    fields = {**more, **FIELDS, "source": source, "sample_format": sample_format}
    meta = json.dumps(fields, ensure_ascii=ascii_only)
    headers = encode_headers(waveform_id=waveform_id, seq=seq, count=count, meta=meta, value=value, digest=digest)
    found = judge(Record(waveform_id.encode(), tuple(headers), value))
    assert isinstance(found, Chunk), found
    assert (found.waveform_id, found.seq, found.count, found.meta) == (waveform_id, seq, count, meta)
    assert (found.digest, found.length) == (digest, len(value))
