"""What a batch of a backfill says of the waveforms that it leaves, and what is made of it across the cuts."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.builders.chunks import NOON, make_chunk, make_held
from tests.builders.plans import make_plan
from tests.builders.ranges import span
from tests.builders.records import metadata
from tests.builders.table_rows import first_head
from tests.domain.effort import effort
from wavestitch.contracts.assembly import ChunkFacts, assemble
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.copies import Copy, contradict, say_no_more
from wavestitch.contracts.decision import Evidence, decide
from wavestitch.contracts.fates import AllStitched, Stitched
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.plan import Plan, PlanKind, Scope
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.seams import PARTS, AcrossCuts, Part, Parts, across_cuts, copies_elsewhere, parts_of
from wavestitch.contracts.start_times import start_time_ns

MS = 1_000_000
SCOPE = Scope(NOON * MS, (NOON + 5) * MS)
Sent = tuple[str, int, int, int | None, bool, bytes, str | None]


@st.composite
def sent(draw: st.DrawFn, ids: str = "abcd") -> list[ChunkFacts]:
    """Chunks of a few waveforms in any order: repeats, others' start times, and what contradicts or is not said."""
    counts, digests = st.sampled_from([None, 2, 3, 3]), st.sampled_from([None, None, None, "0" * 32, "1" * 32])
    values, starts = st.sampled_from([b"\1\0", b"\1\0", b"\1\0", b"\7\0"]), st.sampled_from([0, 0, 0, 4, 5])
    one = st.tuples(st.sampled_from(ids), st.integers(0, 2), starts, counts, st.booleans(), values, digests)
    found: list[Sent] = draw(st.lists(one, max_size=14))
    chunks = [
        make_chunk(i, seq, value, count=count, meta=metadata(NOON + start), at=(0, offset), digest=digest)
        for offset, (i, seq, start, count, _, value, digest) in enumerate(found)
        if count is None or seq < count
    ]
    spoiled = [one[4] for one in found if one[3] is None or one[1] < one[3]]
    return [c._replace(reason="corrupt") if bad else c for c, bad in zip(chunks, spoiled, strict=True)]


def a_backfill() -> Plan:
    return replace(make_plan(), kind=PlanKind.BACKFILL, scope=SCOPE, clock_ms=EpochMs(NOON))


@effort(100)
@given(sent())
def test_a_batch_says_all_that_it_has_read_of_the_waveforms_that_it_owns_and_leaves(chunks: list[ChunkFacts]) -> None:
    plan = a_backfill()
    evidence = Evidence(ChunkTable.of(chunks), {}, AllStitched())
    decision = decide(plan, evidence, head=first_head(), held=[], published={})
    left = {
        i: made.reason
        for i, made in assemble(chunks, plan.stream.limits).items()
        if made.reason is not None and any(SCOPE.owns(start_time_ns(c)) for c in (*made.pieces, *made.repeats))
    }
    found = parts_of(plan, decision)
    assert {part.waveform_id: part.reasons for part in found.parts} == {i: (why,) for i, why in left.items()}
    for part in found.parts:
        mine = [Copy.made(c) for c in chunks if c.waveform_id == part.waveform_id and c.reason is None]
        assert sorted(part.copies) == sorted(mine)


@effort(100)
@given(sent(ids="a"))
def test_copies_contradict_each_other_exactly_where_a_waveform_made_of_them_is_a_conflict(
    chunks: list[ChunkFacts],
) -> None:
    valid = [c for c in chunks if c.reason is None]
    made = assemble(valid, a_backfill().stream.limits).get("a")
    assert contradict([Copy.made(c) for c in valid]) == (made is not None and made.reason is Reason.CONFLICT)


@effort(100)
@given(sent(ids="a"), st.integers(0, 14))
def test_what_is_whole_stays_so_with_copies_that_say_no_more(chunks: list[ChunkFacts], cut: int) -> None:
    valid, limits = [c for c in chunks if c.reason is None], a_backfill().stream.limits
    others, mine = valid[:cut], valid[cut:]
    alone = assemble(mine, limits).get("a")
    if alone is not None and alone.reason is None and say_no_more([Copy.made(c) for c in others], mine):
        together = assemble(valid, limits)["a"]
        assert together.reason is None
        assert [c.identity for c in together.pieces] == [c.identity for c in alone.pieces]


def copy(seq: int, *, of: int | None, at: int, piece: str = "aa") -> Copy:
    return Copy(Partition(0), Offset(at), seq, piece, of, None, "m")


def part(waveform_id: str, *copies: Copy, why: Reason = Reason.OPEN) -> Part:
    return Part(waveform_id, (why,), copies)


def test_what_several_batches_have_together_is_read_together_and_what_is_missing_is_named() -> None:
    alone = part("alone", copy(0, of=2, at=7))
    refused = part("refused", copy(0, of=1, at=8), why=Reason.TOO_LARGE)
    lacks, more = part("lacks", copy(0, of=3, at=6)), part("lacks", copy(2, of=3, at=91))
    whole = part("whole", copy(0, of=3, at=5), copy(1, of=3, at=6)), part("whole", copy(2, of=None, at=90))
    found = across_cuts([Parts("p1", (whole[0], lacks, alone, refused)), Parts("p2", (whole[1], more))])
    assert found.together == {"whole": (span(0, 5, 7), span(0, 90, 91))}
    assert (found.lacking, found.contradicted) == (("alone", "lacks"), ())


def test_what_is_held_of_a_waveform_counts_beside_what_batches_have_of_it() -> None:
    found = across_cuts(
        [Parts("p1", (part("w", copy(1, of=3, at=5)),)), Parts("p2", (part("w", copy(2, of=3, at=9)),))]
    )
    assert (found.together, found.lacking) == ({}, ("w",))
    beside = found.beside([make_chunk("w", 0, count=3)])
    assert (beside.together, beside.lacking) == ({"w": (span(0, 5, 6), span(0, 9, 10))}, ())


def test_a_waveform_that_nobody_counts_is_not_whole_however_many_pieces_there_are() -> None:
    both = [Parts(f"p{n}", (part("w", copy(n, of=None, at=n)),)) for n in range(2)]
    assert (across_cuts(both).together, across_cuts(both).lacking) == ({}, ("w",))


def test_what_contradicts_is_read_by_nobody_again_and_named() -> None:
    other = [Parts(f"p{n}", (part("w", copy(0, of=2, at=n, piece=f"{n}")),)) for n in range(2)]
    blocked = [Parts("p", (part("w", copy(0, of=1, at=0), why=Reason.CONFLICT),))]
    for parts in (other, blocked):
        assert (across_cuts(parts).together, across_cuts(parts).contradicted) == ({}, ("w",))


def test_a_batch_is_told_of_its_own_waveforms_alone() -> None:
    earlier = [Parts("p1", (part("mine", copy(0, of=2, at=1)), part("other", copy(0, of=2, at=2))))]
    assert copies_elsewhere(earlier, {"mine"}) == {"mine": (copy(0, of=2, at=1),)}


def test_what_a_batch_kept_is_read_as_it_was_written() -> None:
    parts = Parts("p", (part("w", copy(0, of=None, at=1), copy(1, of=2, at=3), why=Reason.CONFLICT),))
    assert PARTS.read(PARTS.text(parts)) == parts


def test_copies_and_waveforms_stand_in_the_order_of_their_places_and_ids() -> None:
    lying = [copy(n, of=30, at=7 * n % 29) for n in range(20)]
    found = across_cuts([Parts("p1", (part("v", lying[0]), part("b", lying[0]))), Parts("p2", (part("v", *lying),))])
    assert [c.offset for c in found.copies["v"]] == sorted(c.offset for c in lying)
    assert found.lacking == ("b", "v")


def test_beside_what_is_held_only_what_is_whole_then_is_read_together() -> None:
    found = across_cuts([Parts("p1", (part("v", copy(1, of=3, at=4)), part("w", copy(1, of=2, at=5))))])
    beside = found.beside([make_chunk(i, 0, count=None) for i in "vw"])
    assert (beside.together, beside.lacking) == ({"w": (span(0, 5, 6),)}, ("v",))
    assert AcrossCuts().beside([make_chunk("w")]) == AcrossCuts()


def test_what_came_of_a_discarded_waveform_is_no_part_of_anything() -> None:
    def parts(*held: HeldChunk) -> list[str]:
        read = [make_chunk(i, 0, at=(0, offset)) for offset, i in enumerate("zda")]
        evidence = Evidence(ChunkTable.of(read), {}, AllStitched())
        decision = decide(a_backfill(), evidence, head=first_head(), held=held, published={})
        return [part.waveform_id for part in parts_of(a_backfill(), decision).parts]

    assert parts() == ["a", "d", "z"]
    assert parts(make_held(make_chunk("d", 1, at=(0, 77)), Reason.DISCARDED, before=Reason.OPEN)) == ["a", "z"]


def test_two_copies_at_one_place_of_which_one_says_no_count_are_put_in_order() -> None:
    """As after an election that cut the log off between two batches."""
    copies = tuple(Copy(Partition(0), Offset(5), 0, "0a", of, None, "m") for of in (None, 2))
    parts = [Parts("p", (Part("w", (Reason.OPEN,), (c,)),)) for c in copies]
    found = across_cuts(parts)
    assert set(found.copies["w"]) == set(copies)
    assert found.lacking == ("w",)


def test_whatever_is_asked_of_before_stitching_is_supposed_to_be_whole_and_nothing_is_listed() -> None:
    assert AllStitched()["any"] == Stitched(None, "")
    assert len(AllStitched()) == len(list(AllStitched())) == 0
