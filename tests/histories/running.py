"""Runs under way in a random history: launched, carried some effects further, disturbed, killed, and seen to their end.

Knows nothing of what a run does. Judges nothing: how a run ended is an event like every other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fakes.faults import Fault, Killed, Steps
from tests.histories.events import Ended, Started
from tests.histories.landing_late import LandingLate
from wavestitch.batch.plan import NothingToDo
from wavestitch.contracts.errors import Altered, BadInput, Terminal, Unbalanced, WavestitchError

DEADLINE = 600
"""Effects that one run may take; the longest that any of ours takes is about a third of it."""
NEVER = (Altered, BadInput, Unbalanced)
"""Ends that no fault of ours may lead to."""
PLAN_AGAIN = ("was not stitched", "changed since")
"""What held and published waveforms may do under a run that holds nothing, or that picked among them."""
NOT_THERE = "is not committed, so there is nothing to undo"
"""Of a batch that was, in a catalog that was set back."""
FAILED_BY_NAME = ("parts of maintenance did not go through", "SlowDownError: ")
"""What one of the stages met, or what a catalog said that nobody knows: whoever looks after it is told in these words.
"""
COMMITS = ("tables.commit", "tables.commit_rebuilt")


class Running(LandingLate):
    """`deadlines`: of all runs that ever were, by name."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.launched = 0
        self.faults = self.may_fail()
        self.deadlines: dict[str, int] = {}

    @property
    def busy(self) -> bool:
        return len(self.runs) >= 3

    def launch(
        self, what: str, call: Callable[[], Any], *, far: bool = False, now: int | None = None, deadline: int = DEADLINE
    ) -> Steps:
        """`far`: to its end. `now`: so many effects at once; else some. `deadline`: effects that it may take."""
        self.ops[what] += 1
        self.launched += 1
        name = f"run-{self.launched}"
        self.history.append(Started(name, what, deadline))
        self.deadlines[name] = deadline
        steps = Steps(call, name)
        self.runs.append(steps)
        most = self.random.choice([0, 3, 8, 15, 22, 30, DEADLINE]) if now is None else now
        self.step(steps, deadline + 1 if far else most)
        return steps

    def step(self, run: Steps, most: int) -> None:
        """Some effects further. A run past its deadline is ended by force, as Airflow would."""
        for _ in range(most):
            if len(run.trace) > self.deadlines[run.name] and not run.done:
                run.kill()
            self.something_may_land()
            if not run.advance():
                break
        self.settle(run)

    def settle(self, run: Steps) -> str | None:
        """What a run said at its end, if this is it."""
        if not run.done or run not in self.runs:
            return None
        self.runs.remove(run)
        reason, text = how_it_ended(run)
        self.ops["ended: " + reason] += 1
        self.history.append(Ended(run.name, reason, len(run.trace), text))
        return text

    def advance(self) -> None:
        if self.runs:
            self.step(self.random.choice(self.runs), self.random.choice([1, 1, 2, 4, 9, 40]))

    def disturb(self) -> None:
        if not self.runs:
            return
        run, fault = self.random.choice(self.runs), self.random.choice(self.faults)
        if fault is Fault.LATE:
            self.gives_up(run)
            self.settle(run)
            return
        # Only a commit can meet some of these, and every one is worth the most there.
        if fault in (Fault.RESENT, Fault.CONFLICT) or self.random.random() < 0.3:
            self.to_a_commit(run)
        if not run.done:
            self.ops[fault.value] += 1
            run.advance(fault)
        self.settle(run)

    def may_fail(self) -> list[Fault]:
        """What one call may meet; a request that lands late is worth as much as two others, where there are any."""
        return [*(fault for fault in Fault if fault is not Fault.LATE), *([Fault.LATE] * 2 if self.swarm.on else [])]

    def to_a_commit(self, run: Steps) -> None:
        while not run.done and run.at not in COMMITS and len(run.trace) < self.deadlines[run.name]:
            run.advance()

    def stop_everybody(self) -> None:
        """Nobody is at work on a catalog that is put back (docs/operations.md), or on one that is gone."""
        for run in list(self.runs):
            run.kill()
            self.settle(run)
        self.nothing_more_lands()


def how_it_ended(run: Steps) -> tuple[str, str]:
    """The machine-readable end of a run, and the sentence. What no fault of ours may lead to is not among the ends."""
    error = run.error
    if error is None:
        return ("nothing to do" if isinstance(run.result, NothingToDo) else "done"), ""
    if isinstance(error, Killed):
        return "killed", ""
    known = isinstance(error, WavestitchError) and not isinstance(error, NEVER)
    if isinstance(error, BadInput) and NOT_THERE in str(error):
        return "Refused", str(error)
    if type(error) is Terminal and not any(said in str(error) for said in PLAN_AGAIN + FAILED_BY_NAME):
        known = False
    return (type(error).__name__ if known else f"unexpected {type(error).__name__}"), str(error)
