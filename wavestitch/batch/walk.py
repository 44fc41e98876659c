"""Carries out the stages that planning and rewinding consist of, one after another; or, for a preview, only notes them.

Whoever works such stages out hands them over as they come, since each may depend on what the one before it left: the
head. Preview and run are the same walk, and differ in `apply` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wavestitch.batch.commit_offsets import show_head
from wavestitch.contracts.batch_stages import CommitHead, KeepPlan, PutBack, RecordHistory, ShowHead
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.ports import Log, Tables
from wavestitch.contracts.position import Head
from wavestitch.contracts.stages import Stage
from wavestitch.contracts.stream import Stream


def _no_folder(plan: Plan) -> None:
    raise AssertionError(f"plan {plan.plan_id} has no folder where only heads are changed")


@dataclass
class Walk:
    """`stages`: those that were carried out, or with `apply=False` would be. `head`: the newest that one of them made,
    or would make. `begin`: keeps a plan."""

    stream: Stream
    log: Log
    tables: Tables
    begin: Callable[[Plan], None] = _no_folder
    apply: bool = True
    stages: list[Stage] = field(default_factory=list)
    head: Head | None = None

    def __call__(self, stage: Stage) -> None:
        """A stage that fails is not among the `stages`."""
        if self.apply:
            ACTS[type(stage)](self, stage)
        elif isinstance(stage, CommitHead):
            self.head = stage.head
        self.stages.append(stage)


def _record_history(walk: Walk, stage: RecordHistory) -> None:
    walk.tables.append_batches(stage.rows)


def _commit_head(walk: Walk, stage: CommitHead) -> None:
    if stage.remains is not None:
        walk.head = walk.tables.commit_rebuilt(stage.remains, stage.head)
    else:
        walk.head = walk.tables.commit(stage.base, stage.head, [])


def _show_head(walk: Walk, stage: ShowHead) -> None:
    head = stage.head if walk.head is None else walk.head
    show_head(walk.stream, head, stage.seen, log=walk.log, tables=walk.tables, moved=stage.moved)


def _keep_plan(walk: Walk, stage: KeepPlan) -> None:
    walk.begin(stage.plan)


def _put_back(walk: Walk, stage: PutBack) -> None:
    there = stage.promotion
    walk.head = walk.tables.put_back(
        stage.base, stage.head, of=stage.snapshot_id, ids=there.taken_out, instead_of=there.put_in
    )


ACTS: dict[type[Stage], Callable[[Walk, Any], None]] = {
    RecordHistory: _record_history,
    CommitHead: _commit_head,
    ShowHead: _show_head,
    KeepPlan: _keep_plan,
    PutBack: _put_back,
}
