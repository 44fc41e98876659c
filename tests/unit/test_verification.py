"""What a waveform of a verified range is found to be: the table of examples that is its specification."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders.ranges import span
from wavestitch.batch.verify_request import VerifyRequest, verify_request
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.record_accounts import RecordIs
from wavestitch.contracts.row_face import COMPARED, RowFace, RowPiece
from wavestitch.contracts.verification import (
    Agreement,
    HeldNow,
    InLog,
    LogChunk,
    LogExtent,
    NotThere,
    accepted,
    compare,
    exit_code,
)

P0 = Partition(0)
A, B, OTHER = b"a" * 32, b"b" * 32, b"c" * 32
HERE = (span(0, 4, 6),)
ROW = RowFace(
    "w",
    "batch",
    tuple(b"" for _ in COMPARED),
    (RowPiece("topic", Partition(0), Offset(4), 8, A), RowPiece("topic", Partition(0), Offset(5), 8, B)),
)
MADE = InLog("w", replace(ROW, plan_id="now"), None, "", HERE)
INCOMPLETE = InLog("w", None, Reason.OPEN, "1 of 2 chunks here; missing: 1", (span(0, 4, 5),))
FAILING = replace(MADE, reason=Reason.FAILED_EXPECTATION, evidence="too long")
REFUSED = InLog("w", None, Reason.TOO_LARGE, "2 chunks; allowed are 1", HERE)
CONFLICT = InLog("w", None, Reason.CONFLICT, "chunk 1 has different bytes", HERE)
CHUNKS = {(0, 4): LogChunk("w", 0, A, 1), (0, 5): LogChunk("w", 1, B, 2)}
AT_THE_END = {Partition(0): Offset(9)}
EXTENT = LogExtent("topic", (span(0, 2, 9),), {Partition(0): Offset(0)}, AT_THE_END, CHUNKS)
ELSEWHERE = tuple(p._replace(offset=Offset(p.offset + 2), piece=OTHER) for p in ROW.pieces)
ANOTHER = replace(MADE, made=replace(ROW, pieces=ELSEWHERE))
HELD = HeldNow((Reason.PARKED,), "the gate closed")
NOWHERE = NotThere(nowhere=HERE)
DISCARDED = HeldNow((Reason.DISCARDED,), "discard by ops: broken")
PICKED = HeldNow((Reason.DISCARDED, Reason.OPEN), "pick first by ops: looked at it")
CUT = replace(ROW, pieces=ROW.pieces[:1])
TORN = replace(CUT, agrees=False)


def saying(column: str) -> RowFace:
    at = COMPARED.index(column)
    return replace(ROW, columns=(*ROW.columns[:at], b"else", *ROW.columns[at + 1 :]))


def lying(**changes: Any) -> RowFace:
    return replace(ROW, pieces=(ROW.pieces[0], ROW.pieces[1]._replace(**changes)))


EXAMPLES: dict[str, tuple[Any, ...]] = {
    "the same row": (MADE, [ROW], None, EXTENT, Agreement.SAME),
    "another sample": (MADE, [saying("samples")], None, EXTENT, Agreement.DIFFERS),
    "other metadata": (MADE, [saying("units")], None, EXTENT, Agreement.DIFFERS),
    "another seam": (MADE, [lying(piece=OTHER)], None, EXTENT, Agreement.DIFFERS),
    "fewer chunks than the log gives": (MADE, [CUT], None, EXTENT, Agreement.DIFFERS),
    "fewer chunks than the log gives, which fails": (FAILING, [CUT], None, EXTENT, Agreement.DIFFERS),
    "others of it in the log, and nowhere else": (INCOMPLETE, [ROW], None, EXTENT, Agreement.DIFFERS, NOWHERE),
    "a chunk twice": (MADE, [replace(ROW, pieces=ROW.pieces[:1] * 2)], None, EXTENT, Agreement.DIFFERS),
    "a place where something else lies": (MADE, [lying(offset=4)], None, EXTENT, Agreement.DIFFERS),
    "a place that was not read": (MADE, [lying(offset=77)], None, EXTENT, Agreement.SAME),
    "another copy, of a row whose places are there": (ANOTHER, [lying(piece=OTHER)], None, EXTENT, Agreement.NOT_FOUND),
    "another copy, of a row whose places are gone": (
        ANOTHER,
        [ROW],
        None,
        replace(EXTENT, log_start={Partition(0): Offset(5)}),
        Agreement.MISSING_IN_KAFKA,
    ),
    "a row whose places were cut off": (
        None,
        [ROW],
        None,
        replace(EXTENT, ends={Partition(0): Offset(5)}),
        Agreement.NOT_FOUND,
    ),
    "twice in the table": (MADE, [ROW, ROW], None, EXTENT, Agreement.DIFFERS),
    "whole, and not in the table": (MADE, [], None, EXTENT, Agreement.MISSING_IN_TABLE, NOWHERE),
    "refused today, and neither published nor held": (REFUSED, [], None, EXTENT, Agreement.MISSING_IN_TABLE, NOWHERE),
    "not all of it, nor in the table": (INCOMPLETE, [], None, EXTENT, Agreement.MISSING_IN_TABLE, NOWHERE),
    "a part of it held, another nowhere": (MADE, [], HELD, EXTENT, Agreement.MISSING_IN_TABLE, NOWHERE),
    "held": (MADE, [], HELD, EXTENT, Agreement.HELD),
    "held, and not read": (None, [], HELD, EXTENT, Agreement.HELD),
    "discarded": (MADE, [], DISCARDED, EXTENT, Agreement.DISCARDED),
    "a copy discarded, and the rest held": (MADE, [], PICKED, EXTENT, Agreement.HELD),
    "a copy discarded, and the rest gone from the log": (
        None,
        [],
        replace(PICKED, gone=HERE),
        EXTENT,
        Agreement.HELD_ALONE,
    ),
    "a copy discarded, and the rest without bytes": (
        None,
        [],
        replace(PICKED, gone=HERE, without_bytes=HERE),
        EXTENT,
        Agreement.LOST,
    ),
    "a copy discarded, and the rest not where it is held from": (
        MADE,
        [],
        replace(PICKED, wrong=("there",)),
        EXTENT,
        Agreement.NOT_FOUND,
    ),
    "held, and gone from the log": (None, [], replace(HELD, gone=HERE), EXTENT, Agreement.HELD_ALONE),
    "held without its bytes, and gone from the log": (
        INCOMPLETE,
        [],
        replace(HELD, gone=HERE, without_bytes=HERE),
        EXTENT,
        Agreement.LOST,
    ),
    "held from where something else lies": (MADE, [], replace(HELD, wrong=("there",)), EXTENT, Agreement.NOT_FOUND),
    "published, and beside it held from where something else lies": (
        MADE,
        [ROW],
        replace(HELD, wrong=("there",)),
        EXTENT,
        Agreement.NOT_FOUND,
    ),
    "published, and what is held beside it is gone from the log": (
        MADE,
        [ROW],
        replace(HELD, gone=HERE),
        EXTENT,
        Agreement.SAME,
    ),
    "still to be read": (MADE, [], None, EXTENT, Agreement.OUTSIDE),
    "skipped by an operator": (MADE, [], None, EXTENT, Agreement.SKIPPED, NotThere(skipped=HERE)),
    "before the stream began": (MADE, [], None, EXTENT, Agreement.OUTSIDE, NotThere(not_read=HERE)),
    "fails an expectation today": (FAILING, [ROW], None, EXTENT, Agreement.NEWLY_FAILING),
    "fails, and differs": (FAILING, [saying("samples")], None, EXTENT, Agreement.DIFFERS),
    "all its chunks are there, and nothing that was read says so": (INCOMPLETE, [ROW], None, EXTENT, Agreement.OUTSIDE),
    "too large today": (REFUSED, [ROW], None, EXTENT, Agreement.NEWLY_FAILING),
    "a conflict today": (CONFLICT, [ROW], None, EXTENT, Agreement.NEWLY_FAILING),
    "all chunks gone": (
        None,
        [ROW],
        None,
        replace(EXTENT, log_start={Partition(0): Offset(9)}),
        Agreement.MISSING_IN_KAFKA,
    ),
    "one chunk gone": (
        INCOMPLETE,
        [ROW],
        None,
        replace(EXTENT, log_start={Partition(0): Offset(5)}),
        Agreement.MISSING_IN_KAFKA,
    ),
    "gone, and sent again": (MADE, [ROW], None, replace(EXTENT, log_start={Partition(0): Offset(5)}), Agreement.SAME),
    "no record where the row says": (
        INCOMPLETE,
        [ROW],
        None,
        replace(EXTENT, chunks={(0, 4): CHUNKS[0, 4]}),
        Agreement.NOT_FOUND,
    ),
    "another record where the row says": (
        INCOMPLETE,
        [ROW],
        None,
        replace(EXTENT, chunks={**CHUNKS, (0, 5): LogChunk("w", 1, OTHER, 2)}),
        Agreement.NOT_FOUND,
    ),
    "another's chunk of the same bytes where the row says": (
        MADE,
        [ROW],
        None,
        replace(EXTENT, chunks={**CHUNKS, (0, 5): LogChunk("v", 1, B, 2)}),
        Agreement.DIFFERS,
    ),
    "another of its chunks, of the same bytes, where the row says": (
        INCOMPLETE,
        [ROW],
        None,
        replace(EXTENT, chunks={**CHUNKS, (0, 5): LogChunk("w", 0, B, 2)}),
        Agreement.DIFFERS,
    ),
    "another's chunk, which is none today, where the row says": (
        INCOMPLETE,
        [ROW],
        None,
        replace(EXTENT, chunks={**CHUNKS, (0, 5): LogChunk("v", 1, B, 2, "unproven")}),
        Agreement.NOT_FOUND,
    ),
    "no chunk any more by the present definition": (
        INCOMPLETE,
        [ROW],
        None,
        replace(EXTENT, chunks={**CHUNKS, (0, 5): LogChunk("w", 1, OTHER, 2, "unproven")}),
        Agreement.NEWLY_FAILING,
    ),
    "across the range's edge": (
        INCOMPLETE,
        [ROW],
        None,
        replace(EXTENT, read=(span(0, 2, 5),)),
        Agreement.OUTSIDE,
    ),
    "of another topic": (None, [lying(topic_id="before")], None, EXTENT, Agreement.OUTSIDE),
    "a row of fewer chunks than its samples are long": (INCOMPLETE, [TORN], None, EXTENT, Agreement.DIFFERS),
    "so long a row, and its chunks are gone": (
        None,
        [TORN],
        None,
        replace(EXTENT, log_start={Partition(0): Offset(9)}),
        Agreement.DIFFERS,
    ),
    "so long a row, of another topic": (
        None,
        [replace(lying(topic_id="before"), agrees=False)],
        None,
        EXTENT,
        Agreement.DIFFERS,
    ),
    "a row without chunks": (None, [replace(ROW, pieces=())], None, EXTENT, Agreement.NOT_FOUND),
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_waveform_is(example: str) -> None:
    log, rows, held, extent, expected, *left = EXAMPLES[example]
    found = compare("w", log, rows, held, extent, *left)
    assert found.found is expected, found
    assert expected is Agreement.SAME or found.why
    assert found.plan_id == ("batch" if rows else "")


def test_the_columns_that_differ_are_named_and_those_of_the_batch_are_not_compared() -> None:
    assert compare("w", MADE, [saying("units")], None, EXTENT).columns == ("units",)
    assert compare("w", MADE, [lying(piece=OTHER)], None, EXTENT).columns == ("chunks",)
    assert compare("w", MADE, [CUT], None, EXTENT).columns == ("chunks",)
    assert not {"plan_id", "topic_id"} & set(COMPARED)


@pytest.mark.parametrize("column", ["chunk_count", "samples", "sample_format"])
def test_what_was_altered_in_a_row_of_the_log_s_own_chunks_is_named_and_not_these(column: str) -> None:
    """Such a row does not agree with itself; the chunks that it names are those that it was made of."""
    found = compare("w", MADE, [replace(saying(column), agrees=False)], None, EXTENT)
    assert (found.found, found.columns) == (Agreement.DIFFERS, (column,))
    assert found.why == f"{column}: not what the log gives"


def test_record_times_are_compared_where_both_took_the_same_copies() -> None:
    assert compare("w", MADE, [saying("first_record_time")], None, EXTENT).columns == ("first_record_time",)
    elsewhere = replace(lying(offset=3), columns=saying("first_record_time").columns)
    extent = replace(EXTENT, chunks={**CHUNKS, (0, 3): LogChunk("w", 1, B, 7)})
    assert compare("w", MADE, [elsewhere], None, extent).found is Agreement.SAME


def test_what_is_lost_is_named_by_its_offsets() -> None:
    assert compare("w", None, [ROW], None, replace(EXTENT, log_start={Partition(0): Offset(5)})).lost == (
        span(0, 4, 5),
    )


def test_what_an_operator_accepted_keeps_both_words() -> None:
    found = accepted(compare("w", FAILING, [ROW], None, EXTENT), "accept by ops: known")
    assert (found.found, found.why) == (
        Agreement.ACCEPTED,
        "accept by ops: known; today: failed_expectation: too long",
    )


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"same": 3}, 0),
        ({"same": 3, "held": 1, "discarded": 1, "outside": 2}, 0),
        ({"accepted": 1}, 0),
        ({"same": 3, "differs": 1}, 6),
        ({"same": 3, "missing in the table": 1}, 6),
        ({"same": 3, "not found in Kafka": 1}, 6),
        ({"same": 3, "newly failing": 1, "missing in Kafka": 1}, 6),
        ({"same": 3, "missing in Kafka": 1}, 7),
        ({"same": 3, "held, gone from Kafka": 1}, 7),
        ({"same": 3, "lost": 1}, 6),
        ({"same": 3, "skipped": 1}, 0),
        ({"outside": 1}, 7),
        ({}, 7),
    ],
)
def test_the_exit_code_says_whether_all_is_proven(counts: dict[str, int], code: int) -> None:
    assert exit_code(counts) == code


@pytest.mark.parametrize(("records", "code"), [(RecordIs.NOWHERE, 6), (RecordIs.NOT_READ, 7), (RecordIs.SKIPPED, 0)])
def test_a_record_that_is_nowhere_is_a_difference_though_no_waveform_is(records: RecordIs, code: int) -> None:
    assert exit_code({"same": 3}, records={records: 1}) == code
    assert exit_code({"same": 3}, misplaced=["partition 0 offset 1"]) == 6


WHOLE_IN_ONE = replace(MADE, read=(span(0, 2, 9),))


@pytest.mark.parametrize(
    ("held", "seen"),
    [
        (None, True),
        (replace(HELD, places=(("topic", P0, Offset(4)), ("topic", P0, Offset(5)))), True),
        (replace(HELD, places=(("topic", P0, Offset(4)), ("topic", P0, Offset(77)))), False),
        (replace(HELD, places=(("before", P0, Offset(4)),)), False),
        (replace(HELD, wrong=("elsewhere",)), False),
    ],
)
def test_what_is_held_is_seen_only_where_all_of_it_was_looked_at_together(held: HeldNow | None, seen: bool) -> None:
    found = compare("w", WHOLE_IN_ONE, [], held, EXTENT)
    assert (found.passes, found.seen) == (True, seen)


def test_what_refuses_it_today_is_said_beside_what_it_is_held_for() -> None:
    found = compare("w", REFUSED, [], HELD, EXTENT)
    assert (found.why, found.refused) == ("parked: the gate closed", "too_large: 2 chunks; allowed are 1")


def test_a_range_is_named_as_for_a_run() -> None:
    assert verify_request({}) == VerifyRequest()
    assert verify_request({"offsets": "0:1-2,1:3-4"}).ranges == (span(0, 1, 2), span(1, 3, 4))
    assert verify_request({"batch": "beef00", "partitions": "0,2"}) == VerifyRequest(
        batch="beef00", only=frozenset({Partition(0), Partition(2)})
    )
    found = verify_request({"interval": "2026-01-06T00:00:00Z/2026-01-07T00:00:00Z"}).scope
    assert found is not None
    assert found.end_ns - found.start_ns == 86400 * 10**9


@pytest.mark.parametrize(
    "params",
    [{"offsets": "0:1-2", "batch": "beef"}, {"batch": "../x"}, {"batch": "b"}, {"offsets": "0:5-1"}],
    ids=str,
)
def test_what_names_no_range_is_refused(params: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        verify_request(params)
