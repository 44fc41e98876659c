"""What a run can know: when it looked at what, and acted, last. A request that lands late knows no more than its run
did when it was sent. Decides nothing.
"""

from __future__ import annotations

from collections import defaultdict

from tests.histories.late_events import GivenUp, Landed, Lands

ACTED, PREPARED = "acted", "prepared"
"""Beside what it looked at: that it did anything but look; that it planned or read."""


class Knowledge:
    """By run and what, the number of the event. `sent_at`: of the request that is landing now; None: none is."""

    def __init__(self) -> None:
        self._last: dict[str, dict[str, int]] = defaultdict(dict)
        self._sent: dict[int, tuple[int, dict[str, int]]] = {}
        self._meanwhile: dict[str, int] = {}
        self.sent_at: int | None = None

    def note(self, run: str, what: str, at: int) -> None:
        self._last[run][what] = at

    def last(self, run: str, what: str, never: int = -1) -> int:
        return self._last[run].get(what, never)

    def take(self, event: GivenUp | Lands | Landed, at: int) -> None:
        match event:
            case GivenUp():
                self._sent[event.request] = at, dict(self._last[event.run])
            case Lands():
                self._meanwhile = self._last[event.run]
                self.sent_at, known = self._sent[event.request]
                self._last[event.run] = dict(known)
            case Landed():
                self._last[event.run], self.sent_at = self._meanwhile, None
