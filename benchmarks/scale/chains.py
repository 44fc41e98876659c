"""What a batch takes, step by step, and what a chain of them reaches: measured figures put through the queues. Pure.

Nothing is said of larger rates before the same simulation has given back what was measured (`reproduced`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.figures import GIB
from benchmarks.scale.constants import (
    ANCHOR,
    BETWEEN,
    INDEX,
    LANES,
    OFFSETS,
    PLAN,
    PUBLISH,
    READ,
    STITCH,
    VALIDATE,
    Cost,
    Measured,
)
from benchmarks.scale.queues import Source, Steps, Work, simulate
from wavestitch.batch.reassemble import TASK_BYTES
from wavestitch.contracts.batch_size import RECORD_HEADERS, batch_offsets
from wavestitch.contracts.stream import Limits

TOLERANCE = 0.15
READERS, CORES, BATCHES = "readers", "Spark's cores", "processes that carry a batch"
MEASURED_ON = {READERS: LANES, CORES: LANES, BATCHES: 1}


@dataclass(frozen=True, slots=True)
class Form:
    """How a stream's batches are: bytes of a chunk, readers (`reading.workers`), the most bytes of a batch; whether
    each is a run of the DAG in Airflow that starts a Spark; kept snapshots; whether the log lies in memory."""

    chunk: int
    readers: int
    most: float
    airflow: bool = False
    snapshots: int = 0
    cold: bool = True

    def tasks(self, size: float) -> int:
        return max(self.readers, math.ceil(size / TASK_BYTES))


@dataclass(frozen=True, slots=True)
class Compared:
    """A measured batch beside the simulated one. `anchor`: of it a constant was taken."""

    name: str
    measured: Cost
    simulated: Cost
    anchor: bool

    @property
    def off(self) -> tuple[float, float]:
        """By how much of what was measured, wall and CPU."""
        return self.simulated.wall / self.measured.wall - 1, self.simulated.cpu / self.measured.cpu - 1


def most_bytes(chunk: int, limits: Limits) -> float:
    """What a batch of such chunks takes at most, as the plan reckons: of its bytes a share, and so many records."""
    return float(chunk * batch_offsets(limits, mean=chunk + RECORD_HEADERS, stops=()))


def steps_of(found: Measured, form: Form) -> Steps:
    """The steps of a batch of so many bytes."""

    def steps(size: float) -> Sequence[Work]:
        gib = size / GIB
        small = max(0.0, size / form.chunk - size / found.chunk)

        def begin(*names: str) -> float:
            """What these take once a batch, all of it in the process that carries it."""
            return sum(found.in_airflow[n] if form.airflow else found.steps[n].once.wall for n in names)

        def move(name: str, lanes: float = 1.0) -> float:
            """What its bytes take, and its chunks where they are smaller than those that were measured."""
            step = found.steps[name]
            each = step.per_gib.wall + (step.cold.wall if form.cold else 0.0)
            return gib * each * lanes + found.a_chunk.get(name, 0.0) * small

        kept = found.snapshot * form.snapshots
        tasks = form.tasks(size)
        last = (VALIDATE, PUBLISH, OFFSETS, BETWEEN)
        return [
            Work(BATCHES, 1, begin(PLAN, READ) + kept / 2),
            Work(READERS, form.readers, move(READ, LANES) / form.readers, lands=True),
            Work(BATCHES, 1, move(INDEX) + begin(INDEX, STITCH)),
            Work(CORES, tasks, move(STITCH, LANES) / tasks),
            Work(BATCHES, 1, begin(*last) + sum(move(name) for name in last) + kept / 2),
        ]

    return steps


def cpu_seconds(found: Measured, form: Form, size: float) -> float:
    """Of all processes for a batch of so many bytes."""
    gib, small = size / GIB, max(0.0, size / form.chunk - size / found.chunk)
    each = sum(s.per_gib.cpu + (s.cold.cpu if form.cold else 0.0) for s in found.steps.values())
    once = found.small_batch_cpu if form.airflow else sum(s.once.cpu for s in found.steps.values())
    return once + gib * each + small * sum(found.a_chunk.values())


def batch_seconds(found: Measured, form: Form, size: float, servers: Mapping[str, int] | None = None) -> float:
    """From planning to moved offsets, alone on so many servers (as many as it has pieces)."""
    ample = {READERS: form.readers, CORES: form.tasks(size), BATCHES: 1}
    run = simulate([Source(0.0, size, waiting=size)], servers or ample, steps_of(found, form), until=math.inf)
    return run.batches[0].ended


def chain_rate(found: Measured, form: Form) -> float:
    """Bytes a second that one stream gets through, batch after batch, each as large as it may be."""
    return form.most / batch_seconds(found, form, form.most)


def reproduced(found: Measured) -> list[Compared]:
    """Every measured batch of the growth, simulated on what it ran on. Raises `ValueError` where one is further off
    than `TOLERANCE`: then nothing follows from the figures."""
    compared = []
    for name, row in found.growth.items():
        form = Form(found.chunk, LANES, row.gib * GIB, cold=row.cold)
        wall = batch_seconds(found, form, form.most, MEASURED_ON)
        simulated = Cost(wall, cpu_seconds(found, form, form.most))
        compared.append(Compared(name, row.cost, simulated, name == ANCHOR))
    worst = max(compared, key=lambda c: max(map(abs, c.off)))
    if max(map(abs, worst.off)) > TOLERANCE:
        raise ValueError(
            f"the simulation gives {worst.simulated.wall:.1f} s and {worst.simulated.cpu:.1f} CPU s for {worst.name!r} "
            f"of the measured growth, which took {worst.measured.wall:.1f} s and {worst.measured.cpu:.1f} CPU s; up to "
            f"{TOLERANCE:.0%} were allowed, so nothing is extrapolated: measure anew (`make bench`), or mend "
            "benchmarks/scale"
        )
    return compared
