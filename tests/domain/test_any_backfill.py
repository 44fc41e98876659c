"""Whatever backfills there are, overlapping, repeated, beside ingests and killed anywhere: each waveform once, and the
positions where ingests put them. Wherever a backfill is cut, what is contradicted is taken from nobody but the batch
that had it whole before it was contradicted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.records import metadata
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.domain.effort import effort
from tests.domain.running_machine import LOUD
from tests.fakes.batch import Bench, Carrying, FakeEdges, facts_of, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Steps
from wavestitch.batch import chain, steps
from wavestitch.batch.backfill import Backfilled, run_backfill
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.run import RunOptions, Silent
from wavestitch.batch.stream_state import load_state
from wavestitch.contracts import pending_decision, seams
from wavestitch.contracts.assembly import assemble
from wavestitch.contracts.errors import DataLost
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Stream

NOW_MS = 1_767_614_400_000
DAY = 86_400_000
BEGAN = NOW_MS - 1000 * DAY
DAYS = 6
Run = tuple[str, int, int, int]


@st.composite
def archives(draw: st.DrawFn) -> tuple[FakeLog, set[str]]:
    """Recordings of six days long ago, their chunks scattered over two partitions, and some sent again."""
    log = FakeLog("waves", 2)
    sizes = draw(st.lists(st.tuples(st.integers(0, DAYS - 1), st.integers(1, 4)), min_size=1, max_size=6))
    chunks = [(n, day, count, seq) for n, (day, count) in enumerate(sizes) for seq in range(count)]
    again = draw(st.lists(st.sampled_from(chunks), max_size=3))
    for to, (n, day, count, seq) in enumerate(draw(st.permutations([*chunks, *again]))):
        start_ms = BEGAN + day * DAY
        send_chunk(log, f"w{n}", seq, at_ms=NOW_MS, start_ms=start_ms, count=count, partition=to % 2)
    return log, {f"w{n}" for n in range(len(sizes))}


def limited(most: int) -> Stream:
    limits = {"max_clock_skew": "36500 d", "max_batch_records": most}
    return make_stream(limits=limits, reading={"min_slice": 1})


def carry(bench: Bench, what: str, first: int, span: int, most: int) -> Any:
    if what == "ingest":
        return run_batch(bench, limited(most), PlanRequest(), clock_ms=NOW_MS)
    start = BEGAN + first * DAY
    scope = Scope(start * 1_000_000, (start + span * DAY) * 1_000_000)
    edges = FakeEdges(bench, limited(most), NOW_MS, Carrying())
    return run_backfill(edges, scope, RunOptions(), watcher=Silent())


def published(bench: Bench) -> list[str]:
    return sorted(row.waveform_id for _, row in bench.tables.rows)


runs = st.tuples(
    st.sampled_from(["ingest", "backfill", "backfill"]),
    st.integers(0, DAYS - 1),
    st.integers(1, DAYS),
    st.sampled_from([1, 2, 3, 5, 1000]),
)
pairs = st.tuples(runs, runs, st.lists(st.integers(0, 1), max_size=80), st.sampled_from([None, None, 0, 1]))


@effort(40)
@given(archives(), st.lists(pairs, max_size=4), runs)
def test_any_backfills_beside_ingests_leave_each_waveform_once_and_the_positions_to_ingests(
    archive: tuple[FakeLog, set[str]], played: list[tuple[Run, Run, list[int], int | None]], last: Run
) -> None:
    log, sent = archive
    bench = Bench(log)
    for first, second, turns, dies in played:
        both = [Steps(partial(carry, bench, *run), f"{run[0]} {n}") for n, run in enumerate((first, second))]
        for turn in turns:
            both[turn].advance()
        if dies is not None:
            both[dies].kill()
        for run in both:
            run.finish()
            assert run.error is None or isinstance(run.error, LOUD), repr(run.error)
    done = carry(bench, "backfill", 0, DAYS, last[-1])
    assert published(bench) == sorted(sent)
    assert (done.incomplete, done.lost) == ((), ())
    heads = bench.tables.snapshots
    assert all(a.positions == b.positions for a, b in pairwise(heads) if b.kind == "backfill")


class Retention(Silent):
    """Takes the log to here while a backfill runs, before it looks at what lies across its cuts."""

    def __init__(self, log: FakeLog, ends: tuple[int, int]) -> None:
        self.log, self.ends = log, ends

    def begin(self, step: str, total: int | None = None) -> None:
        if step == "plan across cuts":
            retain(self.log, self.ends)


def retain(log: FakeLog, ends: tuple[int, int]) -> None:
    for p, end in enumerate(ends):
        log.retain_from(Partition(p), Offset(end))


def covered(ranges: Iterable[Sequence[int]]) -> set[tuple[int, int]]:
    return {(p, o) for p, start, end in ranges for o in range(start, end)}


def ended(bench: Bench, stream: Stream, scope: Scope, watcher: Silent) -> tuple[set[tuple[int, int]], tuple[str, ...]]:
    """What a backfill says is lost, whether it ends well or not, and which waveforms it read and found not whole."""
    try:
        done = run_backfill(FakeEdges(bench, stream, NOW_MS, Carrying()), scope, RunOptions(), watcher=watcher)
    except DataLost as error:
        return covered(error.facts["lost"]), ()
    return covered(done.lost), done.incomplete


taken = st.tuples(st.integers(0, 12), st.integers(0, 12))


@effort(80)
@given(archives(), st.sampled_from([None, 1, 3, 1000]), st.integers(1, DAYS - 1), taken, taken, st.integers(1, 6))
def test_what_retention_takes_between_and_within_backfills_is_published_held_or_named_as_lost(
    archive: tuple[FakeLog, set[str]],
    ingests: int | None,
    day: int,
    between: tuple[int, int],
    within: tuple[int, int],
    most: int,
) -> None:
    log, _ = archive
    bench = Bench(log)
    sent = [facts_of(r, p, 0) for p in range(2) for r in log.partitions[Partition(p)].records]
    starts = limited(1000).model_copy(update={"start": "latest"})
    run_batch(bench, starts if ingests is None else limited(ingests), PlanRequest(), clock_ms=NOW_MS)
    first, second = (Scope((BEGAN + a * DAY) * 10**6, (BEGAN + b * DAY) * 10**6) for a, b in ((0, day), (day, DAYS)))
    ended(bench, limited(most), first, Silent())
    retain(log, between)
    lost, incomplete = ended(bench, limited(most), second, Retention(log, within))
    # A copy of a piece that is held is held: all copies are the same here.
    held = {(h.chunk.waveform_id, h.chunk.seq) for h in load_state(bench.tables, topic_id="").held}
    for c in sent:
        if not second.owns(json.loads(c.meta or "")["start_time_ns"]) or c.waveform_id in published(bench):
            continue
        named = (c.waveform_id, c.seq) in held or (c.partition, c.offset) in lost
        if c.offset < between[c.partition]:
            assert named
        elif c.offset < log.partitions[c.partition].log_start:
            assert named or c.waveform_id in incomplete


def test_what_retention_takes_before_it_is_read_across_the_cuts_is_lost_and_no_more_than_that() -> None:
    log = FakeLog("waves", 2)
    for seq in range(3):
        send_chunk(log, "w", seq, at_ms=NOW_MS, start_ms=BEGAN, count=3)
    scope = Scope(BEGAN * 10**6, (BEGAN + DAY) * 10**6)
    lost, incomplete = ended(Bench(log), limited(1), scope, Retention(log, (2, 0)))
    assert lost == {(0, 0), (0, 1)}
    assert incomplete == ("w",)


class Said(NamedTuple):
    """One record: of which waveform which chunk, its bytes, and what it says of the whole."""

    waveform: int
    seq: int
    value: int
    count: int | None  # type: ignore[assignment]  # shadows tuple.count, which nobody calls on it
    digest: str | None
    units: str


@st.composite
def contradicting(draw: st.DrawFn) -> list[Said]:
    """Chunks of waveforms of two or three pieces, many of them again: the same, or with other bytes, another count,
    another digest of the whole, other metadata."""
    usual = [Said(n, seq, 1, count, None, "mV") for n, count in ((0, 2), (1, 2), (2, 3)) for seq in range(count)]
    odd = st.builds(
        lambda one, value, count, digest, units: one._replace(value=value, count=count, digest=digest, units=units),
        st.sampled_from(usual),
        st.sampled_from([1, 1, 7]),
        st.sampled_from([2, 2, 3, None]),
        st.sampled_from([None, None, "0" * 32, "1" * 32]),
        st.sampled_from(["mV", "mV", "mV", "uV"]),
    ).filter(lambda one: one.count is None or one.seq < one.count)
    kept = [one for one in usual if draw(st.integers(0, 9))]
    again = draw(st.lists(st.one_of(st.sampled_from(usual), odd), max_size=5))
    return list(draw(st.permutations([*kept, *again])))


def sent_anew(said: list[Said]) -> Bench:
    log = FakeLog("waves", 2)
    for to, (n, seq, value, count, digest, units) in enumerate(said):
        meta = metadata(BEGAN, units=units)
        more: dict[str, Any] = {"count": count, "meta": meta, "digest": digest, "partition": to % 2}
        send_chunk(log, f"w{n}", seq, bytes([value, seq]), at_ms=NOW_MS, **more)
    return Bench(log)


def backfilled(said: list[Said], most: int) -> tuple[Bench, Backfilled]:
    bench = sent_anew(said)
    return bench, carry(bench, "backfill", 0, DAYS, most)


def samples_of(bench: Bench) -> dict[str, bytes]:
    assert len(bench.tables.rows) == len({row.waveform_id for _, row in bench.tables.rows})
    return {row.waveform_id: row.samples for _, row in bench.tables.rows}


def whole_at_some_time(bench: Bench) -> set[str]:
    """Which waveforms are whole and uncontradicted of all that the batches up to one of them have read."""
    records = [facts_of(r, 0, 0) for p in range(2) for r in bench.log.partitions[Partition(p)].records]
    found: set[str] = set()
    read: set[tuple[int, int]] = set()
    for plan in (p for p in bench.plans.values() if p.kind is PlanKind.BACKFILL):
        read |= {(r.partition, o) for r in plan.ranges for o in range(r.start, r.end)}
        made = assemble([c for c in records if (c.partition, c.offset) in read], plan.stream.limits)
        found |= {i for i, a in made.items() if a.reason is None}
    return found


def differs(said: list[Said], most: int) -> str:
    """What a backfill in batches of so many records ends with otherwise than one in a single batch; else nothing."""
    (whole, one), (cut, many) = backfilled(said, 1000), backfilled(said, most)
    expected, found = samples_of(whole), samples_of(cut)
    if lost := expected.keys() - found.keys():
        return f"not published: {sorted(lost)}"
    if other := [i for i in expected if found[i] != expected[i]]:
        return f"published with other bytes: {other}"
    if invented := found.keys() - expected.keys() - whole_at_some_time(cut):
        return f"published, and contradicted by what had been read: {sorted(invented)}"
    named = (one.contradicted, one.incomplete), (many.contradicted, many.incomplete)
    return "" if named[0] == named[1] else f"named: {named}"


@effort(60)
@given(contradicting(), st.sampled_from([1, 2, 3, 4, 5]))
def test_wherever_a_backfill_is_cut_contradicting_copies_end_as_in_one_batch(said: list[Said], most: int) -> None:
    assert not differs(said, most)


def no_batch_knows_what_another_one_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steps, "known_elsewhere", lambda *_: {})


def a_batch_looks_at_the_bytes_of_another_ones_pieces_alone(patch: pytest.MonkeyPatch) -> None:
    real = pending_decision.say_no_more
    patch.setattr(
        pending_decision,
        "say_no_more",
        lambda copies, mine: real([c._replace(of=None, digest=None) for c in copies], mine),
    )


def what_was_stitched_and_refused_is_not_kept_for_the_batches_behind(patch: pytest.MonkeyPatch) -> None:
    real = chain.parts_of

    def wrong(*args: Any) -> Any:
        parts = real(*args)
        return replace(parts, parts=tuple(p for p in parts.parts if Reason.DIGEST_MISMATCH not in p.reasons))

    patch.setattr(chain, "parts_of", wrong)


def of_parts_nobody_asks_whether_they_contradict(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(seams, "contradict", lambda _: False)


def what_several_batches_have_together_nobody_reads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(seams, "_is_whole", lambda _: False)


W = Said(0, 0, 1, 2, None, "mV")
END = W._replace(seq=1)
OTHERS = [Said(1, n, 1, None, None, "mV") for n in range(3)]
MUTANTS: list[tuple[Any, list[Said]]] = [
    (no_batch_knows_what_another_one_read, [W._replace(value=7), *OTHERS, W, END]),
    (a_batch_looks_at_the_bytes_of_another_ones_pieces_alone, [W._replace(count=3), *OTHERS, W, END]),
    (
        what_was_stitched_and_refused_is_not_kept_for_the_batches_behind,
        [W._replace(digest="0" * 32), END, *OTHERS, W._replace(value=7), END],
    ),
    (of_parts_nobody_asks_whether_they_contradict, [W._replace(value=7), *OTHERS, W]),
    (what_several_batches_have_together_nobody_reads, [W, *OTHERS, END]),
]


@pytest.mark.parametrize(("plant", "said"), MUTANTS, ids=lambda given: getattr(given, "__name__", ""))
def test_with_a_rule_of_the_chain_dropped_a_cut_decides(
    plant: Any, said: list[Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not any(differs(said, most) for most in (2, 3, 4))
    plant(monkeypatch)
    assert any(differs(said, most) for most in (2, 3, 4))
