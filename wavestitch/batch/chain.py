"""A batch among the batches of its backfill: each publishes after those before it, and knows what they read and left.

Decides nothing itself: `decide` is handed what is known. Keeps I2 and I3 over the cuts of a backfill: of two copies of
which different batches have read one each, none is taken because nobody looked at the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from wavestitch.batch.edges import Edges
from wavestitch.batch.history import find_committed, history_of
from wavestitch.batch.reassemble import Elsewhere, Landed
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.decided import Decision
from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.seams import Parts, copies_elsewhere, parts_of


def stand_behind(edges: Edges, plan: Plan) -> None:
    """Raises `Transient` unless all batches before it are finished. The last one was no sooner than those before it."""
    for plan_id in plan.after[-1:]:
        if find_committed(history_of(edges), plan_id) is None:
            raise Transient(
                f"batch {plan.plan_id[:16]} of stream {edges.name} comes after batch {plan_id[:16]} of the same "
                "backfill, which is not finished: carry that one through first (in Airflow, clear its failed tasks; "
                f"`wavestitch run {edges.name} --plan {plan_id}`), then this one again; or backfill the interval again",
                before=plan_id,
            )


def known_elsewhere(edges: Edges, plan: Plan, landed: Landed) -> Elsewhere:
    """What the batches before it have read and left of the waveforms that it has read, one batch after the other."""
    stand_behind(edges, plan)
    return _elsewhere(plan, landed, (edges.parts(plan_id) for plan_id in plan.after))


def kept_elsewhere(edges: Edges, plan: Plan, landed: Landed) -> Elsewhere:
    """The same as far as it was kept by now: enough to stitch by, since whoever publishes asks again."""
    return _elsewhere(plan, landed, _kept(edges, plan))


def _elsewhere(plan: Plan, landed: Landed, earlier: Iterable[Parts]) -> Elsewhere:
    ids = frozenset(ChunkTable.of(landed.chunks).ids.to_pylist()) if plan.after else frozenset()
    return copies_elsewhere(earlier, ids)


def _kept(edges: Edges, plan: Plan) -> Iterator[Parts]:
    for plan_id in plan.after:
        with suppress(BadInput):
            yield edges.parts(plan_id)


def keep_parts(edges: Edges, plan: Plan, decision: Decision) -> None:
    """Before the commit, so that whatever is finished says what it left."""
    if plan.scope is not None:
        edges.keep_parts(parts_of(plan, decision))
