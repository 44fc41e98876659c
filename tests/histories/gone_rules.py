"""What the log has no more: a backfill of its interval names it, where nobody had read it before it went, or who had
read it held nothing, and it was cut off since.
"""

from __future__ import annotations

from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import (
    Committed,
    Coordinate,
    Event,
    Looked,
    Planned,
    Retained,
    Started,
    Truncated,
    Where,
)
from tests.histories.interval_events import Backfilled
from tests.histories.interval_rules import piece_of_interval
from tests.histories.table_events import CatalogSetBack, HistoryLost

ACCEPTED = "accepted as missing: "
"""In the words of a head: somebody went on without what was missing."""


class GoneRules(Rule):
    """`begins`: by run that backfills, where it was shown each partition to begin when it looked first. `owes`: by the
    first plan of a backfill, the records of its interval that were gone by then, and that nobody had read. `cut`: by
    partition, from where on it was ever written anew; `put_back`: of those whose disks were; `passed`: the furthest
    position that retention has passed. `kept`: what a committed batch has read that holds all it does not publish, or
    was durable by its commit, with the first such head; `missing`: of that, what was not durable any more under a head
    with which somebody accepted that something is missing. `left`: what others have read and left, with the head and
    its leader epoch; `since`: when it was cut off."""

    hears = (Looked,)

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.begins: dict[str, dict[int, int]] = {}
        self.owes: dict[str, set[Coordinate]] = {}
        self.cut: dict[Where, int] = {}
        self.put_back: dict[Where, int] = {}
        self.kept: dict[Coordinate, int] = {}
        self.missing: dict[Coordinate, int] = {}
        self.left: dict[Coordinate, tuple[int, int]] = {}
        self.since: dict[Coordinate, int] = {}
        self.passed: dict[Where, int] = {}

    def take(self, event: Event, before: Committed | None) -> None:
        if isinstance(event, Committed) and before is not None:  # which a backup may have put there
            for p in before.positions:
                self._passes(before, p, self.ledger.log_start.get((before.topic_id, p), 0))
        match event:
            case Started() if event.what.startswith("backfill"):
                self.begins[event.run] = {}
            case Looked(what="topic") if event.run in self.begins:
                shown = {p: at for (t, p), at in self.ledger.log_start.items() if t == self.ledger.topic_id}
                shown = {p: at for p, at in shown.items() if event.shows(p)}
                self.begins[event.run] = {p: min(at, self.begins[event.run].get(p, at)) for p, at in shown.items()}
            case Retained() if before is not None and before.topic_id == event.topic_id:
                self._passes(before, event.partition, event.log_start)
            case Truncated():
                where = event.topic_id, event.partition
                for ends in (self.cut, self.put_back) if event.backup else (self.cut,):
                    ends[where] = min(event.end, ends.get(where, event.end))
                moved = self.ledger.moved
                self.kept = {moved.get(c, c): at for c, at in self.kept.items()}
                self.missing = {moved.get(c, c): at for c, at in self.missing.items()}
                self.left = {moved.get(c, c): at for c, at in self.left.items()}
                self.since |= dict.fromkeys(moved.values(), self.case.at)
            case Committed(kind="ingest" | "backfill" | "manual"):
                read = self.ledger.reads.get(event.plan_id, set())
                # What others have read and left is nobody's.
                kept = {c for c in read if event.kind == "ingest" or self.ledger.durable(c)}
                self.kept = dict.fromkeys(kept, event.sequence) | self.kept
                self.missing = {c: at for c, at in self.missing.items() if c not in kept}
                plan = self.ledger.plans.get(event.plan_id)
                # Who carries a plan once more has read what lies there by then, and nobody notes what was there before.
                mine = self.ledger.read_by.get((event.plan_id, event.run), read)
                for c in mine - kept if plan is not None else ():
                    self.left[c] = event.sequence, max(plan.epochs.get(c[1], 0), self.ledger.records[c].epoch)
            case Committed() if ACCEPTED in event.note:
                gone = {c for c in self.kept if not self.ledger.durable(c)}
                self.missing = dict.fromkeys(gone, event.sequence) | self.missing
            case HistoryLost():
                self.left = {c: at for c, at in self.left.items() if at[0] not in event.sequences}
                self.missing = {c: at for c, at in self.missing.items() if at not in event.sequences}
            case CatalogSetBack():
                self.left = {c: at for c, at in self.left.items() if at[0] <= event.sequence}
                self.kept = {c: at for c, at in self.kept.items() if at <= event.sequence}
                self.missing = {c: at for c, at in self.missing.items() if at <= event.sequence}
            case Planned() if event.scope is not None and not event.after and event.run in self.begins:
                self.owes[event.plan_id] = self._owed(event, event.run, event.scope) | self._cut_off(event, event.scope)
            case Backfilled() if event.first in self.owes:
                # Of the topic that it was planned on, which may be gone by now.
                self._named(event, self.owes[event.first], self.ledger.plans[event.first].topic_id)
            case Backfilled(first="") if event.run in self.begins and before is not None:
                self._named(event, self._owed(before, event.run, event.scope), before.topic_id)

    def _passes(self, head: Committed, partition: int, log_start: int) -> None:
        where, stood = (head.topic_id, partition), head.positions.get(partition, 0)
        if log_start >= stood:
            self.passed[where] = max(stood, self.passed.get(where, 0))

    def _named(self, event: Backfilled, owed: set[Coordinate], topic_id: str) -> None:
        named = {(topic_id, p, o) for p, start, end in event.lost for o in range(start, end)}
        there = named & self.ledger.readable()
        # Where a log was cut off, and nobody knows where, all of it may be meant.
        if untrue := sorted(c for c in there if c[:2] not in self.cut):
            self.case.say(Kind.UNTRUE, "named as gone by a backfill, and it is there", at=untrue)
        if silent := sorted(owed - named):
            what = "gone, read by nobody, and not named by a backfill of its interval"
            self.case.say(Kind.UNEXPLAINED_GAP, what, at=silent)

    def _owed(self, stands: Planned | Committed, run: str, scope: tuple[int, int]) -> set[Coordinate]:
        """`stands`: what the backfill was planned on, or the head, where it found nothing to read."""
        begins, skipped = self.begins[run], self._skipped(stands)
        return {
            c
            for c in self.ledger.records.keys() - (self.kept.keys() - self.missing.keys())
            if c[0] == stands.topic_id
            and c[2] < begins.get(c[1], 0)
            and self.ledger.committed(c)
            and (c in skipped or not self._unknown(stands.positions.get(c[1], 0), begins.get(c[1], 0), c))
            and piece_of_interval(self.ledger, c, scope) is not None
        }

    def _skipped(self, stands: Planned | Committed) -> set[Coordinate]:
        """What the head names: of that somebody has said that it may be gone, whatever was read there before."""
        number = stands.base_sequence if isinstance(stands, Planned) else stands.sequence
        heads = (head for head in self.ledger.heads if head.sequence == number)
        return {(head.topic_id, p, o) for head in heads for p, a, b in head.skipped for o in range(a, b)}

    def _cut_off(self, plan: Planned, scope: tuple[int, int]) -> set[Coordinate]:
        """By where it lay: what an election cut off before it looked, as the end of its leader epoch says, or retention
        has passed whatever was written there anew."""
        begins = self.begins[plan.run]
        ends = {(p, epoch): end for p, epoch, end in plan.epoch_ends}
        looked = self.case.known.last(plan.run, "topic")
        return {
            (plan.topic_id, c[1], c[2])
            for c, (_, epoch) in self.left.items()
            if c in self.since
            and self.since[c] < looked
            and self.ledger.records[c].topic_id == plan.topic_id
            and (plan.topic_id, c[1]) not in self.put_back
            and (ends.get((c[1], epoch), c[2] + 1) <= c[2] or c[2] < begins.get(c[1], 0))
            and c not in self.kept
            and not self.ledger.durable(c)
            and piece_of_interval(self.ledger, c, scope) is not None
        }

    def _unknown(self, stood: int, begins: int, c: Coordinate) -> bool:
        """What was written anew, where retention has passed the position, too, or nothing but leader epochs tells of a
        disk that was put back: nobody knows that it was (docs/guarantees.md)."""
        where = c[:2]
        if c[2] < self.cut.get(where, c[2] + 1):
            return False
        passed = c[2] < stood <= begins or c[2] < self.passed.get(where, 0)
        return passed or (c[2] >= self.put_back.get(where, c[2] + 1) and not self.case.kept.is_another(where))
