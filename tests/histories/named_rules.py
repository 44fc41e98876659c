"""What a backfill names as gone was not read by a batch that holds all it does not publish, as far as its row in the
history says so: somebody would look for it, and might send it again.
"""

from __future__ import annotations

from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import (
    Committed,
    Coordinate,
    Event,
    Looked,
    LostOffset,
    Planned,
    Recorded,
    Started,
    Truncated,
    Where,
)
from tests.histories.gone_rules import ACCEPTED
from tests.histories.interval_events import Backfilled
from tests.histories.table_events import HistoryLost


class NamedRules(Rule):
    """`noted`: by number and decision of a head, the partitions and offsets of which its row says when waveforms start.
    `accepted`: the newest head with which somebody accepted that something is missing: what was read before that
    counts as held no more. `began`: by run that backfills, where it was shown each partition to begin when it looked
    first; `sure`: what was held when it began. `doubted`: partitions whose log was ever cut off, or has lost anything.
    """

    hears = (Looked,)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.noted: dict[tuple[int, str], set[tuple[int, int]]] = {}
        self.accepted = 0
        self.began: dict[str, dict[int, int]] = {}
        self.sure: dict[str, set[Coordinate]] = {}
        self.doubted: set[Where] = set()

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Started() if event.what.startswith("backfill"):
                self.began[event.run], self.sure[event.run] = {}, self._held()
            case Looked(what="topic") if event.run in self.began:
                began = self.began[event.run]
                for (topic_id, p), at in self.ledger.log_start.items():
                    if topic_id == self.ledger.topic_id:
                        began[p] = min(at, began.get(p, at))
            case Recorded():
                found = {(p, o) for p, start, end in event.starts for o in range(start, end)}
                self.noted[event.sequence, event.decision] = found
            case HistoryLost():
                self.noted = {row: noted for row, noted in self.noted.items() if row[0] not in event.sequences}
                self.sure = {}  # of who backfills now nobody knows what they found
            case Truncated() | LostOffset():
                self.doubted.add((event.topic_id, event.partition))
            case Committed() if ACCEPTED in event.note:
                self.accepted = max(self.accepted, event.sequence)
            case Backfilled() if event.first in self.ledger.plans:
                plan = self.ledger.plans[event.first]
                self._named(event, plan.run, plan, plan.base_sequence)
            case Backfilled(first="") if before is not None:
                self._named(event, event.run, before, before.sequence)

    def _held(self) -> set[Coordinate]:
        """Of a catalog that was lost or set back the history has rows that may hide those of today's heads."""
        if self.ledger.lost:
            return set()
        return {
            c
            for head in self.ledger.heads
            if head.kind == "ingest" and head.sequence > self.accepted
            for c in self.ledger.read_by.get((head.plan_id, head.run), ())
            if c[1:] in self.noted.get((head.sequence, head.decision), ())
        }

    def _named(self, event: Backfilled, run: str, stands: Planned | Committed, number: int) -> None:
        """`stands`: what it was planned on, head `number`, or that itself, where it found nothing to read."""
        heads = [head for head in self.ledger.heads if head.sequence >= number]
        skipped = {(head.topic_id, p, o) for head in heads for p, a, b in head.skipped for o in range(a, b)}
        began = self.began.get(run, {})
        named = {(stands.topic_id, p, o) for p, a, b in event.lost for o in range(a, min(b, began.get(p, 0)))}
        held = self.sure.get(run, set()) & self._held() & named - skipped
        untrue = {c for c in held if c[:2] not in self.doubted and c[2] < stands.positions.get(c[1], 0)}
        if untrue:
            self.case.say(Kind.UNTRUE, "named as gone by a backfill, and a batch holds it", at=sorted(untrue))
