"""The chunk contract at its bounds, on both ways of reading a record; and the digest of what is no chunk."""

from __future__ import annotations

import hashlib
import json

import pytest

from tests.builders.records import crc
from tests.unit.test_chunk_header import FIELDS, KEY, VALUE, headers, parse, rejected
from wavestitch.contracts.chunk_header import (
    MAX_ID_BYTES,
    Chunk,
    parse_chunk,
    record_digest,
    sequence_number,
    shared_claims,
)
from wavestitch.contracts.reasons import Reason

MOST_CHUNKS, MOST_META = 1_048_576, 16_384  # as `docs/chunk-contract.md` has them


def metadata(size: int) -> bytes:
    note = "n" * (size - len(json.dumps({**FIELDS, "note": ""})))
    return json.dumps({**FIELDS, "note": note}).encode()


@pytest.mark.parametrize("more", [{}, {"other": None}], ids=["in fewer steps", "check by check"])
def test_metadata_may_be_16_kib_and_no_byte_more(more: dict[str, None]) -> None:
    assert isinstance(parse(headers(meta=metadata(MOST_META)) | more), Chunk)
    rejected(parse(headers(meta=metadata(MOST_META + 1)) | more), Reason.BAD_METADATA)


@pytest.mark.parametrize("more", [{}, {"other": None}], ids=["in fewer steps", "check by check"])
def test_the_last_chunk_that_may_be_is_one_and_the_next_is_none(more: dict[str, None]) -> None:
    for seq, is_chunk in ((MOST_CHUNKS - 1, True), (MOST_CHUNKS, False)):
        claims = headers(seq=b"%d" % seq)
        del claims["ws-count"]
        claims["ws-crc"] = crc(KEY, b"%d" % seq, None, claims["ws-meta"] or b"", VALUE)
        found = parse(claims | more)
        assert isinstance(found, Chunk) is is_chunk
        if not is_chunk:
            rejected(found, Reason.BAD_SEQUENCE)
    assert sequence_number(b"%d" % (MOST_CHUNKS - 1)) == MOST_CHUNKS - 1
    assert sequence_number(b"%d" % MOST_CHUNKS) is None


def test_what_is_remembered_of_a_record_is_as_large_as_what_may_be_said_and_no_larger() -> None:
    """Key, id, count, metadata and digest together: asked for with all of them at their bounds, and a byte beyond."""
    largest = {
        "ws-version": b"2",
        "ws-seq": b"1",
        "ws-id": b"i" * MAX_ID_BYTES,
        "ws-count": b"1" * 10,
        "ws-meta": metadata(MOST_META),
        "ws-digest": b"0" * 32,
    }
    beyond = [{"ws-id": b"i" * (MAX_ID_BYTES + 1)}, {"ws-count": b"1" * 11}, {"ws-digest": b"0" * 33}]
    cases = [(b"i" * MAX_ID_BYTES, {}, 1), *((b"i" * MAX_ID_BYTES, one, 0) for one in beyond)]
    cases += [(b"i" * (MAX_ID_BYTES + 1), {}, 0), (b"i" * 100_000, {"ws-meta": metadata(400)}, 0)]
    for key, changed, asked in cases:
        before = shared_claims.cache_info().misses
        parse_chunk(key, list((largest | changed).items()), VALUE)
        assert shared_claims.cache_info().misses - before == asked, (len(key), changed)


def test_the_digest_of_a_record_covers_all_that_it_is() -> None:
    told = hashlib.sha256(b"1:k" + b"3:one" + b"1:1" + b"3:two" + b"-" + b"5:value").digest()
    assert record_digest(b"k", [("one", b"1"), ("two", None)], b"value") != told, "the value stands before the headers"
    told = hashlib.sha256(b"1:k" + b"5:value" + b"3:one" + b"1:1" + b"3:two" + b"-").digest()
    assert record_digest(b"k", [("one", b"1"), ("two", None)], b"value") == told
    assert record_digest(None, None, None) == hashlib.sha256(b"--").digest()
    alike = [(b"", [], None), (None, [], b""), (b"", [], b""), (None, None, None), (None, [("", None)], None)]
    assert len({record_digest(*record) for record in alike}) == len(alike)
