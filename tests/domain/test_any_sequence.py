"""Whatever operators do one after the other, and two at once, killed anywhere: ingests, backfills, rewinds, redrives,
promotions, and what is undone of them. Each waveform is published once in the end, and the stream stands where the last
ingest or rewind has put it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.domain.effort import effort
from tests.domain.running_machine import LOUD
from tests.domain.test_any_backfill import BEGAN, DAY, DAYS, NOW_MS, archives, limited, published
from tests.fakes.batch import Bench, Carrying, FakeEdges, run_batch
from tests.fakes.fake_comparing import FakeComparing
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Steps
from wavestitch.batch.backfill import run_backfill
from wavestitch.batch.carry import Silent
from wavestitch.batch.held_approval import begin_approved
from wavestitch.batch.held_decision import HeldPreview, carry_out, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.promote import carry_promotion, preview_promotion
from wavestitch.batch.rewind import Rewind, Target, apply_rewind, plan_rewind
from wavestitch.batch.run import RunOptions
from wavestitch.batch.take_back import take_back
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.errors import BadInput, Refused, Terminal
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.quantities import Offset, Partition

MOVES = ("first", "ingest", "rewind")


class Act(NamedTuple):
    """`which`: a waveform, a day or an offset, as it fits."""

    what: str
    which: int
    most: int


class Operators:
    """`failing`: what the expectations of now refuse. They change where nobody is at work: a plan keeps its own."""

    def __init__(self, log: FakeLog, sent: set[str]) -> None:
        self.bench, self.sent, self.failing = Bench(log), sorted(sent), set[str]()
        self.offered = ""

    def edges(self, most: int = 1000) -> FakeEdges:
        return FakeEdges(self.bench, limited(most), NOW_MS, Carrying(set(self.failing)))

    def ingest(self, _: int, most: int) -> Any:
        return run_batch(self.bench, limited(most), PlanRequest(), clock_ms=NOW_MS, how=Carrying(set(self.failing)))

    def backfill(self, day: int, most: int) -> Any:
        start = BEGAN + day % DAYS * DAY
        scope = Scope(start * 10**6, (start + 2 * DAY) * 10**6)
        return run_backfill(self.edges(most), scope, RunOptions(), watcher=Silent())

    def rewind(self, to: int, _: int) -> Any:
        p = Partition(to % 2)
        target = Target("earliest") if to % 3 else Target(offsets={p: Offset(to)})
        where: dict[str, Any] = {"log": self.bench.log, "tables": self.bench.tables}
        found = plan_rewind(limited(1000), target, **where, who="ops", why="to see")
        return apply_rewind(limited(1000), found, accept_skip=False, **where)

    def redrive(self, _: int, __: int) -> Any:
        found = plan_held(self.edges(), HeldAction.REDRIVE, Selection(), who="ops", why="to see", everything=True)
        return carry_out(self.edges(), found.plan)

    def promote(self, _: int, __: int) -> Any:
        """What was shown before, if anything was."""
        return carry_promotion(self.edges(), begin_approved(self.edges(), self.offered, by="bob"))

    def undo(self, which: int, _: int) -> Any:
        edges = self.edges()
        plans = [h.plan_id for h in self.bench.tables.snapshots if h.plan_id]
        stages = committed_stages(edges, plans[which % len(plans)] if plans and which % 2 else None)
        found = plan_undo(edges, stages, who="ops", why="to see")
        if isinstance(found, HeldPreview):
            return carry_out(edges, found.plan)
        if isinstance(found, Rewind):
            where: dict[str, Any] = {"log": self.bench.log, "tables": self.bench.tables}
            return apply_rewind(limited(1000), found, accept_skip=False, **where)
        return take_back(edges, found)

    def expectations_change(self, which: int) -> None:
        """Of one waveform; and somebody is shown what a promotion would make of that."""
        there = sorted({*published(self.bench), *self.failing})
        self.failing ^= set(there[which % len(there) : which % len(there) + 1]) if there else set()
        comparing = FakeComparing(self.bench, limited(1000), NOW_MS, Carrying(set(self.failing)))
        try:
            shown = preview_promotion(
                self.edges(), comparing, VerifyRequest(), who="ann", why="to see", watcher=Silent()
            )
        except Refused:
            return
        self.offered = shown.plan.plan_id

    def launch(self, act: Act, name: str) -> Steps:
        call: Callable[[int, int], Any] = getattr(self, act.what)
        return Steps(partial(call, act.which, act.most), name)


ACTS = ("ingest", "backfill", "rewind", "redrive", "promote", "undo", "undo", "undo")
acts = st.builds(Act, st.sampled_from(ACTS), st.integers(0, 11), st.sampled_from([1, 2, 3, 1000]))
pairs = st.tuples(
    acts,
    acts,
    st.lists(st.integers(0, 1), max_size=60),
    st.sampled_from([None, None, 0, 1]),
    st.one_of(st.none(), st.integers(0, 5)),
)


@effort(40)
@given(archives(), st.lists(pairs, min_size=3, max_size=7))
def test_any_sequence_of_operations_leaves_each_waveform_once_and_the_stream_where_it_was_put(
    archive: tuple[FakeLog, set[str]], played: list[tuple[Act, Act, list[int], int | None, int | None]]
) -> None:
    ops = Operators(*archive)
    ops.ingest(0, 1000)
    for first, second, turns, dies, changes in played:
        begun = (first, second)
        if changes is not None:
            ops.expectations_change(changes)
            begun = (first._replace(what="promote"), second)
        both = [ops.launch(act, f"{act.what} {n}") for n, act in enumerate(begun)]
        for turn in turns:
            both[turn].advance()
        if dies is not None:
            both[dies].kill()
        for run in both:
            run.finish()
            # "Not there to be undone", and what changed under a decision: plan again.
            assert run.error is None or isinstance(run.error, (*LOUD, BadInput, Terminal)), repr(run.error)
    ops.failing.clear()
    while not isinstance(ops.ingest(0, 1000), NothingToDo):
        pass
    if ops.bench.tables.held_rows():
        ops.launch(Act("redrive", 0, 0), "last").finish()
    assert published(ops.bench) == ops.sent
    heads = ops.bench.tables.snapshots
    assert all(a.positions == b.positions for a, b in pairwise(heads) if b.kind not in MOVES)
    assert {p: at.offset for p, at in ops.bench.log.group.items()} == {
        p: at.next_offset for p, at in heads[-1].positions.items()
    }
