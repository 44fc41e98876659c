"""One schedule that is said beforehand: what befalls which calls; everything else goes on."""

from __future__ import annotations

from collections.abc import Sequence

from tests.schedules.explore import Bounds, Scenario, Schedule
from tests.schedules.odometer import Odometer

Befalls = tuple[str, str]
"""At which call, and what: `("tables.commit", "late")`."""


class Along(Schedule):
    """`befalls`: in this order, each at the next such call of the one whose turn it is. It takes as many switches,
    faults and late requests as it names, and never ends early."""

    def __init__(self, scenario: Scenario, befalls: Sequence[Befalls]) -> None:
        words = [word for _, word in befalls]
        switches, late = words.count("switch"), words.count("late")
        super().__init__(
            scenario, scenario.begin(), Bounds(switches, len(words) - switches - late, late), Odometer(), {}
        )
        self.befalls = list(befalls)

    def _pick(self, ways: list[str]) -> str:
        at = self.runs[self.turn].steps.at
        if self.befalls and self.befalls[0][0] == at and self.befalls[0][1] in ways:
            return self.befalls.pop(0)[1]
        return ways[0]

    def _prune(self) -> None:
        """Nothing was seen before."""
