"""Runs under way in the protocol machine: each stops before each of its effects, goes on, is disturbed, or dies.

Knows nothing of what a run does, but how it may end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.domain.producing_machine import ProducingMachine, pick
from tests.fakes.faults import Fault, Killed, LateEffect, Steps
from wavestitch.contracts.errors import DataLost, GateClosed, Refused, StateUnknown, Terminal, Transient
from wavestitch.contracts.errors import Fenced as FencedRun

LOUD = (FencedRun, Refused, DataLost, Transient, StateUnknown, GateClosed, Killed)
PLAN_AGAIN = ("not stitched", "changed since")
"""What held and published waveforms may do under a run that holds nothing, or that picked among them."""
COMMITS = ("tables.commit", "tables.commit_rebuilt")
AT_A_COMMIT = (Fault.CONFLICT, Fault.RESENT)
AT_ONCE = 3
mostly_far = st.sampled_from(
    [
        "end",
        "end",
        "end",
        "tables.stage_held",
        "tables.commit",
        "tables.settle_held",
        "tables.append_batches",
        "log.commit_group",
        "log.read",
        "tables.head",
        "1",
        "4",
    ]
)


@dataclass
class Run:
    """One run under way. `plans_again`: whether it may end so. `carries`: whether it was handed its plan."""

    what: str
    steps: Steps
    plans_again: bool
    carries: bool

    @property
    def ended_well(self) -> bool:
        """Or as a run may end. No fault of ours leads to records that are altered or do not balance."""
        error = self.steps.error
        changed = type(error) is Terminal and any(text in str(error) for text in PLAN_AGAIN)
        return error is None or isinstance(error, LOUD) or (changed and self.plans_again)


class RunningMachine(ProducingMachine):
    """`on_the_way`: requests that somebody has given up on. `broken`: something was found, so that the end need not be
    looked at. `advice`: what a run was refused with last."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []
        self.launched = 0
        self.on_the_way: list[LateEffect] = []
        self.broken = False
        self.advice = ""

    def launch(
        self, what: str, call: Callable[[], Any], until: str, *, plans_again: bool = False, carries: bool = False
    ) -> None:
        self.launched += 1
        self.runs.append(Run(what, Steps(call, f"{what} {self.launched}"), plans_again, carries))
        self.advance(-1, until)

    @property
    def busy(self) -> bool:
        return len(self.runs) >= AT_ONCE

    @precondition(lambda self: self.runs)
    @rule(which=pick, until=mostly_far)
    def advance(self, which: int, until: str) -> None:
        run = self.runs[which % len(self.runs)]
        for n in range(1000):
            if (n and run.steps.at == until) or str(n) == until or not run.steps.advance():
                break
        self.settle_run(run)

    @precondition(lambda self: len(self.runs) > 1)
    @rule(turns=st.lists(st.integers(0, AT_ONCE - 1), min_size=5, max_size=60))
    def interleave(self, turns: list[int]) -> None:
        """One effect at a time, now of one run, now of another."""
        runs = list(self.runs)
        for turn in turns:
            runs[turn % len(runs)].steps.advance()
        for run in runs:
            self.settle_run(run)

    @precondition(lambda self: self.runs)
    @rule(which=pick, fault=st.sampled_from(Fault))
    def disturb(self, which: int, fault: Fault) -> None:
        """A commit is all that can conflict, or find itself there already."""
        run = self.runs[which % len(self.runs)]
        while fault in AT_A_COMMIT and not run.steps.done and run.steps.at not in COMMITS:
            run.steps.advance()
        run.steps.advance(fault)
        self.on_the_way += run.steps.late
        run.steps.late = []
        self.settle_run(run)

    @precondition(lambda self: self.on_the_way)
    @rule(which=pick, again=st.booleans())
    def a_late_effect_lands(self, which: int, again: bool) -> None:
        """A request that somebody has given up on; perhaps it comes once more."""
        effect = self.on_the_way.pop(which % len(self.on_the_way))
        if again:
            self.on_the_way.append(effect)
        effect.land()

    def settle_run(self, run: Run) -> None:
        if not run.steps.done:
            return
        self.runs.remove(run)
        error = run.steps.error
        if isinstance(error, DataLost | GateClosed | Refused):
            self.advice = str(error)
        if not run.ended_well:
            self.broken = True
            raise AssertionError(f"{run.what} ended with {error!r}") from error

    def kill_all(self) -> None:
        """Nobody is at work on a catalog that is put back (docs/operations.md), or on one that is gone."""
        for run in list(self.runs):
            run.steps.kill()
            self.settle_run(run)
        self.on_the_way.clear()

    def guard(self, check: Callable[[], None]) -> None:
        try:
            check()
        except BaseException:
            self.broken = True
            raise
