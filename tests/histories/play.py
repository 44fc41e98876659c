"""One random history: producers, runs, operators, Kafka's tools and accidents, all drawn from one seed.

Drives the product's own steps over the memory edges, effect by effect, so that runs interleave, die and fail anywhere.
Then heals everything, lets quiet runs follow what refusals advise, and hands the history over. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.fakes.fake_log import Visibility
from tests.fakes.faults import Steps
from tests.histories.events import Quiet
from tests.histories.history import History
from tests.histories.producing import START_MS
from tests.histories.running import DEADLINE
from tests.histories.widening import Widening
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.request import rewind_target
from wavestitch.batch.rewind import Target
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.stream import Limits

WORDS = ("earliest", "previous", "head", "group", "latest", "new-topic")


class Play(Widening):
    """The world of one seed. `ops` counts what was done; `history` is what was seen."""

    def play(self, ops: int) -> History:
        self.produce()
        choices: list[tuple[int, Callable[[], None]]] = [
            (8, self.produce),
            (3, self.send_late),
            (3, self.repeat),
            (2, self.lie),
            (1, self.junk_flood),
            (1, self.stranger),
            (2, self.contradict),
            (3, self.transaction),
            (1, self.markers),
            (9, self.ingest),
            (2, self.backfill),
            (1, self.read_named_ranges),
            (3, self.carry_again),
            (18, self.advance),
            (7, self.disturb),
            (3, self.rewind),
            (3, self.decide),
            (2, self.undo),
            (1, self.decided_and_taken_back),
            (1, self.half_decided),
            (1, self.diluted_decision),
            (1, self.diluted_backfill),
            (1, self.unsure_gate),
            (1, self.back_behind_a_cut),
            (2, self.sent_again_though_held),
            (5, self.accident),
            (2, self.mood),
            (4, self.time_passes),
        ]
        weights, calls = [w for w, _ in choices], [c for _, c in choices]
        for call in self.random.choices(calls, weights, k=ops):
            call()
            self.something_more()
        self.heal()
        return self.history

    on_purpose = ""

    def settle(self, run: Steps) -> str | None:
        text = super().settle(run)
        if text and not self.healing and not self.busy and self.random.random() < 0.25:
            self.follow(text)
        return text

    # batches

    def ingest(self) -> None:
        if not self.busy:
            most = self.random.choice([1000, 1000, 7, 4, 2, 1])
            limits = self.stream.limits.model_copy(update={"max_batch_records": most})
            stream = self.stream.model_copy(update={"limits": limits})
            request = self.random.choice([PlanRequest(), PlanRequest(), self.some_partitions()])
            self.launch("ingest", partial(self.batch, stream, request, self.random.random() < 0.05))

    def some_partitions(self) -> PlanRequest:
        """An ingest of one partition, or one that ends at a named offset."""
        p, at = self.a_partition()
        if self.random.random() < 0.5:
            return PlanRequest(only=frozenset({p}))
        return PlanRequest(until={p: self.random.randint(at.log_start, at.end)})

    def backfill(self) -> None:
        if not self.busy:
            since, span = self.random.choice([0, 0, 21, 101]), self.random.choice([300, 100, 1])
            scope = Scope((START_MS + since * 1000) * 10**6, (START_MS + (since + span) * 1000) * 10**6)
            self.launch("backfill", partial(self.batch, self.stream, PlanRequest(PlanKind.BACKFILL, scope)))

    def read_named_ranges(self) -> None:
        """A manual run that names its offsets."""
        if not self.busy:
            p, at = self.a_partition()
            start = self.random.randint(at.log_start, at.end)
            named = (OffsetRange(p, start, self.random.randint(start, at.end)),)
            self.launch("manual", partial(self.batch, self.stream, PlanRequest(PlanKind.MANUAL, ranges=named)))

    def carry_again(self) -> None:
        """A step that is tried again, perhaps beside its own zombie."""
        if not self.busy and self.bench.plans:
            plan = self.random.choice(list(self.bench.plans.values())[-4:])
            self.launch(f"{plan.kind} again", partial(self.carry, plan, self.carrying()))

    def rewind(self) -> None:
        if not self.busy:
            p, at = self.a_partition()
            target = self.random.choice(
                [
                    *map(Target, WORDS),
                    Target(offsets={p: self.random.randint(at.log_start, at.end)}),
                    Target(time_ms=EpochMs(START_MS + self.random.randint(0, 300) * 1000)),
                    rewind_target(self.random.choice(["earliest", "latest", "previous"]), str(p)),
                    rewind_target(f"{p}:{self.random.choice(['earliest', 'latest', 'head', 'group'])}"),
                ]
            )
            self.start_rewind(target, self.random.random() < 0.5)

    # healing

    def heal(self) -> None:
        """End what is under way, put the world in order, and let quiet runs finish the work."""
        log = self.bench.log
        if self.on_purpose:
            getattr(self, self.on_purpose)()
        self.healing = True
        self.copy_stops()
        for run in list(self.runs):
            if self.random.random() < 0.5:
                run.kill()
            self.step(run, DEADLINE + 1)
        log.live_members, log.compacted = [], False
        log.moods.clear()
        log.end_transactions(Visibility.COMMITTED, self.clock_ms)
        if self.bench.gates.keys() - self.bench.abandoned:
            self.a_month_passes()
        self.quiet_runs()
        everything = self.random.random() < 0.3
        if everything:
            self.decide_about_everything()
            self.quiet_runs()
        self.witness.read_back()
        self.history.append(Quiet(everything))

    def quiet_runs(self) -> None:
        if self.tight:
            self.learn_the_budget()
        for _ in range(12):
            last = self.launch("quiet ingest", partial(self.batch, self.stream, PlanRequest()), far=True)
            if isinstance(last.result, NothingToDo):
                break
            self.follow_to_the_end(last)

    def learn_the_budget(self) -> None:
        """Each reader that stops halves the next batch; once the stream gets on, somebody allows larger ones."""
        for _ in range(40):
            last = self.launch("quiet ingest", partial(self.batch, self.stream, PlanRequest()), far=True)
            if last.error is None:
                self.tight = False
                self.set_limits(max_batch_bytes=Limits().max_batch_bytes)
                break
            self.follow_to_the_end(last)

    def follow_to_the_end(self, run: Steps) -> None:
        """A way out may itself be refused, and name another."""
        way: Steps | None = run
        for _ in range(3):
            way = self.follow(str(way.error)) if way is not None and way.error is not None else None

    def decide_about_everything(self) -> None:
        """Nothing is held for ever: what no other decision gets out can be let go."""
        self.ops["everything decided"] += 1
        for action in (HeldAction.REDRIVE, HeldAction.ACCEPT, HeldAction.PICK, HeldAction.DISCARD):
            self.follow_to_the_end(self.launch_decision(action, Selection(), far=True))

    def a_month_passes(self) -> None:
        """Beside a closed gate: a batch that leaves the positions, then maintenance, which expires all but its head."""
        self.ops["a month at a closed gate"] += 1
        p, at = self.a_partition()
        named = (OffsetRange(p, at.log_start, at.end),)
        self.launch("manual", partial(self.batch, self.stream, PlanRequest(PlanKind.MANUAL, ranges=named)), far=True)
        self.bench.tables.expire_snapshots(1)
