"""How often a change that is decided anew each time is sent: a compare-and-set in a loop, which has an end.

Others who were first each time are one end. A catalog of whose answers nobody can tell what became of the change is
another, an early one: each of them may take as long as it is waited for. Whoever gives up says which it was.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavestitch.contracts.errors import StateUnknown, Transient
from wavestitch.contracts.ports import CommitConflict

_MOST_UNKNOWN = 3


@dataclass(slots=True)
class CommitTries:
    """Of one change. `most`: times that others may be first. `others`: what they did that often, and the next step."""

    most: int
    others: str
    _conflicts: int = 0
    _unknown: int = 0

    def failed(self, error: CommitConflict | StateUnknown) -> None:
        """It was sent once more, and this came of it: look, and go on. Raises where that was often enough."""
        if isinstance(error, StateUnknown):
            self._unknown += 1
            if self._unknown == _MOST_UNKNOWN:
                raise error
            return
        self._conflicts += 1
        if self._conflicts == self.most:
            raise Transient(f"{self.most} times {self.others}") from error
