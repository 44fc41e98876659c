"""Record batches as a broker sends them: what cannot be is refused, and never believed to be large."""

from __future__ import annotations

import gzip
import random
import resource
import struct
from pathlib import Path

import pytest

from consumers.batch_scan import records_of
from tests.builders.ranges import span
from tests.fuzz.kafka_targets import new_batch
from tests.fuzz.target import bounded_memory
from wavestitch.contracts.errors import Terminal
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.record_batches import AllBut
from wavestitch.kafka.inflate import Uninflatable, inflated
from wavestitch.kafka.kafka_python import calc_crc32c
from wavestitch.kafka.raw_batches import RawBatch, head_of, offsets_of, split_batches

_HEAD = struct.Struct(">qiibIhiqqqhii")
_WHERE = "topic t partition 0"
_CONTROL = 0x20


def written(*, length: int | None = None, records: int = 2, delta: int = 1, base: int = 5, body: bytes = b"") -> bytes:
    """A batch of two records at offsets `base` and on, with another head than it should have."""
    return _batch(0, length=length, records=records, delta=delta, base=base, body=body or two_records())


def two_records(*offsets: int) -> bytes:
    builder = new_batch()
    for offset in offsets or (0, 1):
        builder.append(offset, 1000, b"k", b"v", [])
    return bytes(builder.build())[_HEAD.size :]


def _batch(attributes: int, *, length: int | None, records: int, delta: int, base: int, body: bytes) -> bytes:
    after = _HEAD.pack(0, 0, 0, 0, 0, attributes, delta, 0, 0, 1, 0, 0, records)[21:] + body
    said = _HEAD.size - 12 + len(body) if length is None else length
    return _HEAD.pack(base, said, 0, 2, calc_crc32c(after), attributes, delta, 0, 0, 1, 0, 0, records) + body


def one(data: bytes) -> RawBatch:
    (batch,) = split_batches(memoryview(data), where=_WHERE)
    return batch


@pytest.mark.parametrize("length", [-12, -1, 0, 48])
def test_a_batch_that_says_it_is_shorter_than_its_head_ends_the_fetch(length: int) -> None:
    with pytest.raises(Terminal, match="less than its head"):
        list(split_batches(memoryview(written(length=length)), where=_WHERE))


@pytest.mark.parametrize("data", [written(base=-1), written(delta=-1), written(records=-1)])
def test_a_batch_of_offsets_that_cannot_be_is_refused(data: bytes) -> None:
    with pytest.raises(Terminal, match="the broker sent a record batch of"):
        one(data)


def test_a_batch_that_claims_two_thousand_million_offsets_takes_no_memory_for_them() -> None:
    with bounded_memory(64 << 10):
        head = offsets_of(one(written(delta=2**31 - 1)), where=_WHERE)
        assert len(head.missing) == 2**31 - 2
        assert [o in head.missing for o in (4, 5, 6, 7, 2**31 + 4, 2**31 + 5)] == [
            False,
            False,
            False,
            True,
            True,
            False,
        ]


def test_records_out_of_order_are_never_taken_for_others() -> None:
    batch = one(written(body=two_records(1, 0), delta=1))
    found = list(records_of(batch, span(0, 5, 7), Offset(5)))
    assert [m.offset() for m in found] == sorted({m.offset() for m in found})
    with pytest.raises(Terminal, match="not in order"):
        offsets_of(one(written(body=two_records(1, 0), delta=3)), where=_WHERE)


@pytest.mark.parametrize("body", [b"", b"\x20", b"\x20\x00\x00\x00\x08\x00", b"\xff" * 20])
def test_a_control_batch_that_ends_too_soon_is_refused_with_a_sentence(body: bytes) -> None:
    with pytest.raises(Terminal):
        head_of(one(_batch(_CONTROL, length=None, records=1, delta=0, base=5, body=body)), where=_WHERE)


def test_gaps_are_all_offsets_but_those_that_are_present() -> None:
    gaps = AllBut(3, 12, [3, 4, 7, 11])
    assert list(gaps) == [5, 6, 8, 9, 10]
    assert len(gaps) == 5
    assert [o for o in range(20) if o in gaps] == list(gaps)
    assert not AllBut(0, 2, [0, 1])


@pytest.mark.parametrize(
    "behind", [b"", b"behind", bytes(40), b"\x1f", b"\x1f\x8b\x08\xff", gzip.compress(b"more", mtime=0)]
)
@pytest.mark.parametrize("sizes", [(9,), (0, 9, 0), (3 << 20,), (5000, 1, 400_000), (0,) * 999 + (7,)])
def test_gzip_is_inflated_member_by_member_whatever_is_behind_the_last(sizes: tuple[int, ...], behind: bytes) -> None:
    members = [random.Random(n).randbytes(n // 9) * 9 for n in sizes]
    reader = inflated(1, memoryview(b"".join(map(gzip.compress, members)) + behind))
    whole = b"".join(members)
    assert reader.take(len(whole)) == whole
    for cut in range(1, 20):
        with pytest.raises(Uninflatable, match="ends in the middle"):
            inflated(1, memoryview(gzip.compress(b"a piece")[:-cut])).skip(8)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_what_cannot_be_inflated_leaves_nothing_behind_in_memory(codec: int) -> None:
    def fail(times: int) -> None:
        for _ in range(times):
            with pytest.raises(Uninflatable):
                inflated(codec, memoryview(b"x")).take(5)

    fail(10)
    before = _data_bytes()
    fail(500)
    assert _data_bytes() - before < 50 << 20, "a reader may have 1 GiB, and somebody may send thousands of these"


def _data_bytes() -> int:
    """What the process has of memory of its own, touched or not."""
    return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
