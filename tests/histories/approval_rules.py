"""Approvals: what is done is what was shown, about those chunks, by that definition; or nothing."""

from __future__ import annotations

from collections import defaultdict

from tests.histories.anomaly import Kind
from tests.histories.approval_events import Approved, Declared, Shown
from tests.histories.case import Case, Rule
from tests.histories.events import Asks, Committed, Coordinate, Event, Held, Published
from tests.histories.ledger import Identity, identity

Key = tuple[Coordinate, Identity]


class ApprovalRules(Rule):
    """`shown`: by preview, what was held then of each waveform, and which definition it was. `asked`: by run, the
    preview that was approved of and the definition at that moment. `touched`: by run, the waveforms of its rows."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.shown: dict[str, tuple[dict[str, set[Key]], int]] = {}
        self.asked: dict[str, tuple[str, int]] = {}
        self.touched: dict[str, set[str]] = defaultdict(set)
        self.definition = 0

    def first_look(self, event: Event) -> None:
        match event:
            case Held() | Published() if event.run in self.asked and event.id is not None:
                self.touched[event.run].add(event.id)
            case Committed() if event.run in self.asked and event.kind == "held":
                self._is_what_was_shown(event)

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Declared() | Asks():
                self.definition += 1
            case Shown():
                self.shown[event.preview] = {i: self._held(i) for i in event.ids}, self.definition
            case Approved():
                self.asked[event.run] = event.preview, self.definition

    def _is_what_was_shown(self, head: Committed) -> None:
        preview, definition = self.asked[head.run]
        ids, shown_by = self.shown[preview]
        if definition != shown_by:
            self._say(head, "is made by a definition that nobody was shown", sorted(ids))
        unseen = sorted(i for i in self.touched[head.run] if self._held(i) - ids.get(i, set()))
        if unseen:
            self._say(head, "takes up what nobody was shown", unseen)

    def _held(self, waveform_id: str) -> set[Key]:
        """Whether or not it is believed by now: an operator may let go of either, and is shown both."""
        return {(row.coordinate, identity(row)) for row in self.ledger.newest(waveform_id)}

    def _say(self, head: Committed, what: str, ids: list[str]) -> None:
        self.case.say(Kind.STALE_WRITER, f"what was approved of, as head {head.sequence}, {what}", ids)
