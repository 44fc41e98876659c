"""The watermark: as far as the data of all partitions have come that are not idle, and no further; never back, but
where a clock was ahead. What waits for the rest of its waveform waits by it.
"""

from __future__ import annotations

from tests.histories.anomaly import Kind
from tests.histories.case import Rule
from tests.histories.events import Committed, Event, Planned


class WatermarkRules(Rule):
    def take(self, event: Event, before: Committed | None) -> None:
        if not isinstance(event, Committed) or event.watermark_ms is None or before is None:
            return
        if event.kind in ("first", "rebuilt") or before.watermark_ms is None:
            return
        plan = self.ledger.plans.get(event.plan_id)
        wanted = before.watermark_ms
        if event.kind == "ingest" and plan is not None:
            self._seen(event, before)
            wanted = _reached(event, plan, before)
        if event.watermark_ms != wanted:
            what = (
                f"head {event.sequence} ({event.kind}) has watermark {event.watermark_ms}, and the data are at {wanted}"
            )
            self.case.say(Kind.UNTRUE, what)

    def _seen(self, head: Committed, before: Committed) -> None:
        """Of each partition that was read, the time of its last record; of the others, as it was."""
        last: dict[int, dict[str, int]] = {}
        for (plan_id, run), places in self.ledger.read_by.items():
            if plan_id == head.plan_id:
                for _, p, offset in places:
                    last.setdefault(p, {})[run] = max(offset, last.get(p, {}).get(run, 0))
        records = self.ledger.records
        for p in head.positions:
            read = {
                records[c].timestamp_ms
                for c in self.ledger.reads.get(head.plan_id, ())
                if c[1] == p and c[2] in last[p].values()
            }
            known = read or {before.seen_ms.get(p)}
            if head.seen_ms.get(p) not in known:
                what = f"head {head.sequence} says that the last record was of {head.seen_ms.get(p)}"
                self.case.say(Kind.UNTRUE, what, at=[(head.topic_id, p, head.positions[p] - 1)])


def _reached(head: Committed, plan: Planned, before: Committed) -> int:
    """A clock that was ahead is put right by one that is not, as far as records allow."""
    was, clock = before.watermark_ms or 0, plan.clock_ms
    was = min(was, max(clock, *before.seen_ms.values(), 0))
    seen = head.seen_ms.values()
    if not seen:
        return was
    asleep = clock - plan.idle_ms
    active = [at for at in seen if at >= asleep]
    return max(was, min(min(active, default=asleep), clock))
