"""What a standalone master says on its page, and whether it has forgotten the application that stays on it.

A master that was started again knows no application: it ends the executors of one that goes on, and gives it none. The
application only waits to be found again. So whoever runs it looks, and has it started again (spark-connect in docker/).
Decides that and nothing else: a master that does not answer has forgotten nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

AT_FIRST_S, AFTERWARDS_S = 300.0, 30.0
"""So long an application may not be on the page of a living master: from its start, and once it was there."""


def state_on(page: Mapping[str, Any], application: str) -> str | None:
    """The state of the application of this name (RUNNING: it was given executors); None where there is none."""
    return next((str(app["state"]) for app in page["activeapps"] if app["name"] == application), None)


def is_alive(page: Mapping[str, Any]) -> bool:
    return bool(page["status"] == "ALIVE")


class Looks:
    """At the page, one after another. `since`: of a clock in seconds that never goes back."""

    def __init__(self, application: str, *, since: float) -> None:
        self._application = application
        self._time_out, self._since = AT_FIRST_S, since

    def has_forgotten(self, page: Mapping[str, Any] | None, *, now: float) -> bool:
        """Whether it is time to begin anew. `page`: None where nobody answered."""
        if page is None or not is_alive(page):
            self._since = now
        elif state_on(page, self._application) is not None:
            self._time_out, self._since = AFTERWARDS_S, now
        return now - self._since > self._time_out
