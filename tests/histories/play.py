"""One random history: producers, runs, operators, Kafka's tools and accidents, all drawn from one seed.

Drives the product's own steps over the memory edges, effect by effect, so that runs interleave, die and fail anywhere.
Then heals everything (`healing`), and hands the history over. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.builders.ranges import span
from tests.fakes.faults import Steps
from tests.histories.history import History
from tests.histories.producing import START_MS
from tests.histories.verified_apart import VerifiedApart
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.request import rewind_target
from wavestitch.batch.rewind import Target
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import EpochMs, Offset, Partition

WORDS = ("earliest", "previous", "head", "group", "latest", "new-topic")


class Play(VerifiedApart):
    """The world of one seed. `ops` counts what was done; `history` is what was seen. About half of what might be done
    is not, another half in each: `swarm`."""

    def play(self, ops: int) -> History:
        self.produce()
        self.accidents = self.swarm.half(self.may_befall())
        self.faults = self.swarm.half(self.may_fail())
        done = self.swarm.half(self.what_is_done(), needed=self.what_each_has())
        weights, calls = [w for w, _ in done], [c for _, c in done]
        for call in self.random.choices(calls, weights, k=ops):
            call()
            self.something_more()
        self.heal()
        return self.history

    def what_each_has(self) -> list[tuple[float, Callable[[], None]]]:
        """Without these nothing comes of the others; and how much is disturbed is drawn by itself."""
        each = (self.produce, self.ingest, self.advance, self.time_passes, self.disturb, self.mood)
        return [(weight, call) for weight, call in self.what_is_done() if call in each]

    def what_is_done(self) -> list[tuple[float, Callable[[], None]]]:
        """With how often."""
        disturbed = self.swarm.fault_rate
        return [
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
            (7 * disturbed, self.disturb),
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
            (2 * disturbed, self.mood),
            (4, self.time_passes),
        ]

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
            return PlanRequest(only=frozenset({Partition(p)}))
        return PlanRequest(until={Partition(p): Offset(self.random.randint(at.log_start, at.end))})

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
            named = (span(p, start, self.random.randint(start, at.end)),)
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
                    Target(offsets={Partition(p): Offset(self.random.randint(at.log_start, at.end))}),
                    Target(time_ms=EpochMs(START_MS + self.random.randint(0, 300) * 1000)),
                    rewind_target(self.random.choice(["earliest", "latest", "previous"]), str(p)),
                    rewind_target(f"{p}:{self.random.choice(['earliest', 'latest', 'head', 'group'])}"),
                ]
            )
            self.start_rewind(target, self.random.random() < 0.5)
