"""Many random histories, one after another: each seed is played, healed and analysed by itself. Keeps only sums.

The same seed gives the same history, so that a finding is its own reproduction.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.histories.anomaly import Anomaly
from tests.histories.checker import analyse
from tests.histories.events import Produced, Published
from tests.histories.history import History
from tests.histories.play import Play
from tests.histories.swarm import Swarm
from tests.histories.tracing import OffTrack, follow

SHORTEST, LONGEST = 20, 160


@dataclass
class Summary:
    """`anomalies`: seed → what was found. `kinds_of_faults`: what was done, how often."""

    histories: int = 0
    records: int = 0
    published: int = 0
    events: int = 0
    seconds: float = 0.0
    ops: Counter[str] = field(default_factory=Counter)
    anomalies: dict[int, list[str]] = field(default_factory=dict)

    def add(self, other: Summary) -> None:
        self.histories += other.histories
        self.records += other.records
        self.published += other.published
        self.events += other.events
        self.seconds += other.seconds
        self.ops += other.ops
        self.anomalies |= other.anomalies

    def claim(self) -> str:
        """The one line that may be quoted, or that says that it may not."""
        rate = self.histories / self.seconds if self.seconds else 0.0
        counted = f"{self.histories} histories, {self.records} records, {self.published} waveforms published"
        if self.anomalies:
            return f"{counted}: ANOMALIES in seeds {sorted(self.anomalies)[:20]}"
        return f"{counted}: 0 lost, 0 duplicated, 0 altered, 0 unexplained gaps ({rate:.1f} histories a second)"


def play_history(
    seed: int, act: str = "", *, promotes: bool = True, swarm: bool = True
) -> tuple[History, Counter[str]]:
    """`act`: what is done on purpose, before it is healed; then the rest of the history is shorter. `promotes`: whether
    it may have promotions among the rest. `swarm`: half of its acts only, and requests that land late."""
    play = Play(seed)
    play.promotes = play.promotes and promotes
    play.swarm = Swarm(seed, on=swarm)
    play.on_purpose = act
    return play.play(play.random.randint(SHORTEST, LONGEST) // (5 if act else 1)), play.ops


def judge(history: History) -> list[Anomaly]:
    """With the histories of copies of its tables."""
    return [a for one in (history, *history.copies) for a in analyse(one)]


def judge_whole(history: History) -> tuple[list[str], Counter[str]]:
    """The same, and whether it is a way through the model, with the steps that it took."""
    anomalies, steps = [str(a) for a in judge(history)], Counter[str]()
    for one in (history, *history.copies):
        try:
            steps += follow(one)
        except OffTrack as off:
            anomalies.append(f"off the track of the model: {off}")
    return anomalies, steps


def check_seed(seed: int, act: str = "", *, promotes: bool = True, swarm: bool = True) -> list[Anomaly]:
    return judge(play_history(seed, act, promotes=promotes, swarm=swarm)[0])


def run_histories(*, first_seed: int, count: int, deadline_seconds: float) -> Summary:
    """Play and analyse `count` seeds, or as many as the deadline allows."""
    found = Summary()
    began = time.monotonic()
    for seed in range(first_seed, first_seed + count):
        if time.monotonic() - began > deadline_seconds:
            break
        history, ops = play_history(seed)
        anomalies, steps = judge_whole(history)
        found.ops += {f"model: {step}": n for step, n in steps.items()}
        found.histories += 1
        found.records += _count(history, Produced)
        found.published += _count(history, Published)
        found.events += len(history)
        found.ops += ops
        if anomalies:
            found.anomalies[seed] = anomalies
    found.seconds = time.monotonic() - began
    return found


def _count(history: History, kind: Any) -> int:
    return sum(isinstance(e, kind) for e in history)
