"""What a batch of a backfill says of waveforms across its cuts: by columns the same as of each chunk as an object."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.builders.chunks import NOON, make_chunk
from tests.builders.plans import make_plan
from tests.builders.records import metadata
from wavestitch.contracts.assembly import ChunkFacts, assemble
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import Plan, Scope
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.seams import Part, Parts, across_cuts, parts_of
from wavestitch.contracts.start_times import start_time_ns

MS = 1_000_000
SCOPE = Scope(NOON * MS, (NOON + 5) * MS)
Sent = tuple[str, int, int, int | None, bool]


@st.composite
def sent(draw: st.DrawFn) -> list[ChunkFacts]:
    """Chunks of a few waveforms in any order: repeats, others' start times, counts that contradict or are not said."""
    ids, seqs, starts = st.sampled_from("abcd"), st.integers(0, 3), st.sampled_from([0, 4, 5])
    counts = st.sampled_from([None, 2, 3, 3])
    one = st.tuples(ids, seqs, starts, counts, st.booleans())
    found: list[Sent] = draw(st.lists(one, max_size=14))
    chunks = [
        make_chunk(i, seq, count=count, meta=metadata(NOON + start), at=(0, offset))
        for offset, (i, seq, start, count, _) in enumerate(found)
    ]
    spoiled = [one[-1] for one in found]
    return [c._replace(reason="corrupt") if bad else c for c, bad in zip(chunks, spoiled, strict=True)]


def a_backfill() -> Plan:
    return replace(make_plan(), scope=SCOPE)


@given(sent())
def test_by_columns_the_same_waveforms_are_open_as_by_objects(chunks: list[ChunkFacts]) -> None:
    plan = a_backfill()
    specified = {
        i
        for i, made in assemble(chunks, plan.stream.limits).items()
        if made.reason is Reason.OPEN and SCOPE.owns(start_time_ns(made.pieces[0]))
    }
    found = parts_of(plan, ChunkTable.of(chunks))
    assert {part.waveform_id for part in found.parts} == specified
    for part in found.parts:
        mine = {c.offset for c in chunks if c.waveform_id == part.waveform_id and c.reason is None}
        assert {o for r in part.places for o in range(r.start, r.end)} == mine


def part(waveform_id: str, count: int | None, *seqs: tuple[int, int], at: int) -> Part:
    return Part(waveform_id, count, seqs, (OffsetRange(0, at, at + 1),))


def test_what_several_batches_have_together_is_read_together_and_what_is_missing_is_named() -> None:
    alone = part("alone", 2, (0, 1), at=7)
    first = Parts("p1", (part("whole", 3, (0, 2), at=5), part("lacks", 4, (0, 1), at=6), alone))
    second = Parts("p2", (part("whole", None, (2, 3), at=90), part("lacks", 4, (2, 4), at=91)))
    assert across_cuts([first, second]) == (
        {"whole": (OffsetRange(0, 5, 6), OffsetRange(0, 90, 91))},
        ["alone", "lacks"],
    )


def test_a_waveform_that_nobody_counts_is_not_whole_however_many_pieces_there_are() -> None:
    both = [Parts(f"p{n}", (part("w", None, (n, n + 1), at=n),)) for n in range(2)]
    assert across_cuts(both) == ({}, ["w"])
