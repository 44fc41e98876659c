"""What a verification says of a waveform beside what it is found to be: the sentence, and what a promotion goes by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders.ranges import span
from tests.unit.test_verification import (
    CHUNKS,
    CUT,
    ELSEWHERE,
    EXTENT,
    HELD,
    HERE,
    INCOMPLETE,
    MADE,
    P0,
    ROW,
    A,
    B,
    lying,
)
from wavestitch.contracts.promotion import digest_of_pieces
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.row_face import RowFace
from wavestitch.contracts.verification import Agreement, InLog, LogChunk, LogExtent, NotThere, compare, in_words

REFUSED_NOW = replace(EXTENT, chunks={**CHUNKS, (0, 5): LogChunk("w", 1, B, 2, "unproven")})
WHOLE = digest_of_pieces([A, B])


def test_what_was_read_ends_before_the_end_of_its_range() -> None:
    extent = replace(EXTENT, read=(span(0, 2, 4), span(1, 0, 3)))
    read = [(p, offset) for p in range(3) for offset in range(6) if extent.was_read(Partition(p), Offset(offset))]
    assert read == [(0, 2), (0, 3), (1, 0), (1, 1), (1, 2)]


def test_of_rows_that_are_there_twice_the_first_one_s_batch_and_chunks_are_named() -> None:
    later = replace(ROW, plan_id="later", pieces=ELSEWHERE)
    found = compare("w", INCOMPLETE, [ROW, later], None, REFUSED_NOW)
    assert (found.plan_id, found.no_chunk) == ("batch", "partition 0 offset 5 (unproven)")


def test_a_partition_of_which_the_log_has_nothing_ends_at_its_beginning() -> None:
    assert [EXTENT.is_cut_off(P0, Offset(offset)) for offset in (0, 8, 9)] == [False, False, True]
    assert EXTENT.is_cut_off(Partition(7), Offset(0))


@pytest.mark.parametrize(
    ("counts", "code", "said"),
    [
        ({}, 7, "no difference, but not all could be compared: no waveform"),
        ({"same": 3, "held": 0, "outside": 1}, 0, "the table says what the log says: 3 same, 1 outside"),
        ({"same": 2, "differs": 1}, 6, "the table and the log DIFFER: 2 same, 1 differs"),
    ],
)
def test_the_verdict_counts_what_there_is(counts: dict[str, int], code: int, said: str) -> None:
    assert in_words(counts, code) == said


@pytest.mark.parametrize(
    ("log", "extent", "says"),
    [
        (None, REFUSED_NOW, "partition 0 offset 5 (unproven)"),
        (INCOMPLETE, REFUSED_NOW, "partition 0 offset 5 (unproven)"),
        (replace(MADE, made=CUT), REFUSED_NOW, "partition 0 offset 5 (unproven)"),
        (replace(MADE, made=replace(ROW, pieces=ELSEWHERE)), REFUSED_NOW, "partition 0 offset 5 (unproven)"),
        # Sent again: what was stitched has that chunk from another place.
        (MADE, REFUSED_NOW, ""),
        (INCOMPLETE, EXTENT, ""),
        (INCOMPLETE, replace(REFUSED_NOW, read=(span(0, 2, 5),)), ""),
        (INCOMPLETE, replace(REFUSED_NOW, topic_id="another"), ""),
    ],
)
def test_the_place_of_a_chunk_that_is_none_any_more_is_named(log: InLog | None, extent: LogExtent, says: str) -> None:
    assert compare("w", log, [ROW], None, extent).no_chunk == says


@pytest.mark.parametrize(
    ("row", "log", "was", "made", "inside"),
    [
        (ROW, MADE, WHOLE, WHOLE, True),
        (ROW, INCOMPLETE, WHOLE, "", True),
        (lying(offset=77), MADE, WHOLE, WHOLE, True),
        (lying(offset=77), INCOMPLETE, WHOLE, "", False),
        (CUT, MADE, digest_of_pieces([A]), WHOLE, True),
        (lying(topic_id="before"), None, WHOLE, "", False),
    ],
)
def test_what_a_row_was_made_of_and_what_the_range_gives_are_told_apart(
    row: RowFace, log: InLog | None, was: str, made: str, inside: bool
) -> None:
    found = compare("w", log, [row], None, EXTENT)
    assert (found.was, found.made, found.inside) == (was, made, inside)


def test_a_part_that_is_held_was_seen_only_where_its_own_batch_has_read_it() -> None:
    held = replace(HELD, places=(("topic", P0, Offset(5)),))
    for end, seen in ((5, False), (6, True)):
        assert compare("w", replace(MADE, read=(span(0, 2, end),)), [], held, EXTENT).seen is seen
    assert compare("w", None, [], held, EXTENT).seen


def test_of_what_is_neither_in_the_table_nor_held_it_is_said_where_it_lies() -> None:
    assert compare("w", None, [], None, EXTENT).why == "no chunk of it was read"
    assert compare("w", MADE, [], None, EXTENT).why == "partition 0 [4, 6): still to be read"


def test_where_a_log_was_cut_off_is_said_of_the_partition_that_is_named_first() -> None:
    extent = replace(EXTENT, ends={Partition(0): Offset(5), Partition(1): Offset(3)})
    found = compare("w", None, [lying(partition=Partition(1))], None, extent)
    assert found.found is Agreement.NOT_FOUND
    assert found.why == "its row names partition 1 offset 5; the log ends at 3 there"
    both = replace(
        ROW, pieces=tuple(p._replace(partition=Partition(n), offset=Offset(7)) for n, p in enumerate(ROW.pieces))
    )
    assert compare("w", None, [both], None, extent).why == (
        "its row names partition 0 offset 7, partition 1 offset 7; the log ends at 5 there"
    )


@pytest.mark.parametrize(("places", "more"), [(8, ""), (9, " and 1 more"), (30, " and 22 more")])
def test_of_many_places_eight_are_named_and_the_others_counted(places: int, more: str) -> None:
    left = NotThere(skipped=tuple(span(n, 0, 1) for n in range(places)))
    named = ", ".join(f"partition {n} [0, 1)" for n in range(8))
    assert compare("w", None, [], None, EXTENT, left).why == f"an operator skipped {named}{more} by name"


def test_the_ranges_of_what_was_held_from_are_those_that_were_read() -> None:
    assert compare("w", None, [], None, EXTENT, NotThere(not_read=HERE)).why == (
        "no batch that the history knows has read partition 0 [4, 6), and published or held all of what it read"
    )
