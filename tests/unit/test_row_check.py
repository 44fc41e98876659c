"""The check before the commit: rows are made of the very chunks that the decision publishes, and of no others."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from tests.unit.test_decide_examples import held, made
from wavestitch.contracts.decided import Decision, Fates
from wavestitch.contracts.errors import Terminal, Unbalanced
from wavestitch.contracts.fates import ChunkFate
from wavestitch.contracts.reasons import Fate, Reason
from wavestitch.contracts.row_check import StagedRow, StagedRows
from wavestitch.contracts.row_check import check_rows as check_columns

NEWEST = made(["a/0@1"]).head.sequence - 1
"""The head that all decisions of these tests stand on."""


TOPIC = "topic-2"


@pytest.fixture
def decision() -> Decision:
    """Of a one chunk is held and two are read, one of them again; b is read whole."""
    return made(["a/1@5", "a/0@6", "b/1@7", "b/0@8"], [held("a/0@2", Reason.OPEN)])


def rows(decision: Decision) -> list[StagedRow]:
    found: dict[str, list[tuple[str, int, int, int, bytes]]] = {}
    for f in sorted(decision.fates, key=lambda f: f.chunk.seq or 0):
        if f.fate is Fate.PUBLISHED:
            c = f.chunk
            found.setdefault(c.waveform_id or "", []).append(
                (c.topic_id or TOPIC, c.partition, c.offset, c.length, c.piece)
            )
    return [StagedRow(i, pieces) for i, pieces in sorted(found.items())]


def check_rows(decision: Decision, rows: Iterable[StagedRow]) -> None:
    """In one file, and in a file each."""
    listed = list(rows)
    try:
        check_columns(decision, [StagedRows.of(listed)], topic_id=TOPIC, planned_on=NEWEST)
    finally:
        said = sys.exception()
        with nullcontext() if said is None else pytest.raises(Unbalanced, match=re.escape(str(said))):
            check_columns(decision, [StagedRows.of([row]) for row in listed], topic_id=TOPIC, planned_on=NEWEST)


def test_rows_of_the_very_chunks_pass_in_any_order_of_rows(decision: Decision) -> None:
    assert decision.publish == ("a", "b")
    assert decision.fates.plain.ids.to_pylist() == ["b"], "both ways are in these tests"
    check_rows(decision, rows(decision))
    check_rows(decision, reversed(rows(decision)))


def test_a_row_of_another_copy_of_the_same_bytes_is_found_out(decision: Decision) -> None:
    a, b = rows(decision)
    first = (*a.pieces[0][:2], 6, *a.pieces[0][3:])
    with pytest.raises(Unbalanced, match=r"'a' was not stitched of .* partition 0 offset 2, partition 0 offset 6"):
        check_rows(decision, [a._replace(pieces=[first, a.pieces[1]]), b])


def test_a_row_that_names_another_topic_than_a_chunk_lay_in_is_found_out(decision: Decision) -> None:
    a, b = rows(decision)
    for row in (a, b):
        wrong = row._replace(pieces=[("another", *piece[1:]) for piece in row.pieces])
        with pytest.raises(Unbalanced, match=f"'{row.waveform_id}' was not stitched of .* partition 0 offset"):
            check_rows(decision, [wrong if one is row else one for one in (a, b)])


def test_a_row_with_a_chunk_less_or_in_another_order_is_found_out(decision: Decision) -> None:
    a, b = rows(decision)
    with pytest.raises(Unbalanced, match="1 in the row, 2 decided"):
        check_rows(decision, [a._replace(pieces=a.pieces[:1]), b])
    with pytest.raises(Unbalanced, match="they differ in their order"):
        check_rows(decision, [a._replace(pieces=a.pieces[::-1]), b])


def test_a_row_too_few_or_too_many_is_found_out(decision: Decision) -> None:
    a, b = rows(decision)
    with pytest.raises(Unbalanced, match="of waveform 'b' there are 0 staged rows and 2 chunks"):
        check_rows(decision, [a])
    with pytest.raises(Unbalanced, match="of waveform 'b' there are 2 staged rows"):
        check_rows(decision, [a, b, b])
    with pytest.raises(Unbalanced, match="waveform 'c' was not stitched"):
        check_rows(decision, [a, b, b._replace(waveform_id="c")])


def test_chunks_without_a_row_and_a_row_without_chunks_are_found_out(decision: Decision) -> None:
    a, b = rows(decision)
    more, fates = made(["c/0@9"]).fates[0].chunk, decision.fates
    with pytest.raises(Unbalanced, match="of waveform 'c' there are 0 staged rows and 1 chunks"):
        check_rows(
            replace(decision, fates=Fates(fates.plain, [*fates.others, ChunkFate(more, Fate.PUBLISHED)])), [a, b]
        )
    with pytest.raises(Unbalanced, match="of waveform 'c' there are 1 staged rows and 0 chunks"):
        check_rows(decision, [a, b, StagedRow("c", [])])


def test_where_others_have_committed_since_it_was_planned_no_audit_is_wrong(decision: Decision) -> None:
    """What a backfill has stitched of one copy is held in another one by now: it is planned again."""
    a, b = rows(decision)
    other = [StagedRows.of([a._replace(pieces=[(*a.pieces[0][:2], 6, *a.pieces[0][3:]), a.pieces[1]]), b])]
    with pytest.raises(Terminal, match=r"was not stitched of .* Carry the plan through again") as said:
        check_columns(decision, other, topic_id=TOPIC, planned_on=NEWEST - 1)
    assert type(said.value) is Terminal
    assert said.value.facts == {"plan_id": decision.plan_id}


def test_rows_are_in_order_of_sequence_wherever_their_chunks_lay() -> None:
    decision = made(["a/0@6"], [held("a/1@2", Reason.OPEN)])
    (a,) = rows(decision)
    assert [offset for _, _, offset, *_ in a.pieces] == [6, 2]
    check_rows(decision, [a])
    with pytest.raises(Unbalanced, match="they differ in their order"):
        check_rows(decision, [a._replace(pieces=sorted(a.pieces))])


def test_of_plain_rows_the_one_that_is_wrong_is_named_and_of_several_the_first() -> None:
    decision = made(["b/0@5", "b/1@6", "c/0@7", "c/1@8"])
    b, c = rows(decision)
    assert len(decision.fates.plain) == 2
    bad_b, bad_c = (
        # Of the digest of its first chunk one bit is another.
        r._replace(pieces=[(*r.pieces[0][:4], bytes([r.pieces[0][4][0] ^ 1]) + r.pieces[0][4][1:]), r.pieces[1]])
        for r in (b, c)
    )
    whole = partial(check_columns, decision, topic_id=TOPIC, planned_on=NEWEST)
    with pytest.raises(Unbalanced, match="'c' was not stitched of"):
        whole([StagedRows.of([b, bad_c])])
    with pytest.raises(Unbalanced, match="'b' was not stitched of"):
        whole([StagedRows.of([bad_b, bad_c])])
    with pytest.raises(Unbalanced, match="1 in the row, 2 decided"):
        check_rows(decision, [b, c._replace(pieces=c.pieces[:1])])


def test_what_is_to_be_published_and_what_has_fates_are_the_same_waveforms(decision: Decision) -> None:
    both = rows(decision)
    with pytest.raises(Unbalanced, match="of waveform 'd' there are 0 staged rows and 0 chunks"):
        check_rows(replace(decision, publish=("a", "b", "d")), both)
    with pytest.raises(Unbalanced, match=r"of waveform 'b' there are [01] staged rows and 2 chunks"):
        check_rows(replace(decision, publish=("a",)), both)


@pytest.mark.parametrize("part", range(5), ids=["topic", "partition", "offset", "length", "piece"])
def test_a_plain_row_that_differs_in_one_thing_alone_is_found_out(decision: Decision, part: int) -> None:
    a, b = rows(decision)
    others: tuple[Any, ...] = ("another", 7, 99, 1, b"\1" * 32)
    piece: Any = (*b.pieces[1][:part], others[part], *b.pieces[1][part + 1 :])
    with pytest.raises(Unbalanced, match="'b' was not stitched of"):
        check_rows(decision, [a, b._replace(pieces=[b.pieces[0], piece])])


def test_of_several_rows_that_are_lacking_the_first_is_named(decision: Decision) -> None:
    with pytest.raises(Unbalanced, match="of waveform 'a' there are 0 staged rows"):
        check_rows(decision, [])
