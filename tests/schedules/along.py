"""One schedule that is said beforehand: what befalls which calls; everything else goes on."""

from __future__ import annotations

from collections.abc import Sequence

from tests.schedules.schedule import Numbers, Scenario, Schedule
from tests.schedules.state import LATE, SWITCH, Bounds
from tests.schedules.watched import watched

Befalls = tuple[str, str]
"""At which call, and what: `("tables.commit", "late")`."""


def play_along(scenario: Scenario, befalls: Sequence[Befalls]) -> Schedule:
    """To its end. `befalls`: in this order, each at the next such call of the one whose turn it is. It takes as many
    switches, faults and late requests as are named. Raises `AssertionError` where not all come about."""
    words = [word for _, word in befalls]
    switches, late = words.count(SWITCH), words.count(LATE)
    bounds = Bounds(switches, len(words) - switches - late, late)
    left = list(befalls)
    with watched() as touched:
        schedule = Schedule(scenario, scenario.begin(), bounds, Numbers(), touched)
        while ways := schedule.state.ways:
            at = schedule.state.actors[schedule.state.turn].at
            comes = left and left[0][0] == at and left[0][1] in ways
            schedule.go(left.pop(0)[1] if comes else ways[0])
    assert not left, f"{left} did not come about: {schedule.way}"
    return schedule
