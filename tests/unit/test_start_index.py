"""What a batch notes of start times, and what a later backfill makes of it: never less reading than there has to be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.ranges import span
from tests.builders.table_rows import facts
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.chunk_metadata import MAX_TIME_NS
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.offset_range import OffsetRange, joined
from wavestitch.contracts.plain_text import ACCEPTED_MISSING
from wavestitch.contracts.plain_waveforms import no_plain
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.position import Head, HeadKind, Position
from wavestitch.contracts.quantities import EpochMs, Generation, LeaderEpoch, Offset, Partition, epoch_ms
from wavestitch.contracts.reasons import OF_RECORDS
from wavestitch.contracts.start_blocks import ANY_TIME, BLOCK, MOST_BLOCKS, StartBlock
from wavestitch.contracts.start_index import Epoch, Known, known_starts, noted_epochs
from wavestitch.contracts.start_times import index_starts, start_times_ns

MS = 1_000_000
META = (
    '{{"source": "s", "channel": "c", "start_time_ns": {}, "sampling_rate_hz": 1, "sample_format": "i16le", '
    '"units": "mV", "adc_gain": 1, "baseline": 0}}'
)


def chunk(offset: int, start_ms: int, *, reason: str | None = None, partition: int = 0, meta: str = "") -> ChunkFacts:
    meta = meta or META.format(start_ms * MS)
    return ChunkFacts(
        Partition(partition), Offset(offset), EpochMs(0), "w", 0, 1, 0, 2, meta, None, bytes(32), reason, None
    )


def blocks_of(ranges: list[OffsetRange], chunks: list[ChunkFacts]) -> dict[str, list[list[int]]]:
    return index_starts(ranges, no_plain(ChunkTable.of(chunks)))


def row(starts: dict[str, list[list[int]]], *, generation: int = 1, topic_id: str = "t") -> BatchRow:
    return BatchRow("p", "d", 1, Generation(generation), "ingest", "ecg", EpochMs(0), topic_id=topic_id, starts=starts)


def head(*, at: int, generation: int = 1) -> Head:
    return Head(2, Generation(generation), HeadKind.INGEST, "t", {Partition(0): Position(Offset(at))})


SCOPE = Scope(3 * MS, 4 * MS)
EPOCH: Epoch = (Partition(0), LeaderEpoch(5))
INGEST = replace(row({"0": [[0, 4, 3, 3], [4, 10, 3, 3]]}), epochs={"0": 5})
BACKFILL = replace(INGEST, kind="backfill")
PUBLISHED_ALL = replace(
    BACKFILL,
    counts={"read": 10, "published": 10},
    partitions={"0": {"planned": 10, "read": 10, "published": 10}},
)
EARLIER = replace(INGEST, epochs={"0": 4})
PASSED = "moved past; " + ACCEPTED_MISSING + "they were deleted"


def test_blocks_say_between_which_times_their_valid_chunks_start_and_nothing_of_others() -> None:
    chunks = [chunk(1, 50), chunk(2, 10), chunk(BLOCK + 1, 7, reason="corrupt"), chunk(2 * BLOCK, 90)]
    found = blocks_of([span(0, 1, 2 * BLOCK + 1)], chunks)
    assert found == {"0": [[1, BLOCK, 10, 50], [BLOCK, 2 * BLOCK], [2 * BLOCK, 2 * BLOCK + 1, 90, 90]]}


def test_each_block_of_each_partition_has_times_of_its_own_to_the_millisecond() -> None:
    now = 1_700_000_000_123
    chunks = [
        *(chunk(offset, now + offset) for offset in (BLOCK, 2, BLOCK + 1, 1)),
        *(chunk(offset, -offset, partition=1) for offset in (BLOCK + 5, 9, BLOCK + 1, 1)),
    ]
    assert blocks_of([span(0, 0, 2 * BLOCK), span(1, 0, 2 * BLOCK)], chunks) == {
        "0": [[0, BLOCK, now + 1, now + 2], [BLOCK, 2 * BLOCK, now + BLOCK, now + BLOCK + 1]],
        "1": [[0, BLOCK, -9, -1], [BLOCK, 2 * BLOCK, -BLOCK - 5, -BLOCK - 1]],
    }


def test_what_takes_more_blocks_than_a_row_may_have_notes_nothing() -> None:
    start = 5 * BLOCK
    end = start + MOST_BLOCKS * BLOCK
    assert len(blocks_of([span(0, start, end)], [])["0"]) == MOST_BLOCKS
    assert blocks_of([span(0, start, end + 1)], []) == {}
    assert blocks_of([span(0, start, end), span(1, start, start + 1)], []) == {}


def test_start_times_are_those_of_valid_chunks_alone() -> None:
    table = ChunkTable.of([chunk(0, 5), chunk(1, 7), chunk(2, 9, meta="{}")])
    assert start_times_ns(table, np.array([1, 0, 1])).tolist() == [7 * MS, 5 * MS, 7 * MS]
    assert start_times_ns(table, np.empty(0, np.int64)).tolist() == []
    with pytest.raises(ValueError, match="was taken for valid, but"):
        start_times_ns(table, np.array([2]))


@pytest.mark.parametrize(
    ("first_ms", "last_ms", "start_ns", "end_ns", "may"),
    [
        (10, 20, 0, 10 * MS, False),
        (10, 20, 0, 10 * MS + 1, True),
        (10, 20, 12 * MS, 13 * MS, True),
        (10, 20, 21 * MS - 1, 30 * MS, True),
        (10, 20, 21 * MS, 30 * MS, False),
        (-1, -1, -1, 0, True),
        (*ANY_TIME, -MAX_TIME_NS, 1 - MAX_TIME_NS, True),
        (*ANY_TIME, MAX_TIME_NS, MAX_TIME_NS + 1, True),
        (None, None, -MAX_TIME_NS, MAX_TIME_NS, False),
        (10, None, -MAX_TIME_NS, MAX_TIME_NS, False),
        (None, 20, -MAX_TIME_NS, MAX_TIME_NS, False),
    ],
)
def test_a_block_may_hold_what_starts_in_the_milliseconds_that_it_names(
    first_ms: EpochMs | None, last_ms: EpochMs | None, start_ns: int, end_ns: int, may: bool
) -> None:
    assert StartBlock(Offset(0), Offset(1), first_ms, last_ms).may_start_in(Scope(start_ns, end_ns)) is may


def test_what_may_hold_anything_reaches_from_the_first_time_that_metadata_may_say_to_the_last() -> None:
    assert (epoch_ms(-MAX_TIME_NS), epoch_ms(MAX_TIME_NS)) == ANY_TIME


@pytest.mark.parametrize("reason", sorted(OF_RECORDS))
def test_a_block_with_what_another_definition_may_take_for_a_chunk_may_hold_anything(reason: str) -> None:
    chunks = [chunk(1, 50), chunk(BLOCK - 1, 7, reason=reason), chunk(BLOCK, 90)]
    for_ever = reason in ("null_value", "not_a_chunk", "corrupt")
    found = blocks_of([span(0, 0, BLOCK + 1)], chunks)
    assert found == {"0": [[0, BLOCK, *((50, 50) if for_ever else ANY_TIME)], [BLOCK, BLOCK + 1, 90, 90]]}
    wanted = known_starts([row(found)], head(at=BLOCK + 1), Scope(0, 1))[Partition(0)].wanted
    assert wanted == (() if for_ever else (span(0, 0, BLOCK),))


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 100)), max_size=20, unique_by=lambda c: c[0]),
    st.integers(0, 100),
    st.integers(1, 50),
)
def test_no_waveform_of_the_interval_is_ever_passed_over(sent: list[tuple[int, int]], first: int, size: int) -> None:
    scope = Scope(first * MS, (first + size) * MS)
    cut = len(sent) // 2
    rows = [
        row(blocks_of([span(0, 0, 20)], [chunk(o, ms) for o, ms in sent if o < 20])),
        row(blocks_of([span(0, 20, 30)], [chunk(o, ms) for o, ms in sent if 20 <= o < 30])),
    ]
    known = known_starts(rows[: 1 + cut % 2], head(at=41), scope).get(Partition(0), Known())
    log = span(0, 0, 41)
    read = joined([*known.unread(log), *known.found(log)])
    for offset, ms in sent:
        if scope.owns(ms * MS):
            assert any(r.start <= offset < r.end for r in read)


def test_of_an_older_generation_or_another_topic_only_what_is_surely_the_same_counts() -> None:
    scope = Scope(0, 1)
    starts = {"0": [[0, 10, 500, 500]]}
    log = span(0, 0, 10)
    assert known_starts([row(starts)], head(at=0), scope)[Partition(0)].unread(log) == []
    assert known_starts([row(starts)], head(at=4, generation=2), scope)[Partition(0)].unread(log) == [span(0, 4, 10)]
    assert known_starts([row(starts, topic_id="other")], head(at=10), scope) == {}
    assert known_starts([replace(row(starts), starts={})], head(at=10), scope) == {}


def test_of_what_was_skipped_only_batches_since_then_count() -> None:
    skipped = replace(head(at=10, generation=2), skipped=(span(0, 2, 6),))
    old, new = row({"0": [[0, 10, 500, 500]]}), row({"0": [[4, 5, 500, 500]]}, generation=2)
    log = span(0, 0, 10)
    assert known_starts([old], skipped, Scope(0, 1))[Partition(0)].unread(log) == [span(0, 2, 6)]
    assert known_starts([old], skipped, Scope(0, 1))[Partition(0)].lost(log) == [span(0, 2, 6)]
    later = replace(new, sequence=2)
    assert known_starts([old, later], skipped, Scope(0, 1))[Partition(0)].unread(log) == [
        span(0, 2, 4),
        span(0, 5, 6),
    ]


def test_of_what_is_gone_only_what_an_ingest_has_read_or_what_lies_elsewhere_is_not_lost() -> None:
    rows = [
        replace(row({"0": [[0, 4, 3, 3], [4, 8, 500, 500]]}), kind="backfill"),
        replace(row({"0": [[8, 10, 3, 3]]}), kind="manual"),
        row({"0": [[2, 3, 3, 3]]}),
    ]
    known = known_starts(rows, head(at=20), Scope(3 * MS, 4 * MS))[Partition(0)]
    gone = span(0, 0, 12)
    assert known.lost(gone) == [span(0, 0, 2), span(0, 3, 4), span(0, 8, 12)]
    assert known.held_of(known.found(gone)) == [span(0, 2, 3)]


def test_where_two_batches_disagree_the_one_that_makes_it_read_counts() -> None:
    rows = [row({"0": [[0, 10, 500, 500]]}), row({"0": [[5, 8, 3, 3]]})]
    known = known_starts(rows, head(at=10), Scope(3 * MS, 4 * MS))[Partition(0)]
    assert known.found(span(0, 0, 10)) == [span(0, 5, 8)]


def test_of_what_lies_elsewhere_nothing_is_found() -> None:
    known = Known(wanted=(span(0, 2, 3), span(0, 7, 9)), held=(span(0, 2, 3),))
    assert known.found(span(0, 3, 7)) == []
    assert known.found(span(0, 0, 8)) == [span(0, 2, 3), span(0, 7, 8)]
    assert known.held_of([span(0, 3, 7)]) == []
    assert known.held_of([span(0, 0, 8)]) == [span(0, 2, 3)]


def test_a_partition_of_which_nothing_that_was_read_counts_is_not_there() -> None:
    rows = [row({"0": [[4, 6, 3, 3]], "1": [[0, 1, 3, 3]]})]
    assert known_starts(rows, head(at=4, generation=2), SCOPE) == {}
    assert known_starts(rows, head(at=5, generation=2), SCOPE).keys() == {0}
    assert known_starts([INGEST], head(at=0, generation=2), SCOPE, {EPOCH: Offset(10)}) == {}


OF_ANOTHER_TIME = replace(BACKFILL, starts={"0": [[0, 10, 9, 9]]})


@pytest.mark.parametrize(
    ("cut", "anew", "read", "elsewhere"),
    [
        (None, None, [span(0, 0, 10)], [span(0, 0, 10)]),
        (6, None, [span(0, 0, 4)], [span(0, 0, 6)]),
        (2, None, [span(0, 0, 2)], [span(0, 0, 2)]),
        (None, 3, [span(0, 0, 3)], [span(0, 0, 3)]),
        (6, 3, [span(0, 0, 3)], [span(0, 0, 3)]),
        (6, 0, [], []),
    ],
)
def test_of_an_epoch_that_was_cut_off_what_lies_behind_the_position_is_read_again_and_lost_to_nobody(
    cut: int | None, anew: int | None, read: list[OffsetRange], elsewhere: list[OffsetRange]
) -> None:
    """It may have gone on since, from an earlier place; nor is anything believed where a position is on another log."""
    cuts = {} if cut is None else {EPOCH: Offset(cut)}
    from_here = {} if anew is None else {Partition(0): Offset(anew)}
    for row, wanted in ((OF_ANOTHER_TIME, False), (BACKFILL, True)):
        known = known_starts([row], head(at=4), SCOPE, cuts, from_here).get(Partition(0), Known())
        assert list(known.read) == read
        assert list(known.wanted) == (read if wanted else [])
        assert list(known.elsewhere) == ([] if wanted else elsewhere)


@pytest.mark.parametrize(
    ("rows", "cut", "known"),
    [
        # What the log still has of it, what holds it, and what was cut off of it.
        ([INGEST], 6, Known((span(0, 0, 6),), (span(0, 0, 6),), (span(0, 0, 6),), ())),
        ([INGEST], None, Known((span(0, 0, 10),), (span(0, 0, 10),), (span(0, 0, 10),), ())),
        ([BACKFILL], 6, Known((span(0, 0, 6),), (span(0, 0, 6),), (), (span(0, 6, 10),))),
        ([BACKFILL], 2, Known((span(0, 0, 2),), (span(0, 0, 2),), (), (span(0, 2, 10),))),
        ([BACKFILL], 9, Known((span(0, 0, 9),), (span(0, 0, 9),), (), (span(0, 9, 10),))),
        ([BACKFILL], 10, Known((span(0, 0, 10),), (span(0, 0, 10),), (), ())),
        ([OF_ANOTHER_TIME], 6, Known((span(0, 0, 6),), (), (), (), (span(0, 0, 6),))),
        ([PUBLISHED_ALL], 6, Known((span(0, 0, 6),), (span(0, 0, 6),), (), ())),
        # The same offsets in another epoch may have been other records.
        ([BACKFILL, EARLIER], 6, Known((span(0, 0, 10),), (span(0, 0, 10),), (span(0, 0, 10),), (span(0, 6, 10),))),
        ([BACKFILL, INGEST], 6, Known((span(0, 0, 6),), (span(0, 0, 6),), (span(0, 0, 6),), ())),
        ([replace(BACKFILL, epochs={})], 6, Known((span(0, 0, 10),), (span(0, 0, 10),), (), ())),
    ],
)
def test_of_a_log_that_was_cut_off_what_was_read_beyond_the_cut_is_named_where_nobody_holds_it(
    rows: list[BatchRow], cut: int | None, known: Known
) -> None:
    cuts = {} if cut is None else {EPOCH: Offset(cut)}
    assert known_starts(rows, head(at=10), SCOPE, cuts) == {Partition(0): known}


def written(row: BatchRow, *runs: tuple[int, int]) -> BatchRow:
    return replace(row, written={"0": [list(run) for run in runs]})


@pytest.mark.parametrize(
    ("rows", "lost", "cut_off"),
    [
        ([written(BACKFILL, (0, 5))], [span(0, 0, 12)], [span(0, 6, 10)]),
        ([written(BACKFILL, (0, 5)), written(INGEST, (0, 5))], [span(0, 10, 12)], []),
        # Of another epoch, the same offset is another record.
        ([written(BACKFILL, (0, 4)), written(INGEST, (0, 5))], [span(0, 0, 12)], [span(0, 6, 10)]),
        ([written(BACKFILL, (0, 4)), written(INGEST, (0, 4), (7, 5))], [span(0, 7, 12)], [span(0, 7, 10)]),
        ([written(BACKFILL, (0, 4), (7, 5)), written(INGEST, (0, 4))], [span(0, 7, 12)], [span(0, 7, 10)]),
        # In whichever epoch they were planned.
        ([replace(written(BACKFILL, (0, 3)), epochs={"0": 4}), written(INGEST, (0, 3))], [span(0, 10, 12)], []),
        ([written(BACKFILL, (0, 3)), replace(written(INGEST, (0, 3)), epochs={})], [span(0, 10, 12)], []),
        ([written(BACKFILL, (0, 3)), written(PUBLISHED_ALL, (0, 3))], [span(0, 0, 12)], []),
        # A row that does not say when what it holds was written holds what lay there when it was planned.
        ([written(BACKFILL, (0, 3)), INGEST], [span(0, 10, 12)], []),
        ([written(BACKFILL, (0, 3)), replace(INGEST, epochs={"0": 4})], [span(0, 10, 12)], []),
        ([written(BACKFILL, (0, 3)), replace(INGEST, epochs={})], [span(0, 10, 12)], []),
        ([written(BACKFILL, (0, -1)), INGEST], [span(0, 10, 12)], []),
        (
            [replace(written(BACKFILL, (0, 5)), epochs={"0": 4}), replace(INGEST, epochs={"0": 4})],
            [span(0, 0, 12)],
            [span(0, 6, 10)],
        ),
    ],
)
def test_of_what_is_gone_whoever_read_it_as_written_in_that_epoch_holds_it(
    rows: list[BatchRow], lost: list[OffsetRange], cut_off: list[OffsetRange]
) -> None:
    known = known_starts(rows, head(at=10), SCOPE, {EPOCH: Offset(6)})[Partition(0)]
    assert list(known.cut_off) == cut_off
    everything = known_starts(rows, head(at=10), SCOPE)[Partition(0)]
    assert everything.lost(span(0, 0, 12)) == lost


def test_what_was_cut_off_is_named_whatever_the_generation_in_which_it_was_read() -> None:
    known = known_starts([BACKFILL], head(at=4, generation=2), SCOPE, {EPOCH: Offset(6)})[Partition(0)]
    assert (known.read, known.cut_off) == ((span(0, 0, 4),), (span(0, 6, 10),))


@pytest.mark.parametrize(("note", "holds"), [("rewound", True), (PASSED, False)])
@pytest.mark.parametrize("before", [INGEST, PUBLISHED_ALL])
def test_what_was_read_before_somebody_accepted_that_some_is_missing_is_not_held(
    before: BatchRow, note: str, holds: bool
) -> None:
    accepting = replace(head(at=10, generation=2), note=note)
    known = known_starts([before], accepting, SCOPE, {EPOCH: Offset(6)})[Partition(0)]
    assert known.cut_off == (() if holds else (span(0, 6, 10),))
    assert known.held == ((span(0, 0, 6),) if holds and before is INGEST else ())


@pytest.mark.parametrize("read", [INGEST, PUBLISHED_ALL])
def test_what_was_read_since_then_is_held_until_somebody_accepts_that_again(read: BatchRow) -> None:
    accepting = replace(row({}, generation=2), sequence=2, note=PASSED)
    rows = [accepting, replace(read, sequence=3, generation=Generation(2))]
    cuts = {EPOCH: Offset(6)}
    now = replace(head(at=10, generation=2), sequence=3)
    known = known_starts(rows, now, SCOPE, cuts)[Partition(0)]
    assert (known.held, known.cut_off) == ((span(0, 0, 6),) if read is INGEST else (), ())
    again = replace(now, sequence=4, generation=Generation(3), note=PASSED)
    known = known_starts(rows, again, SCOPE, cuts)[Partition(0)]
    assert (known.held, known.cut_off) == ((), (span(0, 6, 10),))


def test_how_far_each_epoch_was_noted_is_the_end_of_its_last_block() -> None:
    rows = [
        replace(row({"0": [[0, 4, 3, 3], [4, 9]], "2": [[0, 7]], "3": []}), epochs={"0": 5, "3": 1}),
        replace(row({"0": [[9, 12]], "1": [[3, 4]]}), epochs={"0": 6, "1": 0}),
        replace(row({"0": [[1, 2]]}), epochs={"0": 5}),
        replace(row({"0": [[0, 99]]}, topic_id="other"), epochs={"0": 5}),
    ]
    assert noted_epochs(rows, head(at=20)) == {(0, 5): 9, (0, 6): 12, (1, 0): 4}


@pytest.mark.parametrize(
    ("places", "in_order"),
    [
        *(([], True), ([(0, 5)], True), ([(0, 5), (0, 6), (1, 0)], True)),
        *(([(0, 5), (0, 5)], False), ([(0, 5), (0, 6), (0, 4)], False), ([(1, 0), (0, 5), (0, 6)], False)),
    ],
)
def test_rows_are_in_order_of_their_places_where_all_are_and_no_two_have_one(
    places: list[tuple[int, int]], *, in_order: bool
) -> None:
    assert (
        ChunkTable.of([facts(p, o, b"x", topic_id="")._replace(carried=False) for p, o in places]).is_in_order
        == in_order
    )
