"""Requests of a random history that their run has given up on, and that are on their way still: each lands later, once,
twice or never, beside whoever is at work by then. Their draws are made apart. Judges nothing.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fakes.faults import Fault, LateEffect, Steps
from tests.histories.late_events import GivenUp, Landed, Lands
from tests.histories.producing import Producing
from tests.histories.swarm import Swarm

LANDS = (0.3, 0.06, 0.01)
"""Before so many effects of whoever is at work something lands, in one history or another: soon, or much later."""
AGAIN, NEVER_LANDS = 0.3, 0.1
GIVEN_UP, AT_A_COMMIT = 0.2, 0.8
"""Of the requests that may be late each is the one that is given up so often, and those that move heads or the group
more often: a run has others before them."""
SHOWN_BY = ("tables.commit", "tables.commit_rebuilt", "log.commit_group")


class LandingLate(Producing):
    """`on_the_way`: by the number of the request. `runs`: those under way; `healing`: no more accidents."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.swarm = Swarm(seed)
        self.runs: list[Steps] = []
        self.healing = False
        self.of_requests = random.Random(f"on the way {seed}")
        self.lands = self.of_requests.choice(LANDS)
        self.on_the_way: list[tuple[int, LateEffect]] = []
        self._given_up = 0

    def gives_up(self, run: Steps) -> None:
        """On its next request that may be late: whatever comes of it, the run is told that it failed."""
        while not run.done and not (run.may_be_late and self._this_one(run.at)):
            run.advance()
        if run.done:
            return
        self._given_up += 1
        self.ops[Fault.LATE.value] += 1
        self.history.append(GivenUp(run.name, self._given_up, run.at))
        run.advance(Fault.LATE)
        self.on_the_way += [(self._given_up, effect) for effect in run.late]
        run.late = []

    def _this_one(self, at: str) -> bool:
        return self.of_requests.random() < (AT_A_COMMIT if at in SHOWN_BY else GIVEN_UP)

    def something_may_land(self) -> None:
        if self.on_the_way and self.of_requests.random() < self.lands:
            number, effect = self.on_the_way.pop(self.of_requests.randrange(len(self.on_the_way)))
            if self.of_requests.random() < NEVER_LANDS:
                self.ops["never lands"] += 1
                return
            self.land(number, effect)
            if self.of_requests.random() < AGAIN:
                self.on_the_way.append((number, effect))

    def land(self, number: int, effect: LateEffect) -> None:
        self.ops[f"lands: {effect.name}"] += 1
        self.ops["lands after its run"] += all(run.name != effect.run for run in self.runs)
        self.ops["lands beside another run"] += any(run.name != effect.run for run in self.runs)
        self.ops["lands while healing"] += self.healing
        self.history.append(Lands(effect.run, number))
        effect.land()
        self.history.append(Landed(effect.run, number))

    @contextmanager
    def in_one_go(self) -> Iterator[None]:
        """Nothing lands beside what is done now."""
        lands, self.lands = self.lands, 0.0
        yield
        self.lands = lands

    def nothing_more_lands(self) -> None:
        self.ops["never lands"] += len(self.on_the_way)
        self.on_the_way.clear()
