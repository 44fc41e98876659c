"""Headers that are kept come back as they came, and what nobody wrote is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavestitch.contracts.raw_headers import decode_raw_headers, encode_raw_headers, header_bytes

HEADERS = st.lists(st.tuples(st.text(st.characters(exclude_categories=["Cs"])), st.none() | st.binary()))


@given(HEADERS)
def test_headers_come_back_as_they_came_and_take_what_they_are_counted_for(headers: list[tuple[str, bytes | None]]):
    raw = encode_raw_headers(headers)
    assert decode_raw_headers(raw) == headers
    assert len(raw) == header_bytes(headers) == header_bytes([(n.encode(), v) for n, v in headers])


@given(st.binary(max_size=60))
def test_what_nobody_wrote_is_refused_or_read_and_written_the_same(raw: bytes):
    try:
        found = decode_raw_headers(raw)
    except ValueError:
        return
    assert encode_raw_headers(found) == raw


@pytest.mark.parametrize("raw", [b"\0", b"\0\0\0\5abc", b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe", b"\0\0\0\1a"])
def test_lengths_that_lie_are_refused(raw: bytes):
    with pytest.raises(ValueError, match="stored headers"):
        decode_raw_headers(raw)
