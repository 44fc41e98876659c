"""What people are shown in the protocol machine, and approve of or reject later: rewinds and held decisions.

Anything may come in between. What is applied is exactly what was shown: those offsets, in the generation after, leaving
out no more; those chunks of those waveforms. Of what was rejected nothing is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.domain.producing_machine import pick
from tests.domain.running_machine import mostly_far
from tests.domain.undoing_machine import UndoingMachine
from tests.fakes.faults import under_way
from wavestitch.batch.held_approval import begin_approved, preview_held
from wavestitch.batch.held_decision import carry_out
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.rewind_preview import apply_preview, preview_rewind
from wavestitch.contracts.held import HeldKey
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.position import Head
from wavestitch.contracts.rewind_preview import RewindPreview

WHERE_TO = ("earliest", "latest", "head", "previous", "shift:-1", "0:earliest", "0:latest", "start-over")
SHOWN = re.compile(r"shown (\d+)")


@dataclass
class Shown:
    """One preview. `found`: of a rewind; of a decision, the plan's id. `held`: of a decision, what was held then of its
    waveforms. `done`: by which head, if any."""

    found: RewindPreview | str
    ids: tuple[str, ...] = ()
    held: frozenset[HeldKey] = frozenset()
    rejected: bool = False
    done: int = 0


class ApprovingMachine(UndoingMachine):
    """`shown`: all that was ever shown, by the number that its reason names."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: dict[int, Shown] = {}

    @precondition(lambda self: not self.busy and self.bench.plans and len(self.shown) < 6)
    @rule(to=st.sampled_from(WHERE_TO))
    def show_a_rewind(self, to: str) -> None:
        self.launch("shown", partial(self.preview_rewind, to, len(self.shown) + 1), "end")

    def preview_rewind(self, to: str, number: int) -> Any:
        self.shown[number] = Shown(preview_rewind(self.edges(), to, None, who="ann", why=f"shown {number}"))

    @precondition(lambda self: not self.busy and self.held_ids() and len(self.shown) < 6)
    @rule(which=pick)
    def show_a_decision(self, which: int) -> None:
        ids = self.held_ids()
        self.launch("shown", partial(self.preview_decision, ids[which % len(ids)], which, len(self.shown) + 1), "end")

    def preview_decision(self, waveform_id: str, which: int, number: int) -> Any:
        rows = [row.held for row in self.bench.tables.held_rows() if row.held.chunk.waveform_id == waveform_id]
        action = self.what_fits({row.reason.value for row in rows[-1:]}, which)
        how: dict[str, Any] = {"who": "ann", "why": f"shown {number}", "pick": "first" * (action is HeldAction.PICK)}
        found = preview_held(self.edges(), action, Selection(ids=(waveform_id,)), **how)
        self.shown[number] = Shown(found.plan.plan_id, (waveform_id,), frozenset(row.key for row in rows))

    @precondition(lambda self: not self.busy and self.shown)
    @rule(which=pick, approve=st.sampled_from([True, True, True, False]), until=mostly_far)
    def answer_what_was_shown(self, which: int, approve: bool, until: str) -> None:
        """The newest, mostly, and perhaps once more."""
        number = len(self.shown) - (which % 3 if which % 2 else 0)
        shown = self.shown.get(number)
        if shown is None or shown.rejected:
            return
        if not approve:
            shown.rejected = not shown.done and not any(run.what == f"approval {number}" for run in self.runs)
            return
        self.launch(f"approval {number}", partial(self.approve, shown), until, plans_again=True, carries=True)

    def approve(self, shown: Shown) -> Any:
        if isinstance(shown.found, RewindPreview):
            self.rewinding[under_way()] = None if shown.found.whole else frozenset(shown.found.targets)
            return apply_preview(self.edges(), shown.found, by="bob", accept_skip=True, accept_missing=True)
        return carry_out(self.edges(), begin_approved(self.edges(), shown.found, by="bob"))

    # what must hold

    def not_as_shown(self, head: Head, before: Head | None) -> str:
        """What this head does that nobody was shown; empty where it does exactly that, or was never shown."""
        plan = self.bench.plans.get(head.plan_id)
        said = SHOWN.search(head.note if plan is None or plan.choice is None else plan.choice.why)
        if said is None:
            return ""
        number, shown = int(said[1]), self.shown.get(int(said[1]))
        if shown is None or shown.rejected or shown.done:
            state = "shown to nobody" if shown is None else "rejected" if shown.rejected else "done before"
            return f"preview: {number} was {state}, and head {head.sequence} does it"
        shown.done = head.sequence
        if isinstance(shown.found, RewindPreview):
            return self._elsewhere(shown.found, head, before)
        return self._others(shown, head)

    @staticmethod
    def _elsewhere(found: RewindPreview, head: Head, before: Head | None) -> str:
        stood = {} if before is None else {p: at.next_offset for p, at in before.positions.items()}
        now = {p: at.next_offset for p, at in head.positions.items()}
        if now != stood | found.targets:
            return f"preview: head {head.sequence} stands at {now}, shown were {found.targets} beside {stood}"
        if not found.settles and head.generation != found.generation + 1:
            return f"preview: head {head.sequence} is of generation {head.generation}, shown was {found.generation}"
        skipped = {(r.partition, o) for r in head.skipped for o in range(r.start, r.end)}
        known = [*found.skipped, *(() if before is None else before.skipped)]
        more = skipped - {(r.partition, o) for r in known for o in range(r.start, r.end)}
        return f"preview: head {head.sequence} also skips {sorted(more)}" if more else ""

    def _others(self, shown: Shown, head: Head) -> str:
        changed = {r.held for r in self.bench.tables.held_rows() if r.held.decision == head.decision}
        others = [h.key for h in changed if h.key not in shown.held]
        rows = [row for sequence, row in self.bench.tables.rows if sequence == head.sequence]
        places = {key[0] for key in shown.held}
        unseen = [
            (topic_id, chunk.partition, chunk.offset)
            for row in rows
            for topic_id, chunk in zip(row.topic_ids, row.chunks, strict=True)
            if (topic_id, chunk.partition, chunk.offset) not in places
        ]
        if others or unseen or {row.waveform_id for row in rows} - set(shown.ids):
            return f"preview: head {head.sequence} takes up {others or unseen}, which nobody was shown"
        return ""
