"""Which plans are finished, and what the history says of them. The one place where either is asked.

A plan is finished when a head of the table names it, or, once that head has expired, its row in the history. A crash
right after a commit leaves a head without a row: then the row that its batch kept stands for it, or the little that the
head itself tells. So whoever looks sees a whole history, and whoever writes repairs it. An authority for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wavestitch.contracts.batch_row import BatchRow, describe_head, rows_behind
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.ports import Tables
from wavestitch.contracts.position import Head

if TYPE_CHECKING:
    from wavestitch.batch.edges import Edges


@dataclass(frozen=True, slots=True)
class History:
    """A stream's. `kept`: the row that a batch kept for a decision before it committed it (`Staging.keep`), or None."""

    tables: Tables
    stream: str
    kept: Callable[[str], BatchRow | None]


@dataclass(frozen=True, slots=True)
class Committed:
    """The head that a batch became, and its row in the history. Where that head has expired, `head` is the newest."""

    head: Head
    row: BatchRow


def history_of(edges: Edges) -> History:
    return History(edges.tables, edges.name, edges.kept)


def find_committed(history: History, plan_id: str) -> Committed | None:
    """The head and history row of a plan that was committed before, and that the table still knows of."""
    # The rows first: a row is written after its head, so the head of one that is seen is seen, too, or has expired.
    rows = history.tables.batches(plan_id=plan_id)
    heads = history.tables.heads()
    head = next((h for h in heads if h.plan_id == plan_id), None)
    if head is not None:
        return Committed(head, next(iter(rows), None) or _row_of(history, head))
    of_heads = [describe_head(h, stream=history.stream) for h in heads] if rows else []
    # And those that came after it: the head that set it aside may have expired, too.
    later = history.tables.batches(since=min(r.sequence for r in rows)) if rows else []
    behind = rows_behind(heads[0].version, [*of_heads, *rows, *later]) if heads else []
    mine = [r for r in behind if r.plan_id == plan_id]
    return Committed(heads[0], mine[-1]) if mine else None


def missing_rows(history: History, *, since: int = 0) -> list[BatchRow]:
    """The rows that heads from number `since` on have not, oldest first."""
    heads = [h for h in history.tables.heads() if h.sequence >= since]
    known = history.tables.recorded(since=heads[-1].sequence) if heads else set()
    return [_row_of(history, h) for h in reversed(heads) if (h.sequence, h.decision) not in known]


def repair_history(history: History, *, since: int = 0, own: BatchRow | None = None) -> int:
    """Write the rows that are missing; returns how many. `own`: the row of a head that its batch has just committed."""
    rows = missing_rows(history, since=since)
    if own is not None:
        rows = [*(r for r in rows if (r.sequence, r.decision) != (own.sequence, own.decision)), own]
    if rows:
        history.tables.append_batches(rows)
    return len(rows)


def whole_history(history: History, *, since: int = 0, plan_id: str | None = None) -> list[BatchRow]:
    """The history for people, newest first, what is missing or damaged included, as far as its head or its batch tells;
    writes nothing. `plan_id`: of this one only."""
    rows = history.tables.shown_batches(since=since, plan_id=plan_id).rows
    known = {(r.sequence, r.decision) for r in rows}
    try:
        heads = history.tables.heads()
    except Refused:
        heads = ()  # somebody expired the head: the history is what is left to look at
    wanted = [h for h in heads if h.sequence >= since and plan_id in (None, h.plan_id)]
    rows += [_row_of(history, h) for h in wanted if (h.sequence, h.decision) not in known]
    return sorted(rows, key=lambda r: (r.sequence, r.committed_ms), reverse=True)


def _row_of(history: History, head: Head) -> BatchRow:
    kept = history.kept(head.decision) if head.decision else None
    return kept or describe_head(head, stream=history.stream)
