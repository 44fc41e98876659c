"""Raw batches whose numbers are anything: every offset is a record or is held, and whatever is read can be landed."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.batch_scan import records_of
from consumers.byte_budget import RECORD_OVERHEAD
from consumers.landed_file import open_landing
from consumers.landing import LandingWriter
from consumers.pending_rows import PendingRows
from consumers.raw_message import MOST_ASIDE_BYTES, MOST_HEADERS, RawMessage
from consumers.record_sink import RecordSink
from tests.broker.raw_producing import batch_of, part, record, zigzag, zstd
from tests.builders.ranges import span
from wavestitch.contracts.chunk_header import Rejection
from wavestitch.contracts.chunk_proof import NO_PROOF
from wavestitch.contracts.landed_payload import take_proven
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.raw_headers import HEADER_OVERHEAD, decode_raw_headers
from wavestitch.contracts.reasons import Reason
from wavestitch.kafka import inflate
from wavestitch.kafka.inflate import inflated
from wavestitch.kafka.raw_batches import RawBatch, split_batches

FAR = span(0, 0, 1 << 40)
M = 2**63 - 1
EXTREMES = st.one_of(
    st.integers(-3, 200),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([M, -M - 1, 2**31 - 1, 2**31, -(2**31), 2**32, -1, 1 << 16, (1 << 16) + 1]),
)


def made(body: bytes, records: int, first: int = 5) -> RawBatch:
    (batch,) = split_batches(memoryview(batch_of(zstd(body), records, first=first)), where="here")
    return batch


def landed(batch: RawBatch) -> list[dict[str, Any]]:
    folder = Path(tempfile.mkdtemp())
    slice_ = span(0, 0, batch.end)
    with LandingWriter(folder, slice_) as writer:
        sink = RecordSink(writer, NO_PROOF, lambda _: None, careful=True, partition=Partition(0))
        for message in records_of(batch, slice_, Offset(0)):
            sink.land(message, message.offset_)
        done = writer.finish([])
    table = open_landing(folder / str(done.file))
    table.validate(full=True)
    for one in table.to_batches():
        take_proven(str(done.file), one, range(one.num_rows))
    return list(table.to_pylist())


def test_a_time_that_overflows_wraps_as_it_does_in_every_client() -> None:
    batch = made(record(0, b"x", since=M) + record(1, b"y", since=-M), 2, first=M)
    assert [m.timestamp_ for m in records_of(batch, FAR, Offset(0))] == [(0, 0), (TIMESTAMP_CREATE_TIME, 0)]
    assert [r["timestamp_ms"] for r in landed(batch)] == [0, 0]


def test_a_record_of_too_many_headers_is_held_and_its_neighbours_go_on() -> None:
    many = record(1, b"x", headers=b"\0\1" * (MOST_HEADERS + 1), count=MOST_HEADERS + 1)
    enough = record(2, b"y", headers=b"\0\1" * MOST_HEADERS, count=MOST_HEADERS)
    rows = landed(made(record(0, b"w") + many + enough, 3))
    assert [r["reason"] for r in rows] == ["not_a_chunk", "unreadable", "not_a_chunk"]
    assert f"a record of {MOST_HEADERS + 1} headers; allowed are {MOST_HEADERS}" in rows[1]["evidence"]


NAMES = (b"a" * 50_000, b"\1" * 50_000, "\U0001f600".encode() * 12_500, b'"' * 50_000)


def test_headers_take_what_they_are_counted_for_whatever_is_in_them() -> None:
    for name in NAMES:
        counted: list[int] = []
        folder = Path(tempfile.mkdtemp())
        with LandingWriter(folder, span(0, 0, 1)) as writer:
            sink = RecordSink(writer, NO_PROOF, counted.append, careful=True, partition=Partition(0))
            sink.land(RawMessage(Offset(0), (1, 1), 0, b"k", b"v", [(name, None), (b"x", b"y")]), Offset(0))
            done = writer.finish([])
        (row,) = open_landing(folder / str(done.file)).to_pylist()
        raw = row["raw_headers"]
        assert decode_raw_headers(raw) == [(name.decode(), None), ("x", b"y")]
        assert counted == [row["length"]] == [len(raw) + 2]
        assert len(raw) == 50_000 + 2 + 2 * HEADER_OVERHEAD
        assert done.file_bytes < 60_000


@pytest.mark.parametrize("part_of", ["key", "name", "content"])
@pytest.mark.parametrize("over", [0, 1])
def test_a_record_with_too_much_beside_its_value_is_held_and_its_neighbours_go_on(part_of: str, over: int) -> None:
    long = b"\1" * (MOST_ASIDE_BYTES - HEADER_OVERHEAD + over)
    sizes = {"key": b"", "name": b"", "content": b""} | {part_of: long}
    header = part(sizes["name"]) + part(sizes["content"])
    large = record(1, b"x", key=sizes["key"], headers=header, count=1)
    rows = landed(made(record(0, b"w") + large + record(2, b"y"), 3))
    assert [r["reason"] for r in rows] == ["not_a_chunk", "unreadable" if over else "not_a_chunk", "not_a_chunk"]
    assert [r["payload"] for r in rows[::2]] == [b"w", b"y"]


@pytest.mark.parametrize("start", [0, 1, 2, 3])
def test_the_raw_batch_is_kept_once_and_named_by_the_others_whatever_slice_is_read(start: int) -> None:
    bomb = b"\0\1" * (MOST_HEADERS + 1)
    body = record(0, b"good") + b"".join(record(n, b"", headers=bomb, count=MOST_HEADERS + 1) for n in (1, 2))
    batch = made(body + b"\xff", 4)
    found = list(records_of(batch, span(0, start, 4), Offset(start)))
    whole = list(records_of(batch, FAR, Offset(0)))
    assert found == whole[start:]
    assert [m.offset_ for m in whole] == [0, 1, 2, 3]
    assert [m.value_ == bytes(batch.data) for m in whole] == [False, True, False, False]
    assert all("the payload of offset 1" in str(m.unreadable) for m in whole[2:])


@given(
    st.lists(st.tuples(EXTREMES, EXTREMES, EXTREMES, EXTREMES, EXTREMES), min_size=1, max_size=4),
    st.sampled_from([5, 0, -1, M, -M - 1]),
    st.booleans(),
)
def test_whatever_its_numbers_say_every_offset_is_landed(
    numbers: list[tuple[int, ...]], first: int, true_lengths: bool
) -> None:
    body = b""
    for n, (length, since, delta, size, count) in enumerate(numbers):
        delta = n if true_lengths else delta  # noqa: PLW2901 - so that the fields behind it are reached
        one = b"\0" + zigzag(since) + zigzag(delta) + zigzag(-1) + zigzag(size) + zigzag(count)
        body += zigzag(len(one) if true_lengths else length) + one
    batch = made(body, len(numbers), first)
    rows = landed(batch)
    offsets = [r["offset"] for r in rows]
    assert offsets == sorted(set(offsets)), "an offset twice, or out of order"
    assert all(r["reason"] is not None and r["timestamp_ms"] >= 0 for r in rows)
    if true_lengths:
        assert offsets == list(range(len(numbers)))


def test_what_lies_behind_the_bound_of_one_batch_is_held_and_what_lies_before_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inflate, "MOST_BATCH_BYTES", 4 << 20)
    batch = made(record(0, b"w") + record(1, bytes(8 << 20)) + record(2, b"y"), 3)
    reader = inflated(batch.codec, batch.body)
    found = list(records_of(batch, FAR, Offset(0), reader))
    assert [m.offset_ for m in found] == [0, 1, 2]
    assert found[0].value_ == b"w"
    assert all(f"a batch inflates to more than {4 << 20} bytes" in str(m.unreadable) for m in found[1:])
    assert (4 << 20) < 64 * reader.work < (6 << 20), "not much beyond the bound was inflated"


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.binary(max_size=300), st.lists(st.tuples(st.text("ab", max_size=9), st.binary(max_size=9)))),
        min_size=1,
        max_size=20,
    )
)
def test_a_record_is_stored_for_at_least_as_much_as_reading_it_takes(records: list[tuple[bytes, Any]]) -> None:
    """So what the client reads within its budget, a careful reader does, too."""
    counted: list[int] = []
    body = b""
    for n, (value, headers) in enumerate(records):
        parts = b"".join(part(name.encode()) + part(content) for name, content in headers)
        body += record(n, value, headers=parts, count=len(headers))
    batch = made(body, len(records))
    reader = inflated(batch.codec, batch.body)
    with LandingWriter(Path(tempfile.mkdtemp()), span(0, 0, batch.end)) as writer:
        sink = RecordSink(
            writer,
            NO_PROOF,
            lambda stored: counted.append(stored + RECORD_OVERHEAD),
            careful=True,
            partition=Partition(0),
        )
        for message in records_of(batch, FAR, Offset(0), reader):
            sink.land(message, message.offset_)
    assert len(counted) == len(records)
    assert reader.work <= sum(counted)


def test_a_row_that_no_column_can_hold_is_held_by_its_coordinates_and_its_neighbours_stay() -> None:
    pending = PendingRows(Partition(0))
    junk = Rejection(Reason.NOT_A_CHUNK, "no headers")
    for offset, stamp in ((7, 1), (8, 2**63), (9, 3)):
        pending.add_rejection(Offset(offset), stamp, junk, key=b"k", headers=None, value=b"v")
    rows = pending.to_batch().to_pylist()
    assert [(r["offset"], r["reason"], r["payload"]) for r in rows] == [
        (7, "not_a_chunk", b"v"),
        (8, "unreadable", b"v"),
        (9, "not_a_chunk", b"v"),
    ]
    assert "timestamp_ms cannot be stored" in rows[1]["evidence"]


def test_a_fault_of_ours_in_one_record_holds_that_record(monkeypatch: pytest.MonkeyPatch) -> None:
    from consumers import record_sink  # noqa: PLC0415

    def stumble(key: bytes | None, *_: object) -> Rejection:
        raise struct.error("as a parser may")

    monkeypatch.setattr(record_sink, "parse_chunk", stumble)
    (row,) = landed(made(record(0, b"x"), 1))
    assert (row["reason"], row["payload"]) == ("unreadable", b"x")
    assert row["evidence"] == "reading it failed with error"
