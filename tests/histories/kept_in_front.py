"""What heads keep of the log in front of their positions, by which the next plan knows that it is the one that was read
(docs/guarantees.md). Judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from tests.histories.events import Committed, Coordinate, Planned, Produced, Where


class _Log(Protocol):
    records: dict[Coordinate, Produced]
    gone: set[Coordinate]
    log_start: dict[Where, int]


class KeptInFront:
    """`by_head`: by number, and partition: the position, and the record that lay in front of it; None where none is
    kept. `now`: those of the newest head. `at_end_of`: what lay at the end of what a plan reads when it was made."""

    def __init__(self, log: _Log) -> None:
        self.log = log
        self.by_head: dict[int, dict[Where, tuple[int, Produced | None]]] = {}
        self.now: dict[Where, tuple[int, Produced | None]] = {}
        self.at_end_of: dict[str, dict[int, Produced | None]] = {}

    def planned(self, plan: Planned) -> None:
        ends = {p: max(end for q, _, end in plan.ranges if q == p) for p, _, _ in plan.ranges}
        self.at_end_of[plan.plan_id] = {p: self._lies((plan.topic_id, p), end) for p, end in ends.items()}

    def committed(self, head: Committed) -> None:
        bare = {p for p, _ in head.unproven}
        of_plan = self.at_end_of.get(head.plan_id, {}) if head.kind == "ingest" else {}
        made: dict[Where, tuple[int, Produced | None]] = {}
        for p, end in head.positions.items():
            where = head.topic_id, p
            stood, kept = self.now.get(where, (None, None))
            if end == stood:
                made[where] = end, kept  # where it stays, what was kept stays
            elif stood is not None and end < stood and self.is_another(where):
                made[where] = end, kept  # who goes back to behind a cut does not hide it
            else:
                made[where] = end, None if p in bare else of_plan.get(p, self._lies(where, end))
        self.now = self.by_head[head.sequence] = made

    def set_back(self, sequence: int) -> None:
        self.now = self.by_head.get(sequence, {})

    def is_another(self, where: Where) -> bool:
        """Whether the record in front of the newest head's position tells that the log was cut off before that."""
        end, kept = self.now.get(where, (0, None))
        in_front = *where, end - 1
        if kept is None or in_front in self.log.gone or end <= self.log.log_start.get(where, 0):
            return False
        lies = self._lies(where, end)
        return lies is not kept and not self._is_the_same(lies, kept)

    def taken_for_what_lay_there(self, where: Where) -> int:
        """The position of the newest head, if what lies in front of it is another record, and the same; else 0."""
        end, kept = self.now.get(where, (0, None))
        return end if self._is_taken(where, end, kept) else 0

    def taken_by_any_head(self, where: Where) -> int:
        """The furthest such position where a head that is known ever stood, and somebody may go back to; 0: none."""
        return max((end for end, kept in self._stood(where) if self._is_taken(where, end, kept)), default=0)

    def _stood(self, where: Where) -> Iterator[tuple[int, Produced | None]]:
        return (head[where] for head in self.by_head.values() if where in head)

    def _is_taken(self, where: Where, end: int, kept: Produced | None) -> bool:
        lies = self._lies(where, end)
        return lies is not None and lies is not kept and self._is_the_same(lies, kept)

    @staticmethod
    def _is_the_same(lies: Produced | None, kept: Produced | None) -> bool:
        """In an epoch of the same number. Transactions have numbers, too, and none comes twice."""
        return lies is not None and lies == kept and lies.seen == "committed"

    def _lies(self, where: Where, end: int) -> Produced | None:
        return self.log.records.get((*where, end - 1))
