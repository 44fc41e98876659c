"""Heads: each follows the one that it was planned on, once, and goes back in no generation; and is in the history."""

from __future__ import annotations

from tests.histories.anomaly import Kind
from tests.histories.case import MOVED_ON_PURPOSE, Case, Rule
from tests.histories.events import Committed, Event, Planned, Recorded, Shared
from tests.histories.table_events import CatalogSetBack, Forgotten, HistoryLost


class HeadRules(Rule):
    """`unrecorded`: heads whose rows somebody deleted from the history; `forgotten`: whose snapshots are gone;
    `recorded`: whose rows have ever stood there. `copied`: the newest generation that a copy of the table has shown.
    `begun_anew`: whether the table was ever dropped."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.unrecorded: set[int] = set()
        self.forgotten: set[int] = set()
        self.recorded: set[tuple[int, str]] = set()
        self.copied = 0
        self.begun_anew = False

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Shared() if not event.another:
                self.copied = max(self.copied, event.generation)
            case Recorded():
                self.unrecorded.discard(event.sequence)
                self.recorded.add((event.sequence, event.decision))
            case HistoryLost():
                self.unrecorded |= set(event.sequences)
            case Forgotten():
                self.forgotten.add(event.sequence)
                self._let_go(event)
            case CatalogSetBack():
                self.begun_anew |= event.dropped
                self.unrecorded = {n for n in self.unrecorded if n <= event.sequence}
                self.forgotten = {n for n in self.forgotten if n <= event.sequence}
            case Committed() if before is not None:
                self._follows(before, event)
                self._is_of_its_plan(before, event)

    def close(self) -> None:
        """The row of a head that is there is written again by whoever comes next, whatever became of it."""
        there = {h.sequence for h in self.ledger.heads} - self.forgotten
        gone = sorted(there & self.unrecorded)
        if self.case.quiet and gone:
            self.case.say(Kind.UNEXPLAINED_GAP, f"the history lacks heads {gone}, though quiet runs ended")

    def _let_go(self, event: Forgotten) -> None:
        """What our maintenance lets go is known of in the history, or would be nowhere any more."""
        if event.run and (event.sequence, event.decision) not in self.recorded:
            what = f"maintenance let head {event.sequence} go, of which the history knows nothing"
            self.case.say(Kind.UNEXPLAINED_GAP, what)

    def _follows(self, before: Committed, head: Committed) -> None:
        where, say = f"head {head.sequence} ({head.kind})", self.case.say
        # What became of the heads that a rebuilt one stands for nobody knows; it must be beyond them all.
        beyond = head.sequence > before.sequence or self._number_is_nowhere(before)
        if head.sequence != before.sequence + 1 and not (head.kind == "rebuilt" and beyond):
            say(Kind.STALE_WRITER, f"{where} follows head {before.sequence}")
        if not self._newer(before, head):
            say(Kind.STALE_WRITER, f"{where} is of generation {head.generation}, after {before.generation}")

    def _number_is_nowhere(self, before: Committed) -> bool:
        """Of a table that was begun beyond another one, whose history and head are gone (docs/guarantees.md)."""
        return self.begun_anew and before.sequence in self.unrecorded & self.forgotten

    def _is_of_its_plan(self, before: Committed, head: Committed) -> None:
        if not head.plan_id:
            return
        where, say, earlier = f"head {head.sequence} ({head.kind})", self.case.say, self.ledger.heads[:-1]
        if any(h.plan_id == head.plan_id for h in earlier):
            say(Kind.STALE_WRITER, f"{where} commits plan {head.plan_id[:8]} again")
        plan = self.ledger.plans.get(head.plan_id)
        if plan is None:
            say(Kind.STALE_WRITER, f"{where} carries a plan that nobody made")
        elif [h for h in earlier if h.kind in MOVED_ON_PURPOSE and _is_since(h, plan)]:
            say(Kind.STALE_WRITER, f"{where} was planned before a rewind")
        elif plan.kind == "ingest" and plan.positions != before.positions:
            say(Kind.STALE_WRITER, f"{where} was planned at {plan.positions}, the head stood at {before.positions}")

    def _newer(self, before: Committed, head: Committed) -> bool:
        """One generation further on purpose, none otherwise; after a set back beyond all that were lost."""
        step = head.generation - before.generation
        if head.kind not in MOVED_ON_PURPOSE:
            return step == 0
        known = max(self.copied, *(h.generation for h in (before, *self.ledger.lost)))
        return step == 1 or 0 < step <= known + 1 - before.generation or (head.kind == "rebuilt" and step > 0)


def _is_since(head: Committed, plan: Planned) -> bool:
    """Whether it came after what was planned on: a later number, or one that came again in a later generation."""
    numbered, made = (plan.base_sequence, plan.generation), (head.sequence, head.generation)
    return made[0] > numbered[0] and made[1] >= numbered[1]
