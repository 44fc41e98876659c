"""What the table has of each record of a verified range, on records that are written down."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.builders.chunks import make_chunk, make_held
from tests.builders.ranges import span
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.held import HeldChunk, PublishedChunk, PublishedWaveform
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.record_accounts import Accounts, RecordIs, TableHas, account, settled

P0 = Partition(0)
CHUNK = make_chunk("w", 0, at=(0, 4), topic_id="t")
RECORD = CHUNK._replace(reason="unproven")
READ = [span(0, 2, 6), span(1, 0, 3)]


def table(*held: HeldChunk, published: ChunkFacts | None = None, position: int = 10) -> TableHas:
    row = () if published is None else (PublishedChunk(P0, Offset(99), published.length, published.piece),) * 2
    rows = {} if published is None else {"w": PublishedWaveform("w", row)}
    return TableHas("t", rows, held, {P0: Offset(position)})


def accounted(chunk: ChunkFacts, has: TableHas) -> Accounts:
    return account([chunk], READ, has)


@pytest.mark.parametrize(
    ("chunk", "has", "found", "as_records"),
    [
        (CHUNK, table(published=CHUNK), RecordIs.PUBLISHED, False),
        (RECORD, table(published=CHUNK), None, False),
        (CHUNK, table(make_held(CHUNK)), RecordIs.HELD, False),
        (RECORD, table(make_held(RECORD, Reason.UNPROVEN)), RecordIs.HELD, False),
        # Held as no chunk, and one today; and the other way round.
        (CHUNK, table(make_held(RECORD, Reason.UNPROVEN)), RecordIs.HELD, True),
        (RECORD, table(make_held(CHUNK)), RecordIs.HELD, False),
        # Another copy of it is held from elsewhere; of what was no chunk there, no record here is a copy.
        (CHUNK, table(make_held(CHUNK._replace(offset=Offset(77)))), RecordIs.HELD, False),
        (CHUNK, table(make_held(RECORD._replace(offset=Offset(77)), Reason.UNPROVEN)), None, False),
        (RECORD, table(make_held(RECORD._replace(offset=Offset(77)), Reason.UNPROVEN)), None, False),
        # The position stands at it, or behind it.
        (CHUNK, table(position=4), RecordIs.TO_BE_READ, False),
        (CHUNK, table(position=5), None, False),
    ],
)
def test_a_record_is(chunk: ChunkFacts, has: TableHas, found: RecordIs | None, as_records: bool) -> None:
    made = accounted(chunk, has)
    assert made.counts == ({} if found is None else {found: 1})
    assert dict(made.left) == ({} if found else {"w" if chunk is CHUNK else None: [span(0, 4, 5)]})
    assert made.held == (Counter({has.held[0].reason.value: 1}) if found is RecordIs.HELD else {})
    assert dict(made.as_records) == ({"w": list(has.held)} if as_records else {})
    assert made.misplaced == []


@pytest.mark.parametrize(
    ("held", "there"),
    [
        (make_held(CHUNK), None),
        (make_held(CHUNK._replace(offset=Offset(5))), "no record"),
        (make_held(CHUNK._replace(partition=Partition(1), offset=Offset(2))), "no record"),
        (make_held(make_chunk("w", 1, at=(0, 4), topic_id="t")), "another record"),
        (make_held(CHUNK._replace(timestamp_ms=EpochMs(1), reason="unproven"), Reason.UNPROVEN), "another record"),
        # What was not read says nothing, nor does another topic.
        (make_held(CHUNK._replace(offset=Offset(6))), None),
        (make_held(CHUNK._replace(partition=Partition(1), offset=Offset(3))), None),
        (make_held(CHUNK._replace(offset=Offset(5), topic_id="before")), None),
    ],
)
def test_what_is_held_from_a_place_that_was_read_lies_there(held: HeldChunk, there: str | None) -> None:
    assert [m.there for m in accounted(CHUNK, table(held)).misplaced] == ([] if there is None else [there])


@pytest.mark.parametrize(
    ("name", "named", "known", "skipped", "found"),
    [
        ("w", [], [span(0, 0, 9)], [], {RecordIs.NOWHERE: 4}),
        (None, [], [span(0, 0, 9)], [], {RecordIs.HELD_NO_MORE: 4}),
        # That a row names the place of a chunk says nothing of it: the row was looked at.
        ("w", [span(0, 3, 5)], [span(0, 0, 9)], [], {RecordIs.NOWHERE: 4}),
        (None, [span(0, 3, 5)], [span(0, 0, 9)], [], {RecordIs.PUBLISHED_THEN: 2, RecordIs.HELD_NO_MORE: 2}),
        ("w", [], [span(0, 0, 3)], [], {RecordIs.NOWHERE: 1, RecordIs.NOT_READ: 3}),
        ("w", [], [span(0, 0, 3)], [span(0, 0, 4)], {RecordIs.NOWHERE: 1, RecordIs.SKIPPED: 1, RecordIs.NOT_READ: 2}),
    ],
)
def test_what_nothing_was_said_of_is_settled_by_what_batches_have_read(
    name: str | None,
    named: list[OffsetRange],
    known: list[OffsetRange],
    skipped: list[OffsetRange],
    found: dict[RecordIs, int],
) -> None:
    left = Accounts()
    left.left[name] = [span(0, 2, 6)]
    done = settled(left, named=named, known=known, skipped=skipped)
    assert +done.counts == found
    of_waveforms = {RecordIs.NOWHERE: done.nowhere, RecordIs.NOT_READ: done.not_read, RecordIs.SKIPPED: done.skipped}
    for what, ranges in of_waveforms.items():
        assert sum(r.size for r in ranges.get("w", ())) == (found.get(what, 0) if name else 0)
        assert bool(ranges) is bool(ranges.get("w"))
