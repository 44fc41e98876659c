"""The same chunks end the same, as the oracle says: in any order, repeated, over any partitions, slices and batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from tests.builders.records import Letter, Lie, cut, letter, lied, metadata
from tests.builders.streams import make_stream
from tests.domain.effort import effort
from tests.domain.oracle import must_be_published, piece_of, truths
from tests.fakes.batch import Bench, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.sight import look_around
from tests.guarantees import Balanced, NoDuplicates, NoInvention, NoLoss, effective
from wavestitch.batch.plan import PlanRequest
from wavestitch.contracts.assembly import no_chunk
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Limits, Reading

CLOCK_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Sending:
    """A letter, the partition it goes to, and whether a batch is run after it."""

    what: Letter
    to: int
    batch_after: bool


def values(number: int, chunks: int) -> list[bytes]:
    return [bytes([number, seq]) * (seq + 1) for seq in range(chunks)]


@st.composite
def waveforms(draw: st.DrawFn) -> list[Letter]:
    """The chunks of a few waveforms that agree with themselves: whole, incomplete, or not what their own words say."""
    letters: list[Letter] = []
    for number in range(draw(st.integers(1, 4))):
        lies = draw(st.sampled_from([{}, {}, {}, {"sample_count": 1000}]))
        keyed, live = draw(st.booleans()), draw(st.booleans())
        meta, digest = metadata(CLOCK_MS, **lies), draw(st.sampled_from([None, None, None, "0" * 32]))
        mine = cut(
            f"w{number}", values(number, draw(st.integers(1, 4))), meta=meta, live=live, digest=digest, keyed=keyed
        )
        again = draw(st.sampled_from([None, None, *range(len(mine))]))
        # Not of a chunk whose digest is false: with the bare copy alone the waveform is whole, and one batch would
        # publish what another one, which reads both, may not. Across batches the first wins; here all orders agree.
        if again is not None and (digest is None or again < len(mine) - 1):
            # Without its count and digest: whichever copy comes first, what one says of the whole is not forgotten.
            letters.append(letter(f"w{number}", again, mine[again].value or b"", meta=meta, count=None, keyed=keyed))
        missing = draw(st.sampled_from([None, None, *range(len(mine))]))
        letters += [one for seq, one in enumerate(mine) if seq != missing]
    return letters


@st.composite
def sendings(draw: st.DrawFn, letters: list[Letter], batches: bool = True) -> list[Sending]:
    """Each letter at least once, some again, some broken on the way, in any order."""
    again = draw(st.lists(st.sampled_from(letters), max_size=4)) if letters else []
    broken = (
        [lied(one, draw(st.sampled_from(Lie))) for one in draw(st.lists(st.sampled_from(letters), max_size=2))]
        if letters
        else []
    )
    order = draw(st.permutations([*letters, *again, *broken]))
    return [Sending(one, draw(st.integers(0, 2)), batches and draw(st.booleans())) for one in order]


def carry(sent: list[Sending], *, partitions: int, workers: int, most: int = 1000) -> Bench:
    """Send, with an ingest wherever one is asked for, and one at the end."""
    bench = Bench(FakeLog(partitions=partitions))
    stream = make_stream(
        "waves",
        group="waves-batches",
        reading=Reading(workers=workers, min_slice=1),
        limits=Limits(max_batch_records=most),
    )
    for one in [*sent, None]:
        if one is not None:
            bench.log.append(Partition(one.to % partitions), CLOCK_MS, *one.what)
        while one is None or one.batch_after:
            run_batch(bench, stream, PlanRequest(), clock_ms=CLOCK_MS)
            head, ends = bench.tables.snapshots[-1], {p: at.end for p, at in bench.log.partitions.items()}
            if {p: at.next_offset for p, at in head.positions.items()} == ends:
                break
    return bench


def outcome(bench: Bench) -> tuple[dict[str, bytes], set[object], Counter[bytes | None]]:
    """What was published; which chunks are held, and why; the bytes of what is held and is no chunk."""
    sight = look_around(bench, allowed_lateness_ms=3_600_000)
    for guarantee in (NoLoss(), NoDuplicates(), NoInvention(), Balanced()):
        guarantee.check(sight)
    counted = effective(sight.held, frozenset(h.decision for h in sight.heads), sight.published)
    places = [(*r.coordinate, r.piece[2]) for r in counted if not r.valid]
    strange = [((t, Partition(p), Offset(o)), no_chunk(piece)) for t, p, o, piece in places]
    kept = bench.tables.bytes_of_held(bench.tables.snapshots[-1].held)
    return (
        {row.id: row.samples for row in sight.published},
        {(row.id, *row.piece, row.reason) for row in counted if row.valid},
        Counter(kept.get(key) for key in strange),
    )


@given(st.data())
@effort(150)
def test_any_order_slicing_and_batching_ends_in_the_same_published_and_held(data: st.DataObject) -> None:
    letters = data.draw(waveforms())
    sent = data.draw(sendings(letters))
    partitions, workers = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    bench = carry(sent, partitions=partitions, workers=workers, most=data.draw(st.sampled_from([1000, 3])))
    published, held, no_chunks = outcome(bench)

    records = bench.log.committed()
    assert published == must_be_published(records)
    rest = {p.same for truth in truths(records).values() if not truth.publishable for p in truth.pieces}
    assert {row[:-1] for row in held} == rest  # type: ignore[index]
    assert no_chunks == Counter(r.value for r in records if piece_of(r) is None)

    at_once = carry([Sending(one.what, 0, False) for one in sorted(sent, key=str)], partitions=1, workers=1)
    assert outcome(at_once) == (published, held, no_chunks)


@given(st.data())
@effort(60)
def test_inside_one_batch_no_order_lets_a_contradiction_through(data: st.DataObject) -> None:
    letters = data.draw(waveforms())
    meta = metadata(CLOCK_MS)
    against = [
        letter("w0", 0, b"\xff\xff", meta=meta, count=None),
        letter("w0", 0, values(0, 1)[0], meta=metadata(CLOCK_MS, note="another"), count=None),
        letter("w0", 1, values(0, 2)[1], meta=meta, count=9),
    ]
    sent = data.draw(
        sendings([*letters, *data.draw(st.lists(st.sampled_from(against), min_size=1, max_size=3))], False)
    )
    bench = carry(sent, partitions=data.draw(st.integers(1, 3)), workers=data.draw(st.integers(1, 3)))
    published, held, _ = outcome(bench)
    records = bench.log.committed()
    assert published == must_be_published(records)
    clash = {i: t for i, t in truths(records).items() if t.contradicts_itself}
    for waveform_id, truth in clash.items():
        mine = {row[:-1] for row in held if row[0] == waveform_id}  # type: ignore[index]
        assert mine == {p.same for p in truth.pieces}, "all copies are held"
        assert {row[-1] for row in held if row[0] == waveform_id} == {"conflict"}  # type: ignore[index]
