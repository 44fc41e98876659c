"""Undo in the protocol machine: of the newest head, or of a batch that is named; stopped anywhere.

What it may touch is worked out here from what the operation did that it takes back.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.domain.operating_machine import OperatingMachine
from tests.domain.producing_machine import pick
from tests.domain.running_machine import mostly_far
from tests.fakes.faults import under_way
from wavestitch.batch.held_decision import HeldPreview, carry_out
from wavestitch.batch.rewind import Rewind, apply_rewind
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.position import Head


class UndoingMachine(OperatingMachine):
    """`undoing`: by run, the batch that it takes back; empty where that is no batch."""

    def __init__(self) -> None:
        super().__init__()
        self.undoing: dict[str, str] = {}

    @precondition(lambda self: not self.busy and self.bench.tables.snapshots)
    @rule(which=pick, of_a_batch=st.booleans(), until=mostly_far)
    def undo(self, which: int, of_a_batch: bool, until: str) -> None:
        plans = [head.plan_id for head in self.bench.tables.snapshots if head.plan_id]
        named = plans[which % len(plans)] if of_a_batch and plans else None
        self.launch("undo", partial(self.take_back, named), until, plans_again=True)

    def take_back(self, plan_id: str | None) -> Any:
        edges = self.edges()
        try:
            stages = committed_stages(edges, plan_id)
        except BadInput as unknown:
            # Another engine has expired its head, and its history row is gone.
            raise Refused("nobody knows that batch any more") from unknown
        self.undoing[under_way()] = next((s.plan.plan_id for s in stages if hasattr(s, "plan")), "")
        found = plan_undo(edges, stages, who="test", why="to see")
        if isinstance(found, Rewind):
            self.rewinding[under_way()] = frozenset(found.moves)
            tables: dict[str, Any] = {"log": self.bench.log, "tables": self.bench.tables}
            return apply_rewind(self.stream, found, accept_skip=False, **tables)
        assert isinstance(found, HeldPreview), "nothing is promoted here"
        return carry_out(edges, found.plan)

    def taken_back(self, head: Head, before: list[Head]) -> str:
        """What this head of an undo touches that the batch did not, or leaves; empty where it is its opposite."""
        plan = self.bench.plans.get(self.undoing.get(under_way(), ""))
        if plan is None:
            return ""
        if plan.choice is None:
            stood = {p: at.next_offset for p, at in before[-1].positions.items()}
            wanted = stood | {r.partition: r.start for r in plan.ranges}
            now = {p: at.next_offset for p, at in head.positions.items()}
            return "" if now == wanted else f"undo: of {plan.plan_id[:8]}, and the head stands at {now}, not {wanted}"
        done = next((h for h in before if h.plan_id == plan.plan_id), None)
        rows = self.bench.tables.held_rows()
        changed = {r.held.key for r in rows if done is not None and r.held.decision == done.decision}
        now_changed = {r.held.key for r in rows if r.held.decision == head.decision}
        if done is None or changed == now_changed:
            return ""
        return f"undo: of {plan.plan_id[:8]} touches {sorted(map(repr, now_changed ^ changed))} more or less than that"
