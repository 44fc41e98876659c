"""Whether a batch is under way: the question on which all of maintenance rests. Pure.

A batch is under way until its decision is committed, or it is abandoned on purpose, or it can never commit any more,
by the very rule that would fence it. A batch that was stopped (a closed gate, a kill) is under way like any other. What
cannot be read counts as under way: somebody else may be able to read it. Keeps I1 and I6.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from wavestitch.contracts.errors import Fenced
from wavestitch.contracts.maintenance import BatchFolder, BatchState
from wavestitch.contracts.position import Head
from wavestitch.contracts.protocol import check_fence, is_in_history


def judge_batch(
    folder: BatchFolder, *, committed: Collection[str], heads: Sequence[Head], closed: Collection[str] = ()
) -> BatchState:
    """`committed`: ids of committed plans, from heads and history. `heads`: main's ancestry, newest first. `closed`:
    plans at a closed gate, which somebody has to decide about even where their base has left the ancestry."""
    if folder.plan_id in committed:
        return BatchState.COMMITTED
    if folder.abandoned:
        return BatchState.ABANDONED
    plan = folder.plan
    if plan is None:
        return BatchState.UNREADABLE
    if not heads:
        return BatchState.UNDER_WAY
    try:
        check_fence(plan, heads[0], base_in_ancestry=plan.plan_id in closed or is_in_history(plan, heads))
    except Fenced:
        return BatchState.FENCED
    return BatchState.UNDER_WAY


def may_commit(state: BatchState) -> bool:
    return state in (BatchState.UNDER_WAY, BatchState.UNREADABLE)
