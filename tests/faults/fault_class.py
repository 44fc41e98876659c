"""What a fault class is: something that goes wrong on real parts, in seeded cases, and what a run of one must come to.

A class never judges by itself whether data are whole: it brings `Counts`, made by comparing what was produced with what
the tables hold. `tests/faults/campaign.py` runs all classes, case by case, and adds up; `make test` runs a fixed few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.faults.cluster import Cluster


class Need(StrEnum):
    """What the campaign starts once, for all classes that need it."""

    BROKER = "broker"
    CLUSTER = "cluster"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Bench:
    """Where a case runs. `folder` is new and empty; `bootstrap` empty where the class needs no Kafka."""

    folder: Path
    bootstrap: str
    java_home: Path
    cluster: Cluster | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """What a case came to, against what was produced.

    `records`: chunks produced. `lost`, `duplicated`, `altered`: waveforms, or chunks where a class counts those.
    `unexplained_gaps`: offsets. `ends`: how each run of the platform under the fault ended, in its own words
    (`done`, or the name of the error); an end that took longer than its deadline is a failure of the case, not a word.
    `steps`: of the protocol's model, how often each was taken, in sum over partitions.
    `longest_run`: seconds of the longest of them, against `run_deadline`.
    """

    records: int
    lost: int = 0
    duplicated: int = 0
    altered: int = 0
    unexplained_gaps: int = 0
    ends: tuple[str, ...] = ()
    steps: Mapping[str, int] = field(default_factory=dict)
    longest_run: float = 0.0
    run_deadline: float = 0.0

    @property
    def clean(self) -> bool:
        return not (self.lost or self.duplicated or self.altered or self.unexplained_gaps)


@dataclass(frozen=True, slots=True)
class FaultClass:
    """`rows`: of the fault matrix in docs/guarantees.md. `run(bench, seed)`: one case; raises where it failed.

    `cases`: how many a whole campaign runs, seeds 0 to cases - 1. `quick`: the seeds that `make test` runs.
    """

    name: str
    rows: tuple[int, ...]
    need: Need
    cases: int
    quick: tuple[int, ...]
    run: Callable[[Bench, int], Counts]


def named(value: object) -> str:
    """A class, or a seed, as part of a test's name."""
    return value.name.replace(" ", "-") if isinstance(value, FaultClass) else str(value)
