"""What is held is of what lies there, and for a reason that holds: an operator let it go, a gate was closed, copies of
it contradict each other. No row of the held table is believed for what it says of itself.
"""

from __future__ import annotations

from collections import defaultdict

from tests.domain.oracle import Truth, piece_of
from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import Answered, Committed, Event, Held, Published
from tests.histories.ledger import identity
from tests.histories.promotion_events import Spoils

_LETS_GO = ("discard", "pick")


class HeldRules(Rule):
    """`rows`: staged by decision, before its head is committed. `answered`: plans that somebody parks, or accepts, at
    their gate. `spoils`: waveforms for which one closes, where they are half of what a batch would publish."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.rows: dict[str, list[Held]] = defaultdict(list)
        self.answered: set[str] = set()
        self.spoils: set[str | None] = set()

    def first_look(self, event: Event) -> None:
        if isinstance(event, Committed) and event.decision:
            rows = self.rows.pop(event.decision, [])
            with self.ledger.as_planned(event.plan_id):
                parked = self._is_parked(event.plan_id, rows)
                for row in rows:
                    if row.id is not None and row.valid:
                        self._has_its_reason(row, event.plan_id, parked)

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Held():
                self.rows[event.decision].append(event)
                self._is_what_lies_there(event)
            case Spoils():
                self.spoils |= set(event.ids)
            case Answered():
                self.answered.add(event.plan_id)

    def _is_parked(self, plan_id: str, rows: list[Held]) -> bool:
        """By somebody; or by itself, for those that are half of it."""
        plan = self.ledger.plans.get(plan_id)
        if plan_id in self.answered or plan is None or not plan.parks:
            return plan_id in self.answered
        whole = {row.id for row in rows if row.valid and row.reason in ("parked", "failed_expectation")}
        whole = {i for i in whole if not self.ledger.blocked(i or "")}  # what joins what was parked before says nothing
        read = (piece_of(self.ledger.records[c]) for c in self.ledger.reads.get(plan_id, ()))
        touched = {*plan.ids, *(piece.id for piece in read if piece is not None)} & self.spoils
        # Of what is held so already there is no new row.
        bad = (whole & self.spoils) | {i for i in touched if i is not None and self.ledger.undecided(i)}
        return 2 * len(bad) >= len(whole | bad)

    def _has_its_reason(self, row: Held, plan_id: str, parked: bool) -> None:
        plan = self.ledger.plans.get(plan_id)
        action = plan.action if plan is not None and row.id in plan.ids else ""
        if action == "restore":
            was = self._was_held_as(row)
            if row.reason != was:
                self._say(row, f"restored as {row.reason}, and it was {was}")
            return
        if row.reason == "discarded":
            if action not in _LETS_GO and not self._is_buried(row):
                self._say(row, "discarded, and no operator let it go")
        elif row.reason in {r.reason for r in self.ledger.newest(row.id or "")}:
            return
        elif row.reason == "parked" and not parked:
            self._say(row, "parked, and no gate was closed")
        elif row.reason == "conflict":
            self._is_contradicted(row, plan_id)

    def _is_buried(self, row: Held) -> bool:
        """Beside what somebody let go: a repeat of that, or where all was let go."""
        gone = {identity(r) for r in self.ledger.newest(row.id or "") if r.reason == "discarded"}
        return identity(row) in gone or self.ledger.blocked(row.id or "") == "discarded"

    def _was_held_as(self, row: Held) -> str:
        """Before it was let go; what came since, as its neighbours were, if they were so for one reason."""
        published = self.ledger.published.get(row.id or "")
        gone = [r for r in self.ledger.newest(row.id or "") if r.reason == "discarded"]
        if published:
            gone = [r for r in gone if not _has(published[-1], r)]
        before = {self._before(r) for r in gone} - {""}
        return self._before(row) or (before.pop() if len(before) == 1 else "conflict")

    def _before(self, row: Held) -> str:
        rows = [r for r in self.ledger.held[row.coordinate] if identity(r) == identity(row) and self.ledger.counts(r)]
        stood = [r.reason for r in rows if r.reason != "discarded"]
        return stood[-1] if stood else ""

    def _is_contradicted(self, row: Held, plan_id: str) -> None:
        """By what is published, or else by what its batch has read, and what is held and was not let go."""
        rows, mine = self.ledger.published.get(row.id or ""), self.ledger.piece_of(row)
        if mine is None:
            return
        has = bool(rows) and _has(rows[-1], row)
        if not has and self.ledger.is_let_go(mine):
            self._say(row, "held as a conflict, and an operator let that very copy go")
            return
        if rows and not (has and mine.count in (None, len(rows[-1].chunks))):
            return
        known = self.ledger.reads.get(plan_id, set()) | self.ledger.held_records()
        # Also what is no chunk by the definition: whether that may say anything is not asked here.
        pieces = [p for c in known if self.ledger.committed(c) and (p := piece_of(self.ledger.records[c]))]
        stand = [p for p in pieces if p.id == row.id and not self.ledger.is_let_go(p)]
        if not Truth((*stand, mine)).contradicts_itself:
            self._say(row, "held as a conflict, and nothing contradicts it")

    def _is_what_lies_there(self, row: Held) -> None:
        found = [piece_of(self.ledger.records[c]) for c in self.ledger.places(row.coordinate)]
        if row.valid:
            if all(piece is None or piece.same != identity(row) for piece in found):
                self._say(row, "held as a chunk that does not lie there")
        elif all(self.ledger.piece(self.ledger.records[c]) is not None for c in self.ledger.places(row.coordinate)):
            self._say(row, "held as no chunk, and it is one")

    def _say(self, row: Held, what: str) -> None:
        self.case.say(Kind.INVENTED, what, [] if row.id is None else [row.id], [row.coordinate])


def _has(published: Published, row: Held) -> bool:
    """Whether a published row is made of this very chunk, among others."""
    at = row.seq if row.seq is not None else -1
    return 0 <= at < len(published.chunks) and published.chunks[at][3:] == (row.length, row.piece)
