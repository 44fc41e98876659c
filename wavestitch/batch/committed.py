"""Which plans are finished, and what the history must say of them. The one place where either is asked.

A plan is finished when a head of the table names it, or, once that head has expired, its row in the history. A crash
right after a commit leaves a head without a row: wherever the history is used, it is repaired first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wavestitch.contracts.batch_row import BatchRow, describe_head
from wavestitch.contracts.ports import Tables
from wavestitch.contracts.position import Head


@dataclass(frozen=True, slots=True)
class Committed:
    """The head that a batch became, and its row in the history, where that is known."""

    head: Head
    row: BatchRow | None


def find_committed(tables: Tables, plan_id: str) -> Committed | None:
    """The head or history row of a plan that was committed before."""
    head = next((h for h in tables.heads() if h.plan_id == plan_id), None)
    row = next(iter(tables.batches(plan_id=plan_id)), None)
    if head is not None:
        return Committed(head, row)
    newest = tables.head() if row is not None else None
    return Committed(newest, row) if newest is not None else None


def repair_history(tables: Tables, *, stream: str, kept: Callable[[str], BatchRow | None], now_ms: int) -> int:
    """Write the history rows that a crash right after a commit prevented; returns how many.

    `kept`: the row that the dead batch kept for a decision (`Staging.keep`), or None.
    """
    heads = tables.heads()
    known = tables.recorded(since=heads[-1].sequence) if heads else set()
    missing = [h for h in heads if (h.sequence, h.decision) not in known]
    rows = [kept(h.decision) or describe_head(h, stream=stream, committed_ms=now_ms) for h in reversed(missing)]
    if rows:
        tables.append_batches(rows)
    return len(rows)
