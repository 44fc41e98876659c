"""Figures: what a head says of how much is held, and a row of the history of how much was published, is so."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from tests.histories.anomaly import Kind
from tests.histories.case import Case, Rule
from tests.histories.events import Committed, Event, Held, Published, Recorded
from tests.histories.ledger import identity
from tests.histories.table_events import Deleted, TakenOut

_LATE = "after_discard"
"""Came under an id that somebody had let go: nobody has decided about that."""


class CountRules(Rule):
    """`published`: by decision, how many rows its head brought; `coming`: those of the head that is about to be
    committed. `out`: rows that are held no more. `off`: somebody has deleted rows that had released what is held, which
    is held again: no head counts that until one is made anew. `wrong`: events, and what is wrong with their figures."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.published: dict[str, int] = {}
        self.coming = 0
        self.out: set[tuple[str, int, int, str, str]] = set()
        self.off = False
        self.wrong: list[tuple[int, str]] = []

    def take(self, event: Event, before: Committed | None) -> None:
        match event:
            case Published():
                self.coming += 1
            case TakenOut():
                self.out = set(event.rows)
            case Deleted():
                self.off = True
            case Recorded(published=int(said)) if said != self.published.get(event.decision, said):
                known = self.published[event.decision]
                what = f"the row of head {event.sequence} says that {said} waveforms were published, and {known} were"
                self.wrong.append((self.case.at, what))
            case Committed():
                self.off = self.off and event.kind != "rebuilt"
                if event.decision:
                    self.published[event.decision] = self.coming
                self.coming = 0
                if event.counts is not None and not self.off:
                    self._counted(event, dict(event.counts))

    def _counted(self, head: Committed, said: dict[str, int]) -> None:
        found = Counter(self._counts_as(rows) for rows in self._held(None if head.held is None else set(head.held)))
        found.pop("", None)
        if said != dict(found):
            what = f"head {head.sequence} ({head.kind}) counts {said} as held, and it is {dict(sorted(found.items()))}"
            self.wrong.append((self.case.at, what))

    def close(self) -> None:
        """Of what was lost, or changed by who was not to, all figures are wrong from then on: that is said once."""
        before = {one.kind for one in self.case.found} & {Kind.LOST, Kind.STALE_WRITER}
        for at, what in () if before else self.wrong:
            self.case.say(Kind.UNTRUE, what, event=at)

    def _held(self, decisions: set[str] | None) -> Iterable[list[Held]]:
        """Of each chunk, or record that is none, its rows that the head names, oldest first."""
        found: dict[object, list[Held]] = defaultdict(list)
        for row in (row for rows in self.ledger.held.values() for row in rows):
            named = decisions is None or row.decision in decisions
            if named and (*row.coordinate, row.piece, row.decision) not in self.out:
                found[row.coordinate, (*identity(row), row.says) if row.valid else row.piece].append(row)
        return [sorted(rows, key=lambda row: row.sequence) for rows in found.values()]

    def _counts_as(self, rows: list[Held]) -> str:
        """Empty: it is published since."""
        last = rows[-1]
        if last.valid and self._is_released(last):
            return ""
        late = last.reason == "discarded" and not any(r.before or r.reason != "discarded" for r in rows)
        return _LATE if late else last.reason

    def _is_released(self, row: Held) -> bool:
        known = self.ledger.published.get(row.id or "")
        chunks = known[-1].chunks if known else ()
        mine = row.seq is not None and row.seq < len(chunks) and chunks[row.seq][4] == row.piece
        return mine and row.says[0] in (None, len(chunks))
