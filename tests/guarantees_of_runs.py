"""Guarantees about what runs do beside each other: the group comes last, a second run changes nothing, a stale one does
not commit.
"""

from __future__ import annotations

from typing import Any

from tests.guarantees import REWINDS, Sight, furthest


class OffsetsLast:
    """I4: an offset of ours in the group never passes the furthest position that a head ever had."""

    def check(self, sight: Sight) -> None:
        far = furthest(sight.heads, sight.topic_id)
        for p, (offset, metadata) in sight.group.items():
            if metadata.startswith("wavestitch/"):
                assert offset <= far.get(p, 0), (
                    f"I4: the group stands at {offset} on partition {p}, no head beyond {far.get(p)}"
                )


class Idempotent:
    """I6: carrying a finished plan through again leaves the same tables."""

    def check(self, before: Sight, after: Sight, *, ended: BaseException | None = None) -> None:
        assert ended is None, f"I6: a finished plan, carried through again, ended with {ended!r}"
        for what in ("heads", "published", "held"):
            assert list(getattr(before, what)) == list(getattr(after, what)), (
                f"I6: carried through again, and {what} changed"
            )


class Fenced:
    """I7: a run commits only on what it was planned on, once, and does no more than its kind may.

    `settles`: the catalog was lost, set back or exchanged, so that a head which settles that passes every generation
    that the group has shown.
    """

    def __init__(self) -> None:
        self.settles = False

    def check(self, sight: Sight) -> None:
        done: dict[str, int] = {}
        for n, head in enumerate(sight.heads):
            before = sight.heads[n - 1] if n else None
            if before is not None:
                anew = head.kind == "rebuilt"  # beyond all heads that it stands for, whatever they were
                assert head.sequence == before.sequence + 1 or (anew and head.sequence > before.sequence), (
                    f"I7: head {head.sequence} follows {before.sequence}"
                )
                if anew:
                    assert head.generation > before.generation, f"I7: generation {head.generation} at {head.sequence}"
                    continue
                moved = head.kind in REWINDS
                newer = head.generation > before.generation if moved and self.settles else False
                assert newer or head.generation == before.generation + moved, (
                    f"I7: generation {head.generation} at {head.sequence}"
                )
            if head.plan_id:
                assert head.plan_id not in done, (
                    f"I7: plan {head.plan_id[:8]} became heads {done[head.plan_id]} and {head.sequence}"
                )
                done[head.plan_id] = head.sequence
                self._batch(sight, head, before)

    def _batch(self, sight: Sight, head: Any, before: Any) -> None:
        plan = sight.plans.get(head.plan_id)
        if plan is None or before is None:
            return
        missed = [h for h in sight.heads if plan.base_sequence < h.sequence < head.sequence]
        assert not [h for h in missed if h.kind in (*REWINDS, "rebuilt")], (
            f"I7: head {head.sequence} was planned before a rewind"
        )
        was = {p: at.next_offset for p, at in before.positions.items()}
        now = {p: at.next_offset for p, at in head.positions.items()}
        if head.kind != "ingest":
            assert was == now, f"I7: a {head.kind} moved the positions from {was} to {now}"
            holds = [r for r in sight.held if r.decision == head.decision]
            assert not holds or head.kind in ("held", "promote"), f"I7: a {head.kind} holds chunks"
            return
        reach = {r.partition: (r.start, r.end) for r in plan.ranges}
        for p, end in now.items():
            start = was.get(p, 0)
            assert reach.get(p, (start, start)) == (start, end), (
                f"I7: partition {p} moved from {start} to {end}, read {reach.get(p)}"
            )
