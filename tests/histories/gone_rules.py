"""What the log has no more: a backfill of its interval names it, where nobody had read it before it went."""

from __future__ import annotations

from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import Committed, Coordinate, Event, Looked, Planned, Retained, Started, Truncated, Where
from tests.histories.interval_events import Backfilled
from tests.histories.interval_rules import piece_of_interval


class GoneRules(Rule):
    """`begins`: by run that backfills, where it was shown each partition to begin when it looked first. `owes`: by the
    first plan of a backfill, the records of its interval that were gone by then, and that nobody had read. `put_back`:
    partitions whose disks were; `passed`: by partition, the furthest position that retention has passed."""

    hears = (Looked,)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.begins: dict[str, dict[int, int]] = {}
        self.owes: dict[str, set[Coordinate]] = {}
        self.put_back: set[Where] = set()
        self.passed: dict[Where, int] = {}

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Started() if event.what.startswith("backfill"):
                self.begins[event.run] = {}
            case Looked(what="topic") if event.run in self.begins:
                shown = {p: at for (t, p), at in self.ledger.log_start.items() if t == self.ledger.topic_id}
                shown = {p: at for p, at in shown.items() if event.shows(p)}
                self.begins[event.run] = {p: min(at, self.begins[event.run].get(p, at)) for p, at in shown.items()}
            case Retained() if before is not None and before.topic_id == event.topic_id:
                stood = before.positions.get(event.partition, 0)
                if event.log_start >= stood:
                    where = event.topic_id, event.partition
                    self.passed[where] = max(stood, self.passed.get(where, 0))
            case Truncated(backup=True):
                self.put_back.add((event.topic_id, event.partition))
            case Planned() if event.scope is not None and not event.after and event.run in self.begins:
                self.owes[event.plan_id] = self._owed(event, event.scope)
            case Backfilled() if event.first in self.owes:
                # Of the topic that it was planned on, which may be gone by now.
                topic_id = self.ledger.plans[event.first].topic_id
                named = {(topic_id, p, o) for p, start, end in event.lost for o in range(start, end)}
                if silent := sorted(self.owes[event.first] - named):
                    what = "gone, read by nobody, and not named by a backfill of its interval"
                    self.case.say(Kind.UNEXPLAINED_GAP, what, at=silent)

    def _owed(self, plan: Planned, scope: tuple[int, int]) -> set[Coordinate]:
        read = {c for some in self.ledger.reads.values() for c in some}
        begins = self.begins[plan.run]
        return {
            c
            for c in self.ledger.records.keys() - read
            if c[0] == plan.topic_id
            and c[2] < begins.get(c[1], 0)
            and self.ledger.committed(c)
            and not self._unknown(plan, c)
            and piece_of_interval(self.ledger, c, scope) is not None
        }

    def _unknown(self, plan: Planned, c: Coordinate) -> bool:
        """Where retention has passed the position, too, or nothing but leader epochs tells of a disk that was put back,
        nobody knows that it was written anew (docs/guarantees.md)."""
        stood, where = plan.positions.get(c[1], 0), c[:2]
        passed = c[2] < stood <= self.begins[plan.run].get(c[1], 0) or c[2] < self.passed.get(where, 0)
        return passed or (where in self.put_back and not self.case.kept.is_another(where))
