"""What is held is of what lies there, and for a reason that holds: an operator let it go, a gate was closed, copies of
it contradict each other. No row of the held table is believed for what it says of itself.
"""

from __future__ import annotations

from collections import defaultdict

from tests.domain.oracle import Truth, piece_of
from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import Answered, Committed, Event, GateClosed, Held
from tests.histories.ledger import identity
from tests.histories.promotion_events import Spoils

_LETS_GO = ("discard", "pick")


class HeldRules(Rule):
    """`rows`: staged by decision, before its head is committed. `stopped`: plans whose gate has closed, or was answered
    beforehand. `spoils`: waveforms for which one closes."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.rows: dict[str, list[Held]] = defaultdict(list)
        self.stopped: set[str] = set()
        self.spoils: set[str | None] = set()

    def first_look(self, event: Event) -> None:
        if isinstance(event, Committed) and event.decision:
            rows = self.rows.pop(event.decision, [])
            # All of a batch is parked for those that the gate refuses, or that are half of it.
            read = (piece_of(self.ledger.records[c]) for c in self.ledger.reads.get(event.plan_id, ()))
            ids = {row.id for row in rows} | {piece.id for piece in read if piece is not None}
            if ids & (self.case.ever_refused | self.spoils):
                self.stopped.add(event.plan_id)
            for row in rows:
                self._has_its_reason(row, event)

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Held():
                self.rows[event.decision].append(event)
                self._is_what_lies_there(event)
            case Spoils():
                self.spoils |= set(event.ids)
            case GateClosed() | Answered():
                self.stopped.add(event.plan_id)
            case Committed(kind="held"):
                plan = self.ledger.plans.get(event.plan_id)
                for waveform_id in plan.ids if plan is not None else ():
                    self._is_done(plan.action, waveform_id)

    def _has_its_reason(self, row: Held, head: Committed) -> None:
        if row.id is None or not row.valid:
            return
        plan = self.ledger.plans.get(head.plan_id)
        decides = plan is not None and row.id in plan.ids
        stood = {r.reason for r in self.ledger.newest(row.id)}
        if row.reason in stood:
            return
        if row.reason == "discarded" and not (decides and plan is not None and plan.action in _LETS_GO):
            self._say(row, "discarded, and no operator let it go")
        elif row.reason == "parked" and not (head.plan_id in self.stopped or (plan and plan.action == "restore")):
            self._say(row, "parked, and no gate was closed")
        elif row.reason == "conflict" and not self._contradicted(row):
            self._say(row, "held as a conflict, and nothing contradicts it")

    def _is_done(self, action: str, waveform_id: str) -> None:
        """A decision is no decision where everything is as it was."""
        reasons = {row.reason for row in self.ledger.effective(waveform_id)}
        done = {
            "accept": bool(self.ledger.published.get(waveform_id)),
            "pick": "conflict" not in reasons or bool(self.ledger.published.get(waveform_id)),
            "discard": not self.ledger.undecided(waveform_id),
            "restore": "discarded" not in reasons,
        }
        if not done.get(action, True):
            self.case.say(Kind.UNTRUE, f"an operator's {action} is told as done, and is not", [waveform_id])

    def _contradicted(self, row: Held) -> bool:
        """By anything that was ever sent."""
        known = (r for c, r in self.ledger.records.items() if self.ledger.committed(c))
        pieces = tuple(piece for r in known if (piece := piece_of(r)) is not None and piece.id == row.id)
        return Truth(pieces).contradicts_itself

    def _is_what_lies_there(self, row: Held) -> None:
        found = [piece_of(self.ledger.records[c]) for c in self.ledger.places(row.coordinate)]
        if row.valid:
            if all(piece is None or piece.same != identity(row) for piece in found):
                self._say(row, "held as a chunk that does not lie there")
        elif all(self.ledger.piece(self.ledger.records[c]) is not None for c in self.ledger.places(row.coordinate)):
            self._say(row, "held as no chunk, and it is one")

    def _say(self, row: Held, what: str) -> None:
        self.case.say(Kind.INVENTED, what, [] if row.id is None else [row.id], [row.coordinate])
