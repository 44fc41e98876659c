"""The batches of a backfill have their turns: whoever takes up whichever of them, in any order, several at once, with
gates that close, errors and kills. None reads or stitches before those before it are finished, so that of all that are
not the landing holds one; and each looks only at what it may need of what those before it kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.domain.effort import effort
from tests.domain.running_machine import LOUD
from tests.fakes.batch import Bench, Carrying, FakeEdges
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Fault, Steps
from tests.hostile.landed_deployment import FakeDeployment, landed_edges, make_landed_deployment
from wavestitch.batch import chain, steps
from wavestitch.batch.backfill import Backfilled, run_backfill, step_plan_backfill
from wavestitch.batch.edges import Progress, Say
from wavestitch.batch.history import find_committed, history_of
from wavestitch.batch.reassemble import Landed, ToStitch
from wavestitch.batch.run import RunOptions, Silent, run_batch
from wavestitch.contracts.copies import Copy
from wavestitch.contracts.errors import Fenced, Transient
from wavestitch.contracts.parts_index import PartsIndex, index_of
from wavestitch.contracts.plan import Plan, Scope
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.receipt import Receipt
from wavestitch.contracts.seams import Part, Parts

NOW_MS = 1_767_614_400_000
BEGAN = NOW_MS - 1_000 * 86_400_000
DAY = Scope(BEGAN * 10**6, (BEGAN + 86_400_000) * 10**6)


@dataclass
class Seen:
    """What the edges were asked: what was read or stitched too early, and how often what was kept was opened."""

    early: list[str] = field(default_factory=list)
    opened: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Watched(FakeEdges):
    seen: Seen

    def read(self, plan: Plan, units: Sequence[int], *, progress: Progress) -> list[Receipt]:
        self._in_turn("read", plan)
        return super().read(plan, units, progress=progress)

    def stitch(self, plan: Plan, landed: Landed, what: ToStitch, *, say: Say) -> str | None:
        self._in_turn("stitch", plan)
        return super().stitch(plan, landed, what, say=say)

    def parts(self, plan_id: str) -> Parts:
        self.seen.opened["parts"] += 1
        return super().parts(plan_id)

    def parts_index(self, plan_id: str) -> PartsIndex:
        self.seen.opened["index"] += 1
        return super().parts_index(plan_id)

    def _in_turn(self, what: str, plan: Plan) -> None:
        if any(find_committed(history_of(self), before) is None for before in plan.after):
            self.seen.early.append(f"{what} of {plan.plan_id[:16]}")


class Chain:
    """A backfill in small batches, as somebody has planned it. The waveforms of its first one are spoiled."""

    def __init__(self, *, chunks: Sequence[int] = (1, 1, 3, 1), most: int = 2) -> None:
        self.bench, self.seen = Bench(FakeLog("waves", 1)), Seen()
        limits = {"max_clock_skew": "36500 d", "max_batch_records": most}
        self.stream = make_stream(limits=limits, reading={"min_slice": 1})
        self.sent = [f"w{n}" for n in range(len(chunks))]
        for one, count in zip(self.sent, chunks, strict=True):
            for seq in range(count):
                send_chunk(self.bench.log, one, seq, at_ms=NOW_MS, start_ms=BEGAN, count=count)

    def edges(self, how: Carrying | None = None) -> Watched:
        return Watched(self.bench, self.stream, NOW_MS, how or Carrying(), self.seen)

    def plan(self) -> list[str]:
        return list(step_plan_backfill(self.edges(), DAY).plans)

    def take_up(self, plan_id: str, *, gate: Any = "accept") -> None:
        how = Carrying(spoiled={"w0", "w1"})
        run_batch(self.edges(how), RunOptions(plan_id=plan_id, gate=gate, why="looked at"), watcher=Silent())

    def backfill(self) -> Backfilled:
        return run_backfill(self.edges(), DAY, RunOptions(), watcher=Silent())

    def published(self) -> list[str]:
        return sorted(row.waveform_id for _, row in self.bench.tables.rows)


taken_up = st.tuples(
    st.integers(0, 2),
    st.sampled_from(["stop", "accept"]),
    st.lists(st.integers(0, 1), max_size=60),
    st.sampled_from([None, Fault.KILL_BEFORE, Fault.KILL_AFTER, Fault.FAIL_BEFORE, Fault.FAIL_AFTER]),
)


@effort(30)
@given(st.lists(st.tuples(taken_up, taken_up), max_size=5))
def test_in_whichever_order_batches_are_taken_up_none_lands_before_its_turn(played: list[tuple[Any, Any]]) -> None:
    world = Chain()
    plans = world.plan()
    for both in played:
        runs = [Steps(partial(world.take_up, plans[n], gate=gate), f"{n}") for n, gate, _, _ in both]
        for turn in both[0][2]:
            runs[turn].advance()
        for run, (_, _, _, fault) in zip(runs, both, strict=True):
            run.advance(fault)
            run.finish()
            assert run.error is None or isinstance(run.error, LOUD), repr(run.error)
    assert world.seen.early == []
    for plan_id in plans:
        world.take_up(plan_id)
    world.backfill()
    assert world.published() == world.sent
    assert world.seen.early == []


def nobody_asks_before_it_reads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steps, "stand_behind", lambda *_: None)


def nobody_asks_before_it_stitches(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(steps, "stand_behind", lambda *_: None)
    real = chain.known_elsewhere
    asked: set[str] = set()

    def late(edges: Any, plan: Any, landed: Any) -> Any:
        if plan.plan_id in asked:
            return real(edges, plan, landed)
        asked.add(plan.plan_id)
        return {}

    patch.setattr(steps, "known_elsewhere", late)


@pytest.mark.parametrize(
    ("plant", "early"), [(nobody_asks_before_it_reads, ["read"]), (nobody_asks_before_it_stitches, ["read", "stitch"])]
)
def test_with_a_question_dropped_a_batch_lands_before_its_turn(
    plant: Any, early: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for planted in (False, True):
        if planted:
            plant(monkeypatch)
        world = Chain()
        _, second, *_ = world.plan()
        with pytest.raises(Transient, match="comes after"):
            world.take_up(second)
        assert [what.split()[0] for what in world.seen.early] == (early if planted else [])


def test_what_stands_is_named_by_all_behind_it_and_one_that_was_abandoned_ends_the_backfill() -> None:
    world = Chain()
    first, *_, last = world.plan()
    with pytest.raises(Transient) as stands:
        world.take_up(last)
    assert stands.value.facts == {"before": first, "ahead": 2}
    world.bench.abandoned.add(first)
    with pytest.raises(Fenced, match=r"which nobody finishes any more: .* Backfill the interval again"):
        world.take_up(last)
    world.backfill()
    assert world.published() == world.sent
    assert world.seen.early == []


def test_of_several_before_it_the_first_that_is_not_finished_is_named() -> None:
    world = Chain(chunks=[1] * 5, most=1)
    *before, last = world.plan()
    assert len(before) == 4
    for n, plan_id in enumerate(before):
        with pytest.raises(Transient) as stands:
            world.take_up(last)
        assert stands.value.facts == {"before": plan_id, "ahead": 4 - n}
        world.take_up(plan_id)
    world.take_up(last)
    assert world.published() == world.sent


def test_a_batch_opens_no_more_of_what_others_kept_the_more_there_are_before_it() -> None:
    """Of fifty batches, of a record each, half are of waveforms that the next batch has the rest of."""
    world = Chain(chunks=[2] * 12 + [1] * 26, most=1)
    assert len(world.plan()) == 50
    world.backfill()
    assert world.published() == sorted(world.sent)
    assert world.seen.opened.total() <= 8 * 50


def test_what_several_executions_of_a_batch_kept_is_found_by_those_behind_it(tmp_path: Path) -> None:
    world = Chain()
    *_, plan_id = world.plan()
    rig = make_landed_deployment(tmp_path, stream_yaml="", partitions=1)
    assert isinstance(rig.deployment, FakeDeployment)
    edges = landed_edges(rig.deployment)
    edges.begin(world.bench.plans[plan_id])
    earlier = index_of(Parts("before", (part("v"),)), [])
    for one in ("w", "x"):
        kept = Parts(plan_id, (part(one),))
        edges.keep_parts(kept, index_of(kept, [earlier]))
    found = edges.parts_index(plan_id)
    assert found.keepers({"v", "nobody"}) == ("before",)
    assert found.keepers({"x", "v"}) == ("before", plan_id)
    assert found.keepers({"nobody"}) == ()
    assert {p.waveform_id for p in edges.parts(plan_id).parts} == {"w", "x"}


def part(waveform_id: str) -> Part:
    return Part(waveform_id, (Reason.OPEN,), (Copy(Partition(0), Offset(1), 0, "ab", 2, None, "cd"),))
