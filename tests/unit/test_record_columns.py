"""Records that are looked at in columns make the same rows, and spend the same budget, as if each came by itself."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from consumers import pending_rows, record_sink
from consumers.batch_scan import records_of
from consumers.byte_budget import RECORD_OVERHEAD
from consumers.raw_message import message_at
from tests.broker.raw_producing import zigzag
from tests.builders.ranges import span
from tests.builders.raw_batches import (
    APPEND_TIME,
    BOUND,
    FAR,
    ODD,
    SHA256,
    WAVEFORMS,
    Sent,
    batch_of,
    body_of,
    landed,
    raw_batch,
    side_by_side,
    waveform,
)
from tests.builders.records import Letter, Lie, letter, lied, metadata
from wavestitch.contracts.chunk_columns import parse_chunks
from wavestitch.contracts.chunk_proof import NO_PROOF, ChunkProof
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.id_partitions import ANYWHERE, IdBinding
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.record_columns import find_records, number_texts
from wavestitch.kafka.raw_batches import RawBatch


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


def test_of_each_leader_epoch_the_first_record_that_is_read_is_noted() -> None:
    letters = waveform("w", 40)
    batches = [b._replace(leader_epoch=n) for n, b in enumerate(side_by_side(letters, size=10))]
    # The second has its last offset no more, where the slice ends.
    first, second = batches[0], batch_of([Sent(letters[10], 10, 5), Sent(letters[11], 15, 5)])._replace(leader_epoch=1)
    for end, written in ((10, [(0, 0)]), (11, [(0, 0), (10, 1)]), (15, [(0, 0), (10, 1)]), (16, [(0, 0), (10, 1)])):
        some = [b for b in (first, second) if b.base_offset < end]
        both = [landed(some, together=t, slice_=span(0, 0, end)) for t in (True, False)]
        assert both[0] == both[1]
        assert both[0][-1] == written
    late = batch_of([Sent(letters[10], 15, 5), Sent(letters[11], 25, 5)])._replace(
        base_offset=Offset(10), leader_epoch=7
    )
    assert landed([first, late], together=True, slice_=span(0, 0, 12))[-1] == [(0, 0), (10, 7)]


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
    st.sampled_from([5, 0, -1, -M - 1]),
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
