"""What does not balance does not publish: each way in which fates can fail to be those of what was read and held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.builders.chunks import make_chunk, make_held
from tests.builders.heads import make_head
from tests.builders.plans import make_plan
from tests.builders.streams import make_stream
from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.decided import Decision, Fates
from wavestitch.contracts.decision import Evidence, Stitched, check_balance, decide
from wavestitch.contracts.errors import Unbalanced
from wavestitch.contracts.fates import ChunkFate
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.pending_decision import PendingDecision
from wavestitch.contracts.plain_waveforms import find_plain, no_plain
from wavestitch.contracts.reasons import Reason

STREAM = make_stream()
PLAN = make_plan(stream=STREAM)
READ = [make_chunk("a", 0, at=(0, 1)), make_chunk("b", 1, at=(0, 2))]
WHOLE = [make_chunk("whole", 0, at=(0, 3), count=1)]
HELD = make_held(make_chunk("other", 0, at=(0, 0)), Reason.OPEN)
HEAD = make_head(held=HeldMark(1, 1, 0, "", {"open": 1}))


def evidence(chunks: list[ChunkFacts]) -> Evidence:
    stitched = {c.waveform_id or "": Stitched(None, "") for c in chunks}
    return Evidence(chunks=chunks, stitched=stitched, seen_ms={})


def decided(chunks: list[ChunkFacts]) -> Decision:
    return decide(PLAN, evidence(chunks), head=HEAD, held=[], published={})


def with_others(decision: Decision, others: list[ChunkFate]) -> Decision:
    return replace(decision, fates=Fates(decision.fates.plain, others))


def test_what_was_decided_balances() -> None:
    decision = decided(READ)
    assert len(decision.fates.others) == len(READ)
    check_balance(PLAN, READ, decision)


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda fates: fates[:1],
        lambda fates: [*fates, fates[0]],
        lambda fates: [fates[0], fates[0]],
        lambda fates: [fates[0], fates[1]._replace(chunk=make_chunk("b", 1, at=(0, 77)))],
        lambda fates: [fates[0], fates[1]._replace(chunk=fates[1].chunk._replace(carried=True))],
        lambda fates: [*fates, *[fates[0]._replace(chunk=HELD.chunk._replace(carried=True))] * 2],
    ],
    ids=["one missing", "one twice", "one for another", "one of nothing that was read", "one as held", "held twice"],
)
def test_fates_that_are_not_those_of_what_was_read_end_the_batch(
    spoilt: Callable[[list[ChunkFate]], list[ChunkFate]],
) -> None:
    decision = decided(READ)
    with pytest.raises(Unbalanced, match="does not balance: 2 chunks read"):
        check_balance(PLAN, READ, with_others(decision, spoilt(list(decision.fates.others))))


def test_a_row_of_the_index_that_is_nowhere_or_twice_among_the_plain_ends_the_batch() -> None:
    decision = decided([*READ, *WHOLE])
    assert len(decision.fates.plain.rows) == 1
    check_balance(PLAN, READ, decision)
    plain = decision.fates.plain
    for spoilt in (no_plain(plain.table), replace(plain, rows=np.repeat(plain.rows, 2))):
        with pytest.raises(Unbalanced, match="3 chunks read"):
            check_balance(PLAN, READ, replace(decision, fates=Fates(spoilt, decision.fates.others)))


def test_held_chunks_that_were_taken_up_and_have_no_fate_end_the_batch_and_those_that_were_not_and_have_one() -> None:
    said = evidence(READ)
    table = ChunkTable.of(said.chunks)
    for read, taken in (([], {HELD.key}), ([HELD.chunk._replace(carried=True)], set())):
        pending = PendingDecision(PLAN, said, HEAD, [HELD], find_plain(PLAN, said, table, held=[HELD], published={}))
        for c in read:
            pending.set_aside(c, Reason.OPEN, "it waits")
        with pytest.raises(Unbalanced, match="1 held chunks have no fate, or have one though they were not"):
            pending.closed(taken, sealed=False)
