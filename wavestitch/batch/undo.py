"""Undo: the stages of an operation that was committed, walked backwards to the first that has an opposite.

The opposite is planned as any rewind and any decision is: shown first, previewed stage by stage, refused where it would
skip. What was published stays published (I3): undoing a batch means that its offsets are read again, and recognised.
"""

from __future__ import annotations

from collections.abc import Sequence

from wavestitch.batch.edges import Edges
from wavestitch.batch.held_decision import HeldPreview, plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.rewind import Rewind, Target, plan_rewind
from wavestitch.batch.steps import finished
from wavestitch.contracts.batch_stages import CommitHead, ShowHead, stages_of
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.stages import RewindTo, Stage, opposites


def committed_stages(edges: Edges, plan_id: str | None = None) -> tuple[Stage, ...]:
    """What the operation did that this plan is of, or that the newest head came from."""
    if plan_id is not None:
        if finished(edges, plan_id) is None:
            raise BadInput(
                f"batch {plan_id[:16]} of stream {edges.name} is not committed, so there is nothing to undo; "
                f"`wavestitch abandon {edges.name} --plan {plan_id} --why …` gives it up"
            )
        return _stages_of_plan(edges, plan_id)
    heads = edges.tables.heads()
    if not heads:
        raise Refused(f"stream {edges.name} has no head yet: there is nothing to undo")
    head = heads[0]
    if head.plan_id:
        return _stages_of_plan(edges, head.plan_id)
    if head.kind is HeadKind.MAINTENANCE:
        raise Refused(
            f"the newest head of stream {edges.name} is maintenance's ({head.note}), which cannot be undone; name the "
            "batch that is meant with --plan"
        )
    return CommitHead(heads[1] if len(heads) > 1 else None, head), ShowHead(head, {})


def _stages_of_plan(edges: Edges, plan_id: str) -> tuple[Stage, ...]:
    try:
        return stages_of(edges.plan(plan_id))
    except BadInput as gone:
        raise BadInput(
            f"{gone.message}. What it did is not known any more; `wavestitch rewind {edges.name} --to previous` (or to "
            f"an offset or a time) moves the positions, `wavestitch held {edges.name} restore` takes a discard back"
        ) from None


def plan_undo(edges: Edges, stages: Sequence[Stage], *, who: str, why: str) -> Rewind | HeldPreview:
    """The opposite of these stages; touches nothing. Raises `Refused` where they have none."""
    for found in opposites(stages):
        if isinstance(found, RewindTo):
            target = Target(offsets=dict(found.offsets))
            return plan_rewind(edges.stream, target, log=edges.log, tables=edges.tables, who=who, why=why)
        return plan_held(edges, found.action, Selection(ids=found.ids), who=who, why=why, everything=True)
    said = "; ".join(f"{s.name} {s.undone()}" for s in reversed(stages))
    raise Refused(f"stream {edges.name}: there is nothing to undo in this case ({said})")
