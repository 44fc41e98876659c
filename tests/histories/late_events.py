"""Events of a history: requests that their run has given up on, and that are on their way still."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A run sent a request, and is told now that it failed; it may take effect later, perhaps more than once, or never.
    `request`: its number; `what`: the call."""

    run: str
    request: int
    what: str


@dataclass(frozen=True, slots=True)
class Lands:
    """What comes up to its `Landed` is this request of the run taking effect, as that sent it."""

    run: str
    request: int


@dataclass(frozen=True, slots=True)
class Landed:
    """That was all of it."""

    run: str
    request: int
