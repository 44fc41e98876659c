"""Heads that are made anew: what somebody took out of the tables, and the history knows of, is named as missing.

A published row, the last word on what is held, the bytes of it. What the history does not know of, nobody can name.
"""

from __future__ import annotations

import re

from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import Committed, Coordinate, Event, Held, Recorded
from tests.histories.ledger import Identity
from tests.histories.table_events import Deleted, HistoryLost, TakenOut

_ROWS = re.compile(r"\b(\d+) published waveforms")
_WORDS = re.compile(r"\blast word on (\d+) held chunks")
_BYTES = re.compile(r"\bbytes of (\d+) held chunks")


class MissingRules(Rule):
    """`recorded`: heads whose rows stand in the history. `deleted`: of which head the published rows were that somebody
    deleted. `before`: what was held before somebody's tool, or a new head, changed it."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.recorded: set[int] = set()
        self.deleted: dict[str, int] = {}
        self.before: dict[tuple[Coordinate, Identity], tuple[Held, bool]] | None = None

    def first_look(self, event: Event) -> None:
        match event:
            case Deleted():
                rows = {i: self.ledger.published.get(i) for i in event.ids}
                self.deleted |= {i: found[-1].sequence for i, found in rows.items() if found}
            case TakenOut() if self.before is None and event.rows:
                self.before = self.ledger.last_words()
            case Committed(kind="rebuilt") if self.before is None:
                self.before = self.ledger.last_words()

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Recorded():
                self.recorded.add(event.sequence)
            case HistoryLost():
                self.recorded -= set(event.sequences)
            case Committed():
                if event.kind == "rebuilt":
                    self._made_anew(event)
                self.before = None

    def _made_anew(self, head: Committed) -> None:
        rows = sorted(i for i, sequence in self.deleted.items() if sequence in self.recorded)
        if len(rows) > _said(_ROWS, head):
            self.case.say(Kind.LOST, f"head {head.sequence} does not name published rows that are gone", rows)
        self.deleted = {}
        now, then = self.ledger.last_words(), self.before or {}
        known = {key: was for key, was in then.items() if key in now and was[0].sequence in self.recorded}
        undone = [key[0] for key, (row, _) in known.items() if now[key][0].reason != row.reason]
        if len(undone) > _said(_WORDS, head):
            what = f"head {head.sequence} goes back to an older word on what is held, and does not say so"
            self.case.say(Kind.STALE_WRITER, what, at=sorted(undone))
        bare = [key[0] for key, (_, had) in known.items() if had and not now[key][1]]
        if len(bare) > _said(_BYTES, head):
            what = f"head {head.sequence} does not name held chunks whose bytes are gone"
            self.case.say(Kind.LOST, what, at=sorted(bare))


def _said(what: re.Pattern[str], head: Committed) -> int:
    return sum(int(n) for n in what.findall(head.note))
