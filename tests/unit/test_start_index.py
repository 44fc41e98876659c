"""What a batch notes of start times, and what a later backfill makes of it: never less reading than there has to be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.ranges import span
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.offset_range import OffsetRange, joined
from wavestitch.contracts.plain_waveforms import no_plain
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.position import Head, HeadKind, Position
from wavestitch.contracts.quantities import EpochMs, Generation, Offset, Partition
from wavestitch.contracts.reasons import OF_RECORDS
from wavestitch.contracts.start_blocks import ANY_TIME, BLOCK
from wavestitch.contracts.start_index import Known, known_starts
from wavestitch.contracts.start_times import index_starts

MS = 1_000_000
META = (
    '{{"source": "s", "channel": "c", "start_time_ns": {}, "sampling_rate_hz": 1, "sample_format": "i16le", '
    '"units": "mV", "adc_gain": 1, "baseline": 0}}'
)


def chunk(offset: int, start_ms: int, *, reason: str | None = None) -> ChunkFacts:
    meta = META.format(start_ms * MS)
    return ChunkFacts(Partition(0), Offset(offset), EpochMs(0), "w", 0, 1, 0, 2, meta, None, bytes(32), reason, None)


def blocks_of(ranges: list[OffsetRange], chunks: list[ChunkFacts]) -> dict[str, list[list[int]]]:
    return index_starts(ranges, no_plain(ChunkTable.of(chunks)))


def row(starts: dict[str, list[list[int]]], *, generation: int = 1, topic_id: str = "t") -> BatchRow:
    return BatchRow("p", "d", 1, Generation(generation), "ingest", "ecg", EpochMs(0), topic_id=topic_id, starts=starts)


def head(*, at: int, generation: int = 1) -> Head:
    return Head(2, Generation(generation), HeadKind.INGEST, "t", {Partition(0): Position(Offset(at))})


def test_blocks_say_between_which_times_their_valid_chunks_start_and_nothing_of_others() -> None:
    chunks = [chunk(1, 50), chunk(2, 10), chunk(BLOCK + 1, 7, reason="corrupt"), chunk(2 * BLOCK, 90)]
    found = blocks_of([span(0, 1, 2 * BLOCK + 1)], chunks)
    assert found == {"0": [[1, BLOCK, 10, 50], [BLOCK, 2 * BLOCK], [2 * BLOCK, 2 * BLOCK + 1, 90, 90]]}


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
