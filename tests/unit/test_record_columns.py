"""Records that are looked at in columns make the same rows, and spend the same budget, as if each came by itself."""

from __future__ import annotations

import os
import random
import signal
import struct
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Message
from hypothesis import example, given, settings
from hypothesis import strategies as st

from consumers import pending_rows, record_sink
from consumers.batch_scan import Delivery, Silence, hand_over, records_of
from consumers.byte_budget import RECORD_OVERHEAD, ByteBudget
from consumers.landing import LandingWriter
from consumers.range_scan import Source, _ClientEvents, _hand_out
from consumers.raw_message import MOST_HEADERS, message_at
from consumers.record_sink import NeedsCare, RecordSink
from tests.broker.raw_producing import part, record, zigzag
from tests.builders.plans import make_plan
from tests.builders.ranges import span
from tests.builders.records import Letter, Lie, cut, letter, lied, metadata
from tests.faults.killed_batch import die_at_record
from tests.fuzz.kafka_targets import compressed
from wavestitch.contracts.chunk_columns import parse_chunks
from wavestitch.contracts.chunk_header import KNOWN
from wavestitch.contracts.chunk_proof import NO_PROOF, ChunkProof
from wavestitch.contracts.errors import Refused, Terminal
from wavestitch.contracts.holes import HoleFinder
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding, IdPartitions
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.record_batches import AbortedTransaction
from wavestitch.contracts.record_columns import BatchBody, find_records, number_texts
from wavestitch.contracts.stop_rule import StopRule
from wavestitch.kafka.raw_batches import RawBatch, split_batches
from wavestitch.kafka.raw_log import Fetched

FAR = span(0, 0, 1 << 40)
SHA256 = ChunkProof("sha256")
BOUND = IdBinding(IdPartitions(prefixes={"w1": (0,), "w": (1,)}))
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
APPEND_TIME = 8


def waveform(name: str, chunks: int, *, size: int = 4, **more: Any) -> list[Letter]:
    values = [bytes([n & 255]) * size for n in range(chunks)]
    return cut(name, values, meta=metadata(len(name), note=name), **more)


WAVEFORMS = [
    waveform("w1", 40),
    waveform("w12", 40, live=True),
    waveform("w3", 30, keyed=False),
    waveform("wé", 9, size=600),
    waveform("large", 3, size=70_000),
    [Letter(r.key, (*r.headers, ("trace-é", b"x")), r.value) for r in waveform("w4", 20)],
    [Letter(r.key, (("other", None), *r.headers[::-1], ("other", b"")), r.value) for r in waveform("w5", 20)],
    *([(waveform(f"x{n}", 2))[n % 2]] for n in range(30)),
]
W1 = waveform("w1", 5)


def with_headers(*headers: Any) -> Letter:
    return Letter(b"w1", headers, b"\0" * 4)


ODD = [
    *(lied(W1[2], lie) for lie in Lie),
    letter("w1", 5, b"1234", meta=metadata(2), count=3),
    Letter(b"w1", (*W1[2].headers, ("ws-seq", b"2")), W1[2].value),
    with_headers(("other", None)),
    with_headers(*W1[0].headers, ("other", None)),
    with_headers(*((n, None if n == "ws-crc" else v) for n, v in W1[0].headers)),
    with_headers(*((n, v and v.upper() if n == "ws-crc" else v) for n, v in waveform("w1", 99)[77].headers)),
    with_headers(*W1[0].headers, (b"\xff", b"no text")),
    *(with_headers(*W1[0].headers, *[(name, value)] * n) for name in KNOWN for value, n in ((None, 1), (b"2", 2))),
    with_headers(*W1[0].headers, *((f"h{n}", b"") for n in range(70))),
    Letter(b"w" * 300, W1[0].headers, b"\0" * 4),
    Letter(b"w1", W1[0].headers, b""),
    Letter(None, (), None),
    Letter(None, W1[0].headers, b"\0" * 4),
    Letter(b"", W1[0].headers, b"\0" * 4),
    letter("w1", 1, b"12", meta=metadata(1, note="n" * 17_000), count=3),
    letter("w1", 1, b"12", meta=metadata(1), count=3, digest="A" * 32),
    letter("w1", 1, b"12", meta=metadata(1), count=3, digest="a" * 31),
]


class Sent(NamedTuple):
    """A record at an offset, with its time in ms."""

    letter: Letter
    offset: int
    time: int


def encoded(sent: Sent, *, first: Sent) -> bytes:
    headers = b"".join(part(n if isinstance(n, bytes) else n.encode()) + part(v) for n, v in sent.letter.headers)
    return record(
        sent.offset - first.offset,
        sent.letter.value,
        since=sent.time - first.time,
        key=sent.letter.key,
        headers=headers,
        count=len(sent.letter.headers),
    )


def batch_of(sent: Sequence[Sent], *, codec: int = 0, attributes: int = 0, behind: int = 0) -> RawBatch:
    """`behind`: so many offsets at its end have no record any more."""
    first = sent[0]
    body = b"".join(encoded(s, first=first) for s in sent)
    name = CODECS[codec]
    return raw_batch(
        body if name is None else compressed(name, body),
        base=first.offset,
        attributes=codec | attributes,
        delta=sent[-1].offset - first.offset + behind,
        times=(first.time, max(s.time for s in sent)),
        records=len(sent),
    )


def raw_batch(
    body: bytes, *, base: int = 0, attributes: int = 0, delta: int, times: tuple[int, int] = (5, 5), records: int
) -> RawBatch:
    # As the head has it; nobody asks for the CRC of one that holds records.
    first, newest = times
    after = struct.pack(">hiqqqhii", attributes, delta, first, newest, -1, -1, -1, records) + body
    data = struct.pack(">qiibI", base, 9 + len(after), -1, 2, 0) + after
    (batch,) = split_batches(memoryview(data), where="here")
    return batch


def body_of(batch: RawBatch) -> BatchBody:
    """Of one that is not compressed."""
    stamp = batch.max_timestamp if batch.is_append_time else None
    return BatchBody(
        batch.body, batch.records, batch.base_offset, batch.last_offset_delta, batch.first_timestamp, stamp
    )


def side_by_side(letters: Sequence[Letter], *, size: int = 1 << 30) -> list[RawBatch]:
    """Batches of so many records, from offset 0 on."""
    sent = [Sent(one, n, 1000 + n) for n, one in enumerate(letters)]
    return [batch_of(sent[at : at + size]) for at in range(0, len(sent), size)]


def landed(
    batches: Sequence[RawBatch],
    *,
    together: bool,
    allowed: int = 1 << 40,
    slice_: OffsetRange = FAR,
    ids: IdBinding = ANYWHERE,
    proof: ChunkProof = NO_PROOF,
) -> tuple[Any, ...]:
    """What is on disk and in the budget, or how it ended."""
    with TemporaryDirectory() as folder:
        budget = ByteBudget(make_plan(), (0,), Path(folder), allowed)
        with LandingWriter(Path(folder), slice_) as writer:
            sink = RecordSink(
                writer,
                proof,
                budget.add,
                careful=True,
                partition=Partition(0),
                ids=ids,
                on_stored_run=budget.add_run,
            )
            try:
                holes = deliver(batches, slice_, sink, together=together)
                return (writer.finish([]), budget.records, budget.stored, holes, sink.epoch)
            except Refused as error:
                return (type(error), str(error), budget.records, budget.stored)


def deliver(batches: Sequence[RawBatch], slice_: OffsetRange, sink: RecordSink, *, together: bool) -> Any:
    told: list[int] = [0, 0]

    def tell(records: int, size: int) -> None:
        told[0] += records
        told[1] += size

    source = Source("ecg", "t", "", "g", 5.0)
    delivery = Delivery(slice_, source, sink.land, sink.land_columns, tell, lambda _: None)
    for batch in batches:
        if together:
            delivery.add(batch)
        else:
            delivery.one_by_one(batch)
    delivery.flush()
    return (delivery.holes.close(Offset(batches[-1].end)), delivery.reached, *told)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_rows, "BATCH_BYTES", 2000)
    monkeypatch.setattr(pending_rows, "BATCH_ROWS", 7)


def drawn(seed: int, odd: float) -> list[Sent]:
    dice = random.Random(seed)
    records = [r for some in dice.sample(WAVEFORMS, dice.randrange(1, 9)) for r in some]
    if dice.random() < 0.3:
        dice.shuffle(records)
    found, offset = [], 0
    for one in records:
        offset += dice.choice((1, 2, 5, 300)) if dice.random() < 0.02 else 1
        time = dice.choice((-5, 0, 1 << 40, -(1 << 62), (1 << 63) - 1)) if dice.random() < 0.05 else 1000 + offset
        found.append(Sent(dice.choice(ODD) if dice.random() < odd else one, offset, time))
    return found


def in_batches(sent: list[Sent], dice: random.Random) -> Iterator[RawBatch]:
    at = 0
    while at < len(sent):
        size = dice.choice((1, 3, 40, 200))
        codec = dice.choice((0, 0, 0, 1, 2, 3, 4))
        stamped = APPEND_TIME if dice.random() < 0.1 else 0
        room = sent[at + size].offset - sent[at + size - 1].offset - 1 if at + size < len(sent) else 2
        yield batch_of(sent[at : at + size], codec=codec, attributes=stamped, behind=dice.choice((0, room)))
        at += size


@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 1 << 30), odd=st.sampled_from([0.0, 0.003, 0.1]), room=st.booleans())
@example(seed=0, odd=0.0, room=True)
@pytest.mark.usefixtures("small_batches")
def test_records_that_are_looked_at_together_land_as_if_each_came_by_itself(seed: int, odd: float, room: bool) -> None:
    dice = random.Random(seed)
    sent = drawn(seed, odd)
    batches = list(in_batches(sent, dice))
    allowed = 1 << 40 if room else dice.randrange(1, 400 * len(sent))
    ids, proof = dice.choice(((ANYWHERE, NO_PROOF), (ANYWHERE, NO_PROOF), (BOUND, NO_PROOF), (ANYWHERE, SHA256)))
    ends = [s.offset for s in sent]
    slice_ = dice.choice((FAR, span(0, dice.choice(ends), dice.choice(ends) + 2)))
    if slice_.start >= slice_.end:
        slice_ = FAR
    batches = [b for b in batches if b.base_offset < slice_.end and b.end > slice_.start]
    both = [landed(batches, together=t, allowed=allowed, slice_=slice_, ids=ids, proof=proof) for t in (True, False)]
    assert both[0] == both[1]


@pytest.mark.parametrize("odd", range(len(ODD)))
def test_one_odd_record_among_others_is_what_it_is_by_itself(odd: int) -> None:
    records = waveform("w", 40)
    found = side_by_side([*records[:20], ODD[odd], *records[20:]])
    assert landed(found, together=True) == landed(found, together=False)


@pytest.mark.parametrize("odd", range(len(ODD)))
def test_odd_records_by_themselves_are_what_they_are(odd: int) -> None:
    found = side_by_side([ODD[odd]] * 3)
    assert landed(found, together=True) == landed(found, together=False)


@pytest.mark.parametrize("time", [0, -1, -5, 1, 1 << 61, -(1 << 63)])
def test_an_odd_time_is_landed_as_none(time: int) -> None:
    sent = [Sent(r, n, time + n % 2) for n, r in enumerate(waveform("w", 40))]
    for attributes in (0, APPEND_TIME):
        found = [batch_of(sent, attributes=attributes)]
        assert landed(found, together=True) == landed(found, together=False)


def test_the_leader_epoch_is_that_of_the_last_record_that_is_read() -> None:
    letters = waveform("w", 40)
    batches = [b._replace(leader_epoch=n) for n, b in enumerate(side_by_side(letters, size=10))]
    # The second has its last offset no more, where the slice ends.
    first, second = batches[0], batch_of([Sent(letters[10], 10, 5), Sent(letters[11], 15, 5)])._replace(leader_epoch=1)
    for end, epoch in ((10, 0), (11, 1), (15, 1), (16, 1)):
        some = [b for b in (first, second) if b.base_offset < end]
        both = [landed(some, together=t, slice_=span(0, 0, end)) for t in (True, False)]
        assert both[0] == both[1]
        assert both[0][-1] == epoch
    late = batch_of([Sent(letters[10], 15, 5), Sent(letters[11], 25, 5)])._replace(
        base_offset=Offset(10), leader_epoch=7
    )
    assert landed([first, late], together=True, slice_=span(0, 0, 12))[-1] in (0, 7)


@pytest.mark.parametrize(("ids", "proof"), [(BOUND, NO_PROOF), (ANYWHERE, SHA256)])
def test_what_a_stream_demands_is_demanded_of_records_that_are_looked_at_together(
    ids: IdBinding, proof: ChunkProof
) -> None:
    for some in (waveform("w1", 40), waveform("w", 40), [*waveform("w1", 9), *waveform("w", 9), *waveform("w1", 9)]):
        found = side_by_side(some)
        both = [landed(found, together=t, ids=ids, proof=proof) for t in (True, False)]
        assert both[0] == both[1]


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("size", [4, 400, 1600])
def test_record_batches_of_a_landing_end_where_they_would_have_ended(size: int) -> None:
    found = side_by_side(waveform("w", 40, size=size))
    assert landed(found, together=True) == landed(found, together=False)


def alone_of(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is looked at by itself from now on."""
    alone = []
    parse = record_sink.parse_chunk

    def parse_alone(*what: Any) -> Any:
        alone.append(what)
        return parse(*what)

    monkeypatch.setattr(record_sink, "parse_chunk", parse_alone)
    return alone


def test_nearly_all_records_are_looked_at_together(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = alone_of(monkeypatch)
    records = [r for n in range(12) for r in waveform(f"w{n}", 40, size=512, live=n % 2 > 0)]
    records[300] = lied(records[300], Lie.FLIPPED_BYTE)
    found = side_by_side(records, size=100)
    together = landed(found, together=True)
    assert len(alone) == 1
    assert together == landed(found, together=False)


def test_a_batch_that_is_not_as_the_format_has_it_costs_its_neighbours_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = side_by_side(waveform("w", 400), size=10)
    bad = raw_batch(bytes(good[1].body[:-1]) + b"\7", base=10, delta=9, times=(1000, 1010), records=10)
    alone = alone_of(monkeypatch)
    some = [good[0], bad, *good[2:]]
    together = landed(some, together=True)
    assert len(alone) <= 80
    assert together == landed(some, together=False)


def test_a_batch_that_inflates_to_much_is_read_record_by_record() -> None:
    large = [Sent(letter("w", n, bytes(1 << 20), meta=metadata(1), count=9), n, 5) for n in range(9)]
    found = [batch_of(large, codec=4)]
    assert landed(found, together=True) == landed(found, together=False)


def test_a_budget_is_spent_at_the_same_record() -> None:
    found = side_by_side(waveform("w", 20))
    spent = [landed(found, together=t, allowed=RECORD_OVERHEAD * 30) for t in (True, False)]
    assert spent[0] == spent[1]
    assert spent[0][0] is Refused


M = 2**63 - 1
EXTREMES = st.one_of(
    st.integers(-3, 200),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([M, -M - 1, 2**31 - 1, 2**31, -(2**31), 2**32, -1, 1 << 16, (1 << 16) + 1]),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(EXTREMES, EXTREMES, EXTREMES, EXTREMES, EXTREMES), min_size=1, max_size=4),
    st.sampled_from([5, 0, -1, M, -M - 1]),
    st.integers(0, 3),
)
def test_whatever_its_numbers_say_it_is_read_as_record_by_record_or_not_at_all(
    numbers: list[tuple[int, ...]], first: int, true: int
) -> None:
    body = b""
    for n, (length, since, delta, size, count) in enumerate(numbers):
        fields = (since, n if true else delta, -1, size if true < 2 else -1, count if true < 3 else 0)
        one = b"\0" + b"".join(map(zigzag, fields))
        body += zigzag(len(one) if true else length) + one
    batch = raw_batch(body, delta=len(numbers) - 1, times=(first, first), records=len(numbers))
    columns = find_records([body_of(batch)])
    if true == 3 and all(abs(since) < 1 << 61 for _, since, *_ in numbers):
        assert columns is not None
    if columns is not None:
        alone = list(records_of(batch, FAR, Offset(0)))
        assert [message_at(columns, n, -1) for n in range(len(columns))] == list(map(as_landed, alone))


def as_landed(message: Any) -> Any:
    """With the time as it is landed: what is before the epoch is none."""
    kind, stamp = message.timestamp_
    return type(message)(
        message.offset_,
        (kind, stamp) if kind and stamp > 0 else (0, 0),
        message.epoch,
        message.key_,
        message.value_,
        message.headers_,
        message.unreadable,
    )


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 6), st.booleans())
def test_whatever_bytes_a_batch_has_it_is_read_as_record_by_record_or_not_at_all(
    noise: bytes, records: int, behind: bool
) -> None:
    whole = side_by_side(waveform("w", 3))[0]
    body = bytes(whole.body) + noise if behind else noise
    count = records + 3 if behind else records
    batch = raw_batch(body, delta=max(count - 1, 0), times=(1000, 1002), records=count)
    columns = find_records([body_of(batch)])
    if columns is not None:
        alone = [as_landed(m) for m in records_of(batch, FAR, Offset(0))]
        assert [message_at(columns, n, -1) for n in range(len(columns))] == alone


def test_texts_are_numbered_whatever_their_length_and_null_is_none() -> None:
    said: list[bytes | None] = [
        b"",
        b"a",
        b"a",
        None,
        b"0123456789ab",
        b"0123456789abc",
        b"0123456789abd",
        b"",
        b"a" * 99,
    ]
    columns = find_records([body_of(side_by_side([Letter(s, (), b"") for s in said])[0])])
    assert columns is not None
    found = number_texts(columns.data, columns.keys)
    assert [[*found.said, None][n] for n in found.numbers] == said
    assert len(set(found.said)) == len(found.said)


def test_where_all_say_the_same_it_is_one_text() -> None:
    for said in (None, b"", b"a", b"x" * 200):
        columns = find_records([body_of(side_by_side([Letter(said, (), b"")] * 9)[0])])
        assert columns is not None
        found = number_texts(columns.data, columns.keys)
        assert found.said == ([] if said is None else [said])
        assert set(found.numbers.tolist()) == ({-1} if said is None else {0})


def test_a_record_of_a_mebibyte_is_none_of_many() -> None:
    for size, one_of_many in (((1 << 20) - 20, True), (1 << 20, False), (3 << 20, False)):
        found = find_records([body_of(side_by_side([Letter(None, (), bytes(size))])[0])])
        assert (found is not None) == one_of_many


def test_offsets_that_do_not_rise_are_read_one_by_one() -> None:
    once = [body_of(b) for b in side_by_side(waveform("w", 3))]
    assert find_records(once) is not None
    assert find_records(once * 2) is None


def test_records_of_a_part_are_those_of_the_whole() -> None:
    records = [r for some in WAVEFORMS for r in some]
    columns = find_records([body_of(b) for b in side_by_side(records, size=50)])
    assert columns is not None
    part_ = columns.between(Offset(45), Offset(120))
    assert [message_at(part_, n, 0) for n in range(len(part_))] == [message_at(columns, n, 0) for n in range(45, 120)]
    assert columns.between(Offset(0), Offset(len(records))) is columns
    assert parse_chunks(part_).plain.all()


# What a fetch brings.


def delivery_of(slice_: OffsetRange, *, took: float = 0.0, passes: float = 0.0) -> tuple[Delivery, Silence, list[int]]:
    """One that notes the offsets that it hands on. `took`: how long somebody looks at some of them; `passes`: so much
    time between two looks at the clock."""
    taken: list[int] = []

    def take_columns(records: Any, _epoch: int) -> int:
        taken.extend(records.offsets.tolist())
        now[0] += took
        return 0

    def clock() -> float:
        now[0] += passes
        return now[0]

    now = [0.0]
    source = Source("ecg", "t", "", "g", 5.0)
    delivery = Delivery(slice_, source, lambda *_: 0, take_columns, lambda *_: None, lambda _: None)
    return delivery, Silence(source, slice_, clock), taken


def test_a_slice_whose_last_offsets_lie_between_two_batches_comes_to_its_end() -> None:
    letters = waveform("w", 40)
    first = batch_of([Sent(r, n, 1000) for n, r in enumerate(letters)])
    behind = batch_of([Sent(r, 60 + n, 1000) for n, r in enumerate(letters)])
    delivery, silence, taken = delivery_of(span(0, 0, 50))
    hand_over(Fetched([first, behind], [], 100), delivery, silence, where="here")
    assert delivery.reached == 50
    assert taken == list(range(40))
    assert delivery.holes.close(Offset(50)) == [(40, 50)]


def test_a_slice_before_the_first_batch_that_is_left_is_a_hole() -> None:
    behind = batch_of([Sent(r, 60 + n, 1000) for n, r in enumerate(waveform("w", 40))])
    delivery, silence, taken = delivery_of(span(0, 10, 50))
    hand_over(Fetched([behind], [], 100), delivery, silence, where="here")
    assert (delivery.reached, taken, delivery.holes.close(Offset(50))) == (50, [], [(10, 50)])


def test_what_looking_at_records_takes_is_no_silence() -> None:
    delivery, silence, taken = delivery_of(FAR, took=60.0)
    hand_over(Fetched(side_by_side(waveform("w", 40)), [], 100), delivery, silence, where="here")
    assert taken
    assert not silence.is_over


def test_aborted_records_are_silence_however_many_fetches_bring_them() -> None:
    aborted = batch_of([Sent(r, n, 1000) for n, r in enumerate(waveform("w", 3))], attributes=16)
    delivery, silence, taken = delivery_of(FAR, passes=2.0)
    fetch = Fetched([aborted], [AbortedTransaction(-1, Offset(0))], 100)
    for _ in range(2):
        hand_over(fetch, delivery, silence, where="here")
    with pytest.raises(Terminal, match="nothing was committed"):
        hand_over(fetch, delivery, silence, where="here")
    assert taken == []


# What the client hands out.


def message(record_: Letter, offset: int, stamp: tuple[int, int]) -> Any:
    return Message(
        topic="t",
        partition=0,
        offset=offset,
        key=record_.key,
        value=record_.value,
        headers=list(record_.headers) or None,
        timestamp=stamp,
    )


def handed_out(messages: Sequence[Any]) -> tuple[Any, ...]:
    with TemporaryDirectory() as folder, LandingWriter(Path(folder), FAR) as writer:
        sink = RecordSink(writer, NO_PROOF, lambda _: None, careful=False, partition=Partition(0))
        rule, holes = StopRule(FAR, idle_seconds=9, now=0.0), HoleFinder(Offset(0))
        _hand_out(list(messages), rule, holes, _ClientEvents(Partition(0)), sink.land)
        return (writer.finish([]), holes.close(Offset(len(messages))), rule.reached)


def test_the_client_and_raw_batches_give_the_same_file() -> None:
    for some in WAVEFORMS:
        by_client = handed_out([message(r, n, (1, 1000 + n)) for n, r in enumerate(some)])
        assert landed(side_by_side(some), together=True)[0] == by_client[0]


@pytest.mark.parametrize("at", [0, 13])
def test_a_record_of_too_many_headers_needs_care(at: int) -> None:
    records = waveform("w", 20)
    records[at] = records[at]._replace(headers=(*records[at].headers, *((f"h{n}", b"") for n in range(MOST_HEADERS))))
    with pytest.raises(NeedsCare, match=f"a record without headers at offset {at}, or with too many"):
        handed_out([message(r, n, (1, 1)) for n, r in enumerate(records)])


def test_a_record_without_headers_needs_care() -> None:
    found = [message(r, n, (1, 1)) for n, r in enumerate(waveform("w", 20))]
    found[13] = message(Letter(b"w", (), b"1234"), 13, (1, 1))
    with pytest.raises(NeedsCare, match="a record without headers at offset 13, or with too many"):
        handed_out(found)


class _Poisoned(Message):
    """As the client's of a header whose name is not UTF-8: it raises once, and returns then what must kill."""

    asked = 0

    def headers(self) -> Any:
        type(self).asked += 1
        assert self.asked == 1, "asked again, the client returns a list with a null pointer"
        raise SystemError("returned a result with an exception set") from UnicodeDecodeError("utf-8", b"\xff", 0, 1, "")


def test_a_message_whose_headers_cannot_be_read_is_asked_for_them_once() -> None:
    found = [message(r, n, (1, 1)) for n, r in enumerate(waveform("w", 20))]
    found[13] = _Poisoned(topic="t", partition=0, offset=13, key=b"w", value=b"1234", timestamp=(1, 1))
    with pytest.raises(NeedsCare, match="a header's name that is not UTF-8 at offset 13"):
        handed_out(found)
    assert _Poisoned.asked == 1


# A reader that dies.


def land_and_die(folder: Path, nth: int, told: Connection) -> None:
    """In a process of its own: die at a record in the middle of columns; `told` what was landed before."""
    die_at_record(nth, lambda: os.kill(os.getpid(), signal.SIGKILL))
    add_run = LandingWriter.add_run

    def told_run(self: LandingWriter, offsets: Any, times: Any, found: Any, values: Any) -> None:
        add_run(self, offsets, times, found, values)
        told.send((offsets[0], len(values)))

    LandingWriter.add_run = told_run  # type: ignore[method-assign, assignment]
    with LandingWriter(folder, FAR) as writer:
        land_forty(writer)


def land_forty(writer: LandingWriter) -> Any:
    sink = RecordSink(
        writer, NO_PROOF, lambda _: None, careful=True, partition=Partition(0), on_stored_run=lambda *_: True
    )
    deliver(side_by_side(waveform("w", 40)), FAR, sink, together=True)
    return writer.finish([])


@pytest.mark.parametrize("nth", [17, 39])
@pytest.mark.usefixtures("small_batches")
def test_a_reader_that_is_killed_in_the_middle_of_columns_leaves_nothing_that_counts(tmp_path: Path, nth: int) -> None:
    here, there = Pipe(duplex=False)
    child = get_context("fork").Process(target=land_and_die, args=(tmp_path / "killed", nth, there))
    (tmp_path / "killed").mkdir()
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    assert here.poll(), "it died before anything was landed in columns"
    assert here.recv() == (0, nth)
    left = {p.name for p in (tmp_path / "killed").iterdir()}
    assert not [name for name in left if name.endswith(".arrow")], f"a file that looks whole: {left}"
    (tmp_path / "whole").mkdir()
    made = []
    for folder in ("killed", "whole"):
        with LandingWriter(tmp_path / folder, FAR) as writer:
            made.append(land_forty(writer))
    assert made[0] == made[1], "read again beside what the killed one left, it is the same"


def test_what_bytes_bring_about_in_columns_is_looked_at_one_by_one_and_a_fault_of_ours_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = side_by_side(waveform("w", 40))
    alone = landed(found, together=False)

    def fails_with(error: Exception) -> None:
        def fail(*_: Any) -> None:
            raise error

        monkeypatch.setattr(record_sink, "parse_chunks", fail)

    fails_with(RecursionError("deeper than anybody thought"))
    assert landed(found, together=True) == alone
    fails_with(AttributeError("no such column"))
    with pytest.raises(AttributeError):
        landed(found, together=True)
