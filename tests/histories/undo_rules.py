"""Undo: puts back exactly what the head or the batch that was meant had changed, or nothing.

A rewind puts the partitions that were moved back to where they stood, and no other one. A decision about what is held
changes the very chunks that the other one had changed: to let go, or back to what they were before.
"""

from __future__ import annotations

from collections import defaultdict

from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import Committed, Event, Held, Undone
from tests.histories.ledger import Identity, identity

Key = tuple[tuple[str, int, int], Identity]


class UndoRules(Rule):
    """`asked`: by run. `rows`: by decision, the chunks that it changed, and to what."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.asked: dict[str, Undone] = {}
        self.rows: dict[str, dict[Key, Held]] = defaultdict(dict)

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Undone():
                self.asked[event.run] = event
            case Held() if event.valid:
                self.rows[event.decision][event.coordinate, identity(event)] = event
            case Committed() if event.run in self.asked and before is not None:
                self._undoes(self.asked[event.run], before, event)

    def _undoes(self, asked: Undone, before: Committed, head: Committed) -> None:
        if asked.of and before.sequence != asked.of and head.kind == "rewind":
            self._say(head, f"head {asked.of} was to be undone, the newest was {before.sequence}")
            return
        meant = [h for h in self.ledger.heads[:-1] if h.sequence == asked.of or h.plan_id == (asked.plan_id or "-")]
        if not meant:
            self._say(head, "what was to be undone is in no table")
        elif head.kind == "rewind":
            self._moves_back(meant[-1], before, head)
        elif head.kind == "held":
            self._takes_back(meant[-1], head)

    def _moves_back(self, meant: Committed, before: Committed, head: Committed) -> None:
        plan = self.ledger.plans.get(meant.plan_id)
        if plan is not None:
            back = {p: start for p, start, _ in plan.ranges} if plan.kind == "ingest" else {}
        else:
            was = dict(next((h for h in self.ledger.heads if h.sequence == meant.sequence - 1), meant).positions)
            stood = dict.fromkeys(meant.positions, 0) | was  # a partition that was added, at its beginning
            back = {p: at for p, at in stood.items() if meant.positions.get(p) != at}
        wanted = {**before.positions, **back}
        if not back or meant.topic_id != head.topic_id or head.positions != wanted:
            self._say(head, f"of head {meant.sequence} puts the stream to {head.positions}, and {wanted} was before it")

    def _takes_back(self, meant: Committed, head: Committed) -> None:
        done, changed = self.rows[head.decision], self.rows[meant.decision]
        other = sorted(k[0] for k in done.keys() ^ changed.keys())
        if other:
            self._say(head, f"of head {meant.sequence} changes {other}, which that had not, or leaves what it had")
            return
        for key, row in done.items():
            was = self._before(key, meant)
            if row.reason != ("discarded" if changed[key].reason != "discarded" else was):
                self._say(head, f"of head {meant.sequence} makes {key[0]} {row.reason}, it was {was}")

    def _before(self, key: Key, meant: Committed) -> str:
        """What a chunk was held as when that decision was made."""
        rows = [r for r in self.ledger.held[key[0]] if identity(r) == key[1] and r.sequence < meant.sequence]
        known = [r for r in rows if self.ledger.counts(r)]
        return known[-1].reason if known else ""

    def _say(self, head: Committed, what: str) -> None:
        self.case.say(Kind.STALE_WRITER, f"undo, as head {head.sequence} ({head.kind}): {what}")
