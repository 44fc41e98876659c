"""How far retention has gone in a history, and which positions it has passed. Judges nothing."""

from __future__ import annotations

from collections.abc import Mapping

from tests.histories.events import Committed, Retained, Where


class Retention:
    """`log_start`: where each partition begins, and `at`: since which event. `overtaken`: where it has ever passed the
    position, and when it was found so last."""

    def __init__(self) -> None:
        self.log_start: dict[Where, int] = {}
        self.at: dict[Where, int] = {}
        self.overtaken: dict[Where, int] = {}

    def retained(self, event: Retained, head: Committed | None, *, at: int) -> None:
        where = event.topic_id, event.partition
        self.log_start[where], self.at[where] = event.log_start, at
        if head is None:
            return
        stands = head.positions.get(event.partition, 0) if head.topic_id == event.topic_id else 0
        if event.log_start >= stands:
            self.overtaken[where] = at

    def moved(self, head: Committed, *, looked: int, at: int) -> None:
        """On purpose, by who had looked at the topic then: it may have gone back to what retention took since."""
        passed = {(head.topic_id, p) for p, end in head.positions.items() if self.begins(head.topic_id, p) >= end}
        self.overtaken |= {where: at for where in passed if looked < self.at.get(where, -1)}

    def set_back(self, topic_id: str, stands: Mapping[int, int], *, at: int) -> None:
        """The catalog, to a head that stands there."""
        begins = {p: n for (t, p), n in self.log_start.items() if t == topic_id}
        self.overtaken |= {(topic_id, p): at for p, n in begins.items() if n >= stands.get(p, n + 1)}

    def begins(self, topic_id: str, partition: int) -> int:
        return self.log_start.get((topic_id, partition), 0)
