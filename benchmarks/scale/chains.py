"""What a batch takes, step by step, and what a chain of them reaches: measured figures put through the queues. Pure.

Nothing is said of larger rates before the same simulation has given back what was measured (`reproduced`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.figures import GIB
from benchmarks.scale.constants import (
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


@dataclass(frozen=True, slots=True)
class Form:
    """How a stream's batches are: bytes of a chunk, readers (`reading.workers`), cores of Spark's for one of them, the
    most bytes of a batch; how it comes to a Spark where each is a run of the DAG in Airflow; kept snapshots."""

    chunk: int
    readers: int
    cores: int
    most: float
    airflow: str | None = None
    snapshots: int = 0

    def tasks(self, size: float) -> int:
        return max(self.readers, math.ceil(size / TASK_BYTES))


@dataclass(frozen=True, slots=True)
class Compared:
    """A measured batch beside the simulated one."""

    name: str
    measured: Cost
    simulated: Cost
    fitted: bool
    held: bool

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
            if form.airflow is None:
                return sum(found.steps[n].once.wall for n in names)
            return sum(found.in_airflow[form.airflow][n] for n in names)

        def move(name: str, lanes: float = 1.0) -> float:
            """What its bytes take, and its chunks where they are smaller than those that were measured."""
            return gib * found.steps[name].per_gib.wall * lanes + found.a_chunk.get(name, 0.0) * small

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
    """Of all processes for a batch of so many bytes, outside of Airflow."""
    gib, small = size / GIB, max(0.0, size / form.chunk - size / found.chunk)
    steps = sum(s.once.cpu + gib * s.per_gib.cpu for s in found.steps.values())
    return steps + small * sum(found.a_chunk.values())


def batch_seconds(found: Measured, form: Form, size: float) -> float:
    """From planning to moved offsets, alone on the readers and the cores that it has."""
    servers = {READERS: form.readers, CORES: form.cores, BATCHES: 1}
    run = simulate([Source(0.0, size, waiting=size)], servers, steps_of(found, form), until=math.inf)
    return run.batches[0].ended


def chain_rate(found: Measured, form: Form) -> float:
    """Bytes a second that one stream gets through, batch after batch, each as large as it may be."""
    return form.most / batch_seconds(found, form, form.most)


def reproduced(found: Measured) -> list[Compared]:
    """Every measured batch of the growth, simulated on what it ran on. Raises `ValueError` where one that no constant
    is of is further off than `TOLERANCE`: then nothing follows from the figures. Batches over topics of their own are
    compared, too, but not held to it: of partitions the simulation knows nothing."""
    compared = []
    for name, row in found.growth.items():
        form = Form(found.chunk, LANES, LANES, row.gib * GIB)
        simulated = Cost(batch_seconds(found, form, form.most), cpu_seconds(found, form, form.most))
        compared.append(Compared(name, row.cost, simulated, row.fitted, row.held))
    held = [row for row in compared if row.held]
    if not held:
        raise ValueError(
            "no batch of the measured growth is held against the simulation; measure more sizes than one: `make bench`"
        )
    worst = max(held, key=lambda c: max(map(abs, c.off)))
    if max(map(abs, worst.off)) > TOLERANCE:
        raise ValueError(
            f"the simulation gives {worst.simulated.wall:.1f} s and {worst.simulated.cpu:.1f} CPU s for {worst.name!r} "
            f"of the measured growth, which took {worst.measured.wall:.1f} s and {worst.measured.cpu:.1f} CPU s; up to "
            f"{TOLERANCE:.0%} were allowed, so nothing is extrapolated: measure anew (`make bench`), or mend "
            "benchmarks/scale"
        )
    return compared
