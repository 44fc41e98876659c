"""That a batch stands at a closed gate is a fact of the stream: a head names it, by the compare-and-set of all heads.

What its folder says of the gate tells what was stopped, and lies where a disk may be lost or another folder set in its
place: then the head still bars whoever would go past. Accepted, parked or fenced, the batch is left out by the head
that does so (`Head.next`); given up, by one of its own. Publishes nothing and moves no position. Keeps I8.
"""

from __future__ import annotations

from collections.abc import Callable

from wavestitch.batch.commit_offsets import look_at_group
from wavestitch.contracts.commit_tries import CommitTries
from wavestitch.contracts.errors import Fenced, StateUnknown
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.ports import CommitConflict, Log, Tables
from wavestitch.contracts.position import AtGate, Head, HeadKind
from wavestitch.contracts.protocol import check_fence
from wavestitch.contracts.stream import Stream

_TRIES = 10


def stand_at_gate(plan: Plan, *, log: Log, tables: Tables) -> None:
    """Let the head name a batch whose gate has closed, unless it is fenced: then it bars nobody."""

    def named(head: Head) -> Head | None:
        if any(b.plan_id == plan.plan_id for b in head.at_gate):
            return None
        try:
            check_fence(plan, head, base_in_ancestry=True)
        except Fenced:
            return None
        at_gate = (*head.at_gate, AtGate(plan.plan_id, plan.moves_positions))
        return head.next(kind=HeadKind.GATE, at_gate=at_gate, note=f"the gate closed on batch {plan.plan_id[:16]}")

    _commit(plan.stream, named, log=lambda: log, tables=tables)


def leave_gate(stream: Stream, plan_id: str, *, log: Callable[[], Log], tables: Tables, note: str) -> bool:
    """Let no head name this batch any more; says whether one did. `log`: needed only then."""

    def left(head: Head) -> Head | None:
        at_gate = tuple(b for b in head.at_gate if b.plan_id != plan_id)
        return None if at_gate == head.at_gate else head.next(kind=HeadKind.GATE, at_gate=at_gate, note=note)

    return _commit(stream, left, log=log, tables=tables)


def _commit(stream: Stream, change: Callable[[Head], Head | None], *, log: Callable[[], Log], tables: Tables) -> bool:
    """Whether the newest head was changed by this; an outcome that is not known is looked up."""
    tried = False
    tries = CommitTries(
        _TRIES, f"the head of stream {stream.name} changed while it named a batch at its gate; try again"
    )
    while True:
        head = tables.head()
        if head is None or change(head) is None:
            return tried
        # It moves no position, so its number could be taken for that of a head which a catalog that was set back lost.
        head, _, _ = look_at_group(stream, log=log(), tables=tables)
        new = change(head)
        try:
            if new is not None:
                tables.commit(head, new, [])
                return True
        except (CommitConflict, StateUnknown) as error:
            tried |= isinstance(error, StateUnknown)
            tries.failed(error)
