"""Records that no client library writes, and a broker takes: read as they are, or held, by either way of reading."""

from __future__ import annotations

import gzip
import struct
from typing import Any

import pyarrow as pa
import pytest
import xxhash

from tests.broker.raw_producing import batch_of, part, produce, record, zigzag
from tests.broker.reading_rig import LARGE, Rig, offsets, payloads
from wavestitch.contracts.raw_headers import decode_raw_headers

BOTH_WAYS = True
GZIP, LZ4 = 1, 3


@pytest.mark.parametrize("deltas", [(0, 2, 2), (1, 2, 2), (2, 1, 0), (0, 0, 0), (1, 1, 2)])
def test_records_that_say_other_places_than_their_batch_has_are_held_and_stop_nothing(
    rig: Rig, topic_factory: Any, deltas: tuple[int, ...]
) -> None:
    """A broker counts the records of a batch that is not compressed, and does not look at where each says it lies."""
    topic = topic_factory()
    produce(
        rig.bootstrap,
        topic,
        batch_of(b"".join(record(d, b"v", headers=part(b"h") + part(b"v"), count=1) for d in deltas), 3, codec=0),
    )
    sent = rig.sender(topic).send(2)
    rows = rig.read(rig.plan(topic, [[(0, 0, 5)]], idle_deadline=5))
    assert offsets(rows) == [0, 1, 2, 3, 4]
    assert [r["reason"] for r in rows].count("unreadable") == 3 - (deltas[0] == 0) - (deltas[:2] == (0, 1))
    assert payloads(rows)[3:] == sent


def test_a_record_whose_key_says_a_length_below_none_is_read(rig: Rig, topic_factory: Any) -> None:
    """The client stands still before it, and does not say why."""
    topic = topic_factory()
    body = b"\0" + zigzag(0) + zigzag(0) + zigzag(-7) + part(b"v") + zigzag(1) + part(b"h") + part(b"v")
    produce(rig.bootstrap, topic, batch_of(zigzag(len(body)) + body, 1, codec=0))
    sent = rig.sender(topic).send(2)
    rows = rig.read(rig.plan(topic, [[(0, 0, 3)]], idle_deadline=2))
    assert payloads(rows) == [b"v", *sent]
    assert rows[0]["raw_key"] is None


def test_a_header_s_name_with_a_zero_byte_is_kept_as_it_came(
    rig: Rig, topic_factory: Any, request: pytest.FixtureRequest
) -> None:
    if rig.mean == LARGE:
        why = "the client takes names for C's texts, which end at a zero byte"
        request.applymarker(pytest.mark.xfail(strict=True, raises=AssertionError, reason=why))
    topic = topic_factory()
    name = b"ws-seq\0x"
    produce(rig.bootstrap, topic, batch_of(record(0, b"v", headers=part(name) + part(b"0"), count=1), 1, codec=0))
    (row,) = rig.read(rig.plan(topic, [[(0, 0, 1)]]))
    assert decode_raw_headers(row["raw_headers"]) == [(name.decode(), b"0")]


@pytest.mark.parametrize("behind", [b"behind", bytes(9), b"\x1f\x8b\x08", gzip.compress(b"", mtime=0)])
def test_what_lies_behind_the_records_of_a_compressed_batch_is_no_part_of_them(
    rig: Rig, topic_factory: Any, behind: bytes
) -> None:
    """Brokers take it, and no client looks at it."""
    topic = topic_factory()
    body = b"".join(record(n, b"v%d" % n, headers=part(b"h") + part(b"v"), count=1) for n in range(9))
    produce(rig.bootstrap, topic, batch_of(gzip.compress(body) + behind, 9, codec=GZIP))
    sent = rig.sender(topic).send(2)
    rows = rig.read(rig.plan(topic, [[(0, 0, 11)]]))
    assert payloads(rows) == [*(b"v%d" % n for n in range(9)), *sent]
    assert "unreadable" not in [r["reason"] for r in rows]


def test_lz4_with_anything_behind_its_frame_stops_no_stream(rig: Rig, topic_factory: Any) -> None:
    """Brokers take it, and look at the frame alone; the client calls it a bad message."""
    topic = topic_factory()
    block = bytes(pa.Codec("lz4_raw").compress(record(0, b"v"), asbytes=True))
    check = xxhash.xxh32_intdigest(b"\x60\x40") >> 8 & 255
    frame = b"\x04\x22\x4d\x18\x60\x40" + bytes([check]) + struct.pack("<I", len(block)) + block + bytes(4)
    produce(rig.bootstrap, topic, batch_of(frame + b"behind", 1, codec=LZ4))
    sent = rig.sender(topic).send(2)
    rows = rig.read(rig.plan(topic, [[(0, 0, 3)]]))
    assert [r["offset"] for r in rows] == [0, 1, 2]
    assert payloads(rows)[1:] == sent
