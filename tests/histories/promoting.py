"""Who promotes, in a random history: expectations change, a range is compared, and what the definition makes of it
is put in the place of what is there; whatever comes between, and it is taken back. Judges nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.fakes.batch import FakeEdges
from tests.fakes.fake_comparing import FakeComparing
from tests.fakes.fake_maintenance import maintain
from tests.fakes.faults import Steps
from tests.histories.approval_events import Approved, Declared
from tests.histories.backfilling import DEADLINE
from tests.histories.lagging import Lagging
from tests.histories.promotion_events import GateSays, Offered
from wavestitch.batch.carry import Silent
from wavestitch.batch.held_approval import begin_approved
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.promote import PromotionPreview, carry_promotion, preview_promotion
from wavestitch.batch.rewind import Target
from wavestitch.batch.verify_request import VerifyRequest
from wavestitch.contracts.held_choice import HeldAction

SHARE, OFTEN = 0.3, 0.15
"""Of all histories so many have promotions in them; in those something of them comes after so many acts."""


class Promoting(Lagging):
    """`replacing`: the randomness of promotions, apart. `offered`: the last few that somebody was shown."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.replacing = random.Random(f"promoting {seed}")
        self.promotes = self.replacing.random() < SHARE
        self.offered: list[PromotionPreview] = []

    def something_more(self) -> None:
        super().something_more()
        if not self.promotes or self.replacing.random() > OFTEN:
            return
        self.random, drawn = self.replacing, self.random
        self.random.choice([self.promote, self.promote, self.promote_later, self.promote_and_take_back])()
        self.random = drawn

    # the definition

    def expectations_change(self) -> None:
        """What was published is refused from now on, and what was refused passes. Nobody is at work meanwhile: a plan
        keeps the expectations that it was made of."""
        published = sorted({row.waveform_id for _, row in self.bench.tables.rows} - self.failing)
        held = sorted(self.failing & set(self.held_ids()))
        for waveform_id in self.random.sample(published, min(len(published), self.random.choice([0, 1, 1, 2]))):
            self.failing.add(waveform_id)
            self.history.append(GateSays(waveform_id))
        for waveform_id in self.random.sample(held, min(len(held), self.random.choice([0, 1, 1, 3]))):
            self.failing.discard(waveform_id)
            self.history.append(GateSays(waveform_id, refuses=False))

    # promotions

    @property
    def may_promote(self) -> bool:
        """Where budgets are tiny a comparison would be hundreds of batches."""
        tables = self.bench.tables
        mine = bool(tables.snapshots) and tables.snapshots[-1].topic_id == self.bench.log.topic_id
        return mine and not (self.tight or tables.headless or self.copy)

    def show_a_promotion(self) -> PromotionPreview | None:
        """In one go: what is compared with is one snapshot, and so is what the checker knows."""
        if not self.may_promote:
            return None
        for run in list(self.runs):
            self.step(run, self.deadlines[run.name] + 1)
        self.expectations_change()
        return self.show_of(VerifyRequest() if self.random.random() < 0.5 else self.a_range())

    def show_of(self, request: VerifyRequest) -> PromotionPreview | None:
        """Of this range, by the definition as it is now."""
        with self.in_one_go():
            run = self.launch("promote: shown", partial(self.compared, request), far=True, deadline=DEADLINE)
        if run.error is not None:
            return None
        shown: PromotionPreview = run.result
        said = shown.promotion
        rows = tuple(zip(said.ids, said.was, said.made, strict=True))
        self.history.append(Offered(shown.plan.plan_id, rows, shown.passed_over))
        self.offered = [*self.offered[-2:], shown]
        return shown

    def compared(self, request: VerifyRequest) -> PromotionPreview:
        edges = FakeEdges(self.bench, self.stream, self.clock_ms, self.carrying())
        comparing = FakeComparing(self.bench, self.stream, self.clock_ms, self.carrying())
        return preview_promotion(edges, comparing, request, who="ann", why="to see", watcher=Silent())

    def launch_promotion(self, preview: str, **how: Any) -> Steps:
        self.history.append(Approved(f"run-{self.launched + 1}", preview))
        return self.launch("promote", partial(self.promoted, preview), **how)

    def promoted(self, preview: str) -> Any:
        edges = FakeEdges(self.bench, self.stream, self.clock_ms, self.carrying())
        return carry_promotion(edges, begin_approved(edges, preview, by="bob"))

    def promote(self) -> None:
        """Shown, and approved of at once or after something came between; carried some effects further."""
        shown = self.show_a_promotion()
        if shown is None:
            return
        if self.random.random() < 0.6:
            self.something_between(shown)
        if not self.busy:
            self.launch_promotion(shown.plan.plan_id)

    def promote_later(self) -> None:
        """One that was shown a while ago, done or not."""
        if self.offered and not self.busy:
            self.ops["promoted later"] += 1
            self.launch_promotion(self.random.choice(self.offered).plan.plan_id)

    def promote_and_take_back(self) -> None:
        shown = self.show_a_promotion()
        if shown is None:
            return
        if self.random.random() < 0.3:
            self.something_between(shown)
        done = self.launch_promotion(shown.plan.plan_id, far=True)
        if done.error is not None:
            return
        if self.random.random() < 0.6:
            self.something_between(shown)
        if not self.busy:
            self.launch_undo(None, done.result.plan_id)

    def something_between(self, shown: PromotionPreview) -> None:
        meant = self.random.choice(shown.promotion.ids)
        action = self.random.choice(list(HeldAction))
        between: list[tuple[str, Callable[[], Any]]] = [
            ("more comes", partial(self.more_comes, meant)),
            ("an ingest", self.all_there_is),
            ("sent again", partial(self.sent_again_and_read, meant)),
            ("a decision", partial(self.launch_decision, action, Selection(ids=(meant,)), far=True)),
            ("expectations", self.expectations_change),
            ("a redrive", partial(self.put_right_and_redriven, meant)),
            ("a definition", self.another_definition),
            ("retention", self.retention),
            ("an election", self.truncated),
            ("a rewind", partial(self.start_rewind, Target("earliest"), True, far=True)),
            ("maintenance", self.maintained),
        ]
        what, call = self.random.choice(between)
        self.ops[f"beside a promotion: {what}"] += 1
        call()

    def put_right_and_redriven(self, waveform_id: str) -> None:
        """By somebody else, who found it held."""
        if waveform_id in self.failing and not self.runs:
            self.failing.discard(waveform_id)
            self.history.append(GateSays(waveform_id, refuses=False))
        self.launch_decision(HeldAction.REDRIVE, Selection(ids=(waveform_id,)), far=True)

    def sent_again_and_read(self, waveform_id: str) -> None:
        self.send_again(waveform_id)
        self.all_there_is()

    def another_definition(self) -> None:
        self.set_limits(max_chunks=self.stream.limits.max_chunks + 1)
        self.history.append(Declared())

    def maintained(self) -> None:
        edges = FakeEdges(self.bench, self.stream, self.clock_ms, self.carrying())
        self.launch("maintain", partial(maintain, edges, most=self.random.choice([1, 3])), far=True)
