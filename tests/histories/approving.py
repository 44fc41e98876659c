"""What operators of a random history are shown, and approve of later: meanwhile more comes of what they were shown, or
the stream's definition changes. Judges nothing.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from tests.fakes.batch import FakeEdges
from tests.histories.approval_events import Approved, Declared, Shown
from tests.histories.racing import Racing
from wavestitch.batch.carry import Carried, How, carry_through
from wavestitch.batch.held_approval import begin_approved, preview_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.contracts.batch_stages import HELD
from wavestitch.contracts.held_choice import HeldAction

SHARE, OFTEN = 0.2, 0.05
"""Of all histories so many have approvals in them; in those one comes after so many acts."""


class Approving(Racing):
    """`chance`: the randomness of approvals, apart, so that the other histories stay as they are."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.chance = random.Random(f"approving {seed}")
        self.approves = self.chance.random() < SHARE

    def something_more(self) -> None:
        if self.approves and self.chance.random() < OFTEN:
            self.random, drawn = self.chance, self.random
            self.approved_later()
            self.random = drawn

    def approved_later(self, waveform_id: str = "") -> None:
        """Of one waveform, or of one of those that are held."""
        ids = self.held_ids()
        if self.busy or not ids:
            return
        meant = waveform_id or self.random.choice(ids)
        action = self.random.choice([HeldAction.REDRIVE, HeldAction.ACCEPT, HeldAction.DISCARD, HeldAction.DISCARD])
        asked = self.launch("held: shown", partial(self.preview, action, meant), far=True)
        if asked.error is not None:
            return
        self.history.append(Shown(asked.result, (meant,)))
        when = self.random.choice(["before", "while", "definition", "nothing"])
        self.ops[f"approved: {when}"] += 1
        if when == "before":
            self.more_comes(meant)
        elif when == "definition":
            self.set_limits(max_chunks=self.stream.limits.max_chunks + 1)
            self.history.append(Declared())
        self.history.append(Approved(f"run-{self.launched + 1}", asked.result))
        run = self.launch("held: approved", partial(self.approve, asked.result), now=0)
        if when == "while":
            self.to_its_plan(run)
            self.more_comes(meant)
        self.step(run, 1000)

    def more_comes(self, waveform_id: str) -> None:
        letters = [one for one in self.sent if self.id_of(one) == waveform_id]
        if letters:
            self.send(self.another(self.random.choice(letters)))
            self.all_there_is()

    def preview(self, action: HeldAction, waveform_id: str) -> str:
        edges = FakeEdges(self.bench, self.stream, self.clock_ms, self.carrying())
        found = preview_held(edges, action, Selection(ids=(waveform_id,)), who="ann", why="to see")
        return found.plan.plan_id

    def approve(self, preview: str) -> Any:
        edges = FakeEdges(self.bench, self.stream, self.clock_ms, self.carrying())
        plan = begin_approved(edges, preview, by="bob")
        return carry_through(HELD, edges, Carried(plan.plan_id), How("accept" if plan.accepts else "stop", "to see"))
