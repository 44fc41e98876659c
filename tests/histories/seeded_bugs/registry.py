"""Seeded bugs: a function of the product replaced by a wrong one, and the kind of anomaly that it must show as.

Each stands for a rule of the product that was forgotten, or undoes the mend of a break that was proven once. Bugs of
the world's own making (what a library or a catalog does) are put into the fakes. `mutants` hunts them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.histories.anomaly import Kind

Patch = pytest.MonkeyPatch


class Mutant(NamedTuple):
    """`make` puts the bug in place. `since`: the seed where the hunt begins; a rare one is met shortly after it.
    `act`: what is done on purpose before each history is healed, where chance would take too long. `swarm`: it is
    hunted where half of all acts are switched off, and requests land late."""

    kind: Kind
    make: Callable[[Patch], None]
    since: int = 0
    act: str = ""
    swarm: bool = False


MUTANTS: dict[str, Mutant] = {}


def shows(
    kind: Kind, since: int = 0, act: str = "", *, swarm: bool = False
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    def enter(make: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS[make.__name__.replace("_", " ")] = Mutant(kind, make, since, act, swarm)
        return make

    return enter
