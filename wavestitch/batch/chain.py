"""A batch among the batches of its backfill: each reads, stitches and publishes after those before it are finished, and
knows what they read and left. So one that stands stops those behind it before they land anything.

Decides nothing itself: `decide` is handed what is known. Keeps I2 and I3 over the cuts of a backfill: of two copies of
which different batches have read one each, none is taken because nobody looked at the other.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from wavestitch.batch.edges import Edges
from wavestitch.batch.history import find_committed, history_of
from wavestitch.batch.reassemble import Elsewhere, Landed
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.decided import Decision
from wavestitch.contracts.errors import Fenced, Transient
from wavestitch.contracts.parts_index import index_of
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.seams import copies_elsewhere, parts_of


def stand_behind(edges: Edges, plan: Plan) -> None:
    """Raises `Transient` unless all batches before it are finished, and `Fenced` where the first that is not was
    abandoned. `before`: that one; `ahead`: how many places it is before this."""
    history, after = history_of(edges), plan.after
    # The last one was no sooner than those before it.
    if not after or find_committed(history, after[-1]) is not None:
        return
    first = bisect_left(after[:-1], True, key=lambda one: find_committed(history, one) is None)
    plan_id = after[first]
    behind = f"batch {plan.plan_id[:16]} of stream {edges.name} comes after batch {plan_id[:16]} of the same backfill"
    facts: dict[str, Any] = {"before": plan_id, "ahead": len(after) - first}
    try:
        edges.plan(plan_id)
    except Fenced as error:
        raise Fenced(
            f"{behind}, which nobody finishes any more: {error.message}. Backfill the interval again (in Airflow, "
            "clear the run's task `plan`), or intervals beside it",
            **facts,
        ) from None
    raise Transient(
        f"{behind}, which is not finished: carry that one through first (in Airflow, clear its failed tasks; "
        f"`wavestitch run {edges.name} --plan {plan_id}`), then this one again; or backfill the interval again",
        **facts,
    )


def known_elsewhere(edges: Edges, plan: Plan, landed: Landed) -> Elsewhere:
    """What the batches before it have read and left of the waveforms that it has read. Opens what the last of them
    knew of all, and of what they kept that alone which may have one of these waveforms."""
    stand_behind(edges, plan)
    if not plan.after:
        return {}
    ids = frozenset(ChunkTable.of(landed.chunks).ids.to_pylist())
    keepers = edges.parts_index(plan.after[-1]).keepers(ids)
    return copies_elsewhere((edges.parts(plan_id) for plan_id in keepers), ids)


def keep_parts(edges: Edges, plan: Plan, decision: Decision) -> None:
    """Before the commit, so that whatever is finished says what it left, and where those before it did."""
    if plan.scope is None:
        return
    before = [edges.parts_index(plan_id) for plan_id in plan.after[-1:]]
    parts = parts_of(plan, decision)
    edges.keep_parts(parts, index_of(parts, before))
