"""Backfills of a random history that become several batches, and what befalls the catalog beside them: it is set back,
dropped or forked where a chain is half done, a decision is planned, and another one was shown to somebody.

Of the histories that have it in them the draws are made apart. Judges nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from tests.fakes.batch import FakeEdges
from tests.fakes.fake_maintenance import maintain
from tests.fakes.faults import Fault, Steps, under_way
from tests.histories.approval_events import Approved, Shown
from tests.histories.interval_events import Backfilled
from tests.histories.producing import START_MS
from tests.histories.widening import Widening
from wavestitch.batch import backfill
from wavestitch.batch.backfill import BackfillPlanned
from wavestitch.batch.carry import NOTHING_READ, Carried, How, carry_through
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.rewind import Target
from wavestitch.contracts.batch_stages import BATCH
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.stream import Stream

SHARE, OFTEN = 0.3, 0.12
"""Of all histories so many have chains in them; in those something of them comes after so many acts."""


MOST_BATCHES = 6
"""A chain's, about, where bytes make no more of it."""
TOO_MANY = 30
DEADLINE = 3000
"""Effects that a chain may take: those of its batches, one after the other."""


class Chain(NamedTuple):
    """A backfill as it was planned, by which definition."""

    stream: Stream
    planned: BackfillPlanned


class Backfilling(Widening):
    """`beside`: the randomness of chains, apart. `chains`: the last few that were planned."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.beside = random.Random(f"backfilling {seed}")
        self.backfills = self.beside.random() < SHARE
        self.chains: list[Chain] = []

    def something_more(self) -> None:
        super().something_more()
        if not self.backfills or self.beside.random() > OFTEN:
            return
        self.random, drawn = self.beside, self.random
        self.random.choice(self.of_chains())()
        self.random = drawn

    def of_chains(self) -> list[Callable[[], Any]]:
        return [
            self.chain,
            self.chain,
            self.skipped_and_backfilled,
            self.chain_goes_on,
            self.chain_goes_on,
            self.half_a_chain,
            self.another_catalog_beside,
        ]

    # chains

    def scope(self) -> Scope:
        since, span = self.random.choice([0, 0, 21, 101]), self.random.choice([1000, 300, 100])
        return Scope((START_MS + since * 1000) * 10**6, (START_MS + (since + span) * 1000) * 10**6)

    def in_small_batches(self) -> Stream:
        there = sum(at.end - at.log_start for at in self.bench.log.partitions.values())
        most = max(self.random.choice([1, 2, 3, 5]), there // MOST_BATCHES)
        limits = self.stream.limits.model_copy(update={"max_batch_records": most})
        return self.stream.model_copy(update={"limits": limits})

    def chain(self, **how: Any) -> Steps | None:
        """Begun, and carried some effects further; the rest as with every run."""
        if self.busy:
            return None
        call = partial(self.chained, self.in_small_batches(), self.scope())
        return self.launch("backfill chain", call, deadline=DEADLINE, **how)

    def skipped_and_backfilled(self) -> None:
        """Somebody goes forward to the log's end, and backfills what was left out; some of that contradicts itself."""
        if self.busy or not self.bench.tables.snapshots:
            return
        for _ in range(3):
            first, *rest = self.new_waveform(self.random.randint(1, 3))
            again = [self.another(first)] if self.random.random() < 0.4 else []
            for one in self.random.sample([first, *rest, *again], 1 + len(rest) + len(again)):
                self.send(one)
        done = self.start_rewind(Target("latest"), True, far=True)
        if done.error is None:
            self.ops["skipped and backfilled"] += 1
            self.chain(far=self.random.random() < 0.6)

    def chained(self, stream: Stream, scope: Scope) -> Any:
        edges = FakeEdges(self.bench, stream, self.clock_ms, self.carrying())
        planned = backfill.step_plan_backfill(edges, scope)
        if len(planned.plans) > TOO_MANY:
            return planned  # small budgets, which readers stopped at, make hundreds: nobody waits for that
        if len(planned.plans) > 1:
            self.ops["chain of batches"] += 1
        self.chains = [*self.chains[-2:], Chain(stream, planned)]
        done = self.carried(self.chains[-1])
        if not planned.plans:
            self._ended_well("", planned, done)
        return done

    def carried(self, chain: Chain) -> Any:
        """All of its batches that are not finished, in their order, as Airflow's tasks do it."""
        edges = FakeEdges(self.bench, chain.stream, self.clock_ms, self.carrying())
        self._each(edges, chain.planned)
        seams = backfill.step_plan_seams(edges, chain.planned)
        self.ops["read across cuts"] += bool(seams.plans)
        self._each(edges, seams)
        done = backfill.step_close_backfill(edges, chain.planned, seams)
        for first in chain.planned.plans[:1]:
            self._ended_well(first, chain.planned, done)
        return done

    def _ended_well(self, first: str, planned: BackfillPlanned, done: backfill.Backfilled) -> None:
        lost = tuple((r.partition, r.start, r.end) for r in done.lost)
        self.history.append(Backfilled(under_way(), first, (planned.scope.start_ns, planned.scope.end_ns), lost))

    @staticmethod
    def _each(edges: FakeEdges, planned: BackfillPlanned) -> None:
        for plan_id in planned.plans:
            if backfill.finished(edges, plan_id) is None:
                carry_through(BATCH, edges, Carried(plan_id, (NOTHING_READ,)), How())

    def chain_goes_on(self) -> None:
        """One that was killed, refused or is under way still is taken up, perhaps beside itself."""
        if self.chains and not self.busy:
            call = partial(self.carried, self.random.choice(self.chains))
            self.launch("backfill chain again", call, deadline=DEADLINE)

    def half_a_chain(self) -> None:
        """It dies between two of its batches, or right after a commit; something or nothing comes; it goes on."""
        if self.dies_between_batches() is None:
            return
        self.ops["half a chain"] += 1
        edges = FakeEdges(self.bench, self.stream, self.clock_ms, self.carrying())
        match self.random.randrange(4):
            case 0:
                self.launch("maintain", partial(maintain, edges, most=1), far=True)
            case 1:
                self.all_there_is()
            case 2:
                self.retention()
        self.launch_again(self.chains[-1])

    def dies_between_batches(self) -> Chain | None:
        """A chain of which the first batches are committed, and the next one is not."""
        run = self.chain(now=0)
        if run is None:
            return None
        batches, where = self.random.randint(1, 3), self.random.choice(["tables.batches", "tables.commit"])
        while not run.done and len(run.trace) < 500:
            if run.at == where and run.trace.count("tables.commit") >= batches:
                break
            run.advance()
        half = not run.done
        run.advance(Fault.KILL_AFTER)
        self.settle(run)
        return self.chains[-1] if half and self.chains else None

    def whole_chain(self) -> Chain | None:
        run = self.chain(far=True)
        return self.chains[-1] if run is not None and run.error is None and self.chains else None

    # catalogs

    def another_catalog_beside(self) -> None:
        """Then all go on that stood on what is no more, and whoever knows of nothing."""
        if self.busy or self.catalogs > 1 or not self.bench.tables.snapshots:
            return
        before = self.bench.tables.snapshots[-1].sequence
        half = self.dies_between_batches() if self.random.random() < 0.6 else self.whole_chain()
        ids = self.held_ids()
        planned = self.planned_decision(ids) if ids else None
        shown = self.shown_decision(ids) if ids else None
        if ids and self.random.random() < 0.5:
            action = self.random.choice([HeldAction.DISCARD, HeldAction.RESTORE, HeldAction.REDRIVE])
            self.launch_decision(action, Selection(ids=(self.random.choice(ids),)), far=True)
        what = self.random.choice(["set back", "set back", "dropped", "forked"])
        if not self._befalls(what, before):
            return
        self.ops[f"{what} beside"] += 1
        goes_on: list[Callable[[], Any]] = [
            partial(self.chain, far=True),
            *([partial(self.launch_again, half)] if half is not None else []),
            *([partial(self.launch_approved, shown)] if shown else []),
            *([partial(self.launch_planned, planned)] if planned else []),
            *([partial(self.launch_decision, HeldAction.DISCARD, Selection(ids=(ids[0],)), far=True)] if ids else []),
        ]
        for _ in range(2):
            for call in self.random.sample(goes_on, len(goes_on)):
                call()
                if self.copy is not None:
                    self.copy_goes_on()
            refused = self.all_there_is()
            if refused.error is not None and self.random.random() < 0.7:
                self.follow(str(refused.error))

    def _befalls(self, what: str, before: int) -> bool:
        tables = self.bench.tables
        if what == "forked":
            self.copy_stops()
            self.fork()
            if self.copy is not None and not self.tight:  # small budgets make hundreds of batches
                self.copy.backfills(self.in_small_batches(), self.scope(), self.clock_ms, self.carrying())
            return self.copy is not None
        if not self._another_catalog():
            return False
        if what == "dropped":
            tables.drop(f"6d0f4f0e-0000-4000-8000-{self.catalogs + 1:012d}")
            self.witness.table_dropped()
            self.bench.gates.clear()
            return True
        known = [h.sequence for h in tables.snapshots]
        tables.restore(before if before in known and self.random.random() < 0.7 else self.random.choice(known))
        return True

    def launch_again(self, chain: Chain) -> None:
        self.launch("backfill chain again", partial(self.carried, chain), far=True, deadline=DEADLINE)

    def planned_decision(self, ids: list[str]) -> str:
        """A decision whose plan is kept, by somebody who dies then."""
        known = set(self.bench.plans)
        run = self.launch_decision(HeldAction.DISCARD, Selection(ids=(self.random.choice(ids),)), now=0)
        self.to_its_plan(run)
        run.kill()
        self.settle(run)
        return next(iter(self.bench.plans.keys() - known), "")

    def launch_planned(self, plan_id: str) -> None:
        self.launch("held again", partial(self.carry, self.bench.plans[plan_id], self.carrying()), far=True)

    def shown_decision(self, ids: list[str]) -> str:
        meant = self.random.choice(ids)
        asked = self.launch("held: shown", partial(self.preview, HeldAction.DISCARD, meant), far=True)
        if asked.error is not None:
            return ""
        self.history.append(Shown(asked.result, (meant,)))
        return str(asked.result)

    def launch_approved(self, preview: str) -> None:
        self.history.append(Approved(f"run-{self.launched + 1}", preview))
        self.launch("held: approved", partial(self.approve, preview), far=True)
