"""The hunt for seeded bugs: random histories played on a product with one of them in it, until it is found out.

The histories are those of the test suite: same seeds, same steps, but for promotions, which the bugs bring that are
about them. A mutant counts as caught when a history has anomalies of exactly its kind, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest

from tests import both_ways
from tests.histories.random_histories import check_seed
from tests.histories.seeded_bugs import (
    of_chunks,
    of_ends,
    of_excuses,
    of_figures,
    of_heads,
    of_held,
    of_intervals,
    of_maintenance,
    of_offsets,
    of_operators,
    of_promotions,
    of_readers,
    of_reading,
    of_rebuilt,
    of_requests,
    of_verifications,
)
from tests.histories.seeded_bugs.registry import MUTANTS

BUGS = (
    of_chunks,
    of_ends,
    of_excuses,
    of_figures,
    of_heads,
    of_held,
    of_intervals,
    of_maintenance,
    of_offsets,
    of_operators,
    of_reading,
    of_promotions,
    of_readers,
    of_rebuilt,
    of_requests,
    of_verifications,
)
"""The modules that enter their bugs into `MUTANTS`."""
MOST_SEEDS = 150


class Caught(NamedTuple):
    """Where a mutant was found out: the seed and what was said. `seed` None: it survived."""

    seed: int | None
    said: tuple[str, ...]


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The product with this bug in it."""
    with both_ways.compared(apply=False), pytest.MonkeyPatch.context() as patch:
        MUTANTS[name].make(patch)
        yield


def hunt(name: str) -> Caught:
    """Play seeds until one shows exactly the mutant's kind."""
    said: tuple[str, ...] = ()
    bug = MUTANTS[name]
    with planted(name):
        for seed in range(bug.since, bug.since + MOST_SEEDS):
            found = check_seed(seed, bug.act, promotes=False, swarm=bug.swarm)
            said = tuple(str(a) for a in found) or said
            if {a.kind for a in found} == {bug.kind}:
                return Caught(seed, said)
    return Caught(None, said)


def count_catches(name: str, *, most: int = MOST_SEEDS, swarm: bool = True) -> tuple[int, int]:
    """In how many histories it shows as exactly its kind, and in how many as anything."""
    bug = MUTANTS[name]
    with planted(name):
        found = [{a.kind for a in check_seed(seed, bug.act, promotes=False, swarm=swarm)} for seed in range(most)]
    return sum(kinds == {bug.kind} for kinds in found), sum(map(bool, found))


def run_mutants() -> tuple[int, int]:
    """How many there are, and how many are caught."""
    return len(MUTANTS), sum(hunt(name).seed is not None for name in MUTANTS)
