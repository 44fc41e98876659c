"""Time per GiB as batches grow, and one partition in slices against four partitions. Spark's heap is 1 GiB throughout.

DeploymentRig batches, warm, one after another in turns; larger batches than 4 GiB are measured once. Two sizes more
take turns with those that were asked for: what docs/scale.md reckons with is of these two, and held against the others,
so that nothing is compared which was measured at another hour.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchmarks.children import Child, Json, start
from benchmarks.figures import GIB, MIB, Run, median_costs, ratio, summarise
from benchmarks.options import Options
from benchmarks.parts.reader_memory import big_topic, first_part
from benchmarks.test_bed import Say, TestBed, Topic
from benchmarks.whole_runs import steps_of, whole_run

_MANY_ROUNDS_UP_TO = 4.0
_PARTITIONS, _SLICES = "four partitions", "one partition, two slices"
_TINY, _SMALL = 1 / 16, 2.0
"""Of the smallest size that was asked for: what a batch takes once, and what its bytes take."""
_TOPIC_LANDING_AND_TABLE = 3.5


@dataclass(frozen=True, slots=True)
class _Batch:
    """`most`: offsets of the topic, from its beginning; None: all."""

    topic: Topic
    gib: float
    most: int | None = None


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    fitted = [min(options.sizes) * share for share in (_TINY, _SMALL)]
    every = replace(options, sizes=tuple(sorted({*options.sizes, *fitted})))
    bed.need(int(max(every.sizes) * GIB * _TOPIC_LANDING_AND_TABLE), "growth")
    topic = big_topic(bed, every, say)
    batches = {name_of(size): _part(topic, size) for size in every.sizes} | _of_their_own(bed, min(options.sizes), say)
    runs: dict[str, list[Run]] = {name: [] for name in batches}
    with start("benchmarks.contenders.whole", folder=bed.folder, env={"JAVA_HOME": str(bed.java_home)}) as child:
        _run(bed, child, batches[name_of(fitted[-1])], "warm-up", say)  # one of them warms the session up for all
        for round_ in range(options.rounds):
            for name, batch in batches.items():
                if batch.gib <= _MANY_ROUNDS_UP_TO or round_ == 0:
                    runs[name].append(_run(bed, child, batch, name, say))
    rows = {name: {**summarise(mine), "steps": median_costs(list(map(steps_of, mine)))} for name, mine in runs.items()}
    small, large = (name_of(f(options.sizes)) for f in (min, max))
    head = ["batch", "wall s", "s per GiB", "CPU s per GiB", "JVM private MiB", "Spark worker MiB", "reader MiB"]
    return {
        "rows": rows,
        "fitted": list(map(name_of, fitted)),
        "held_out": [name_of(size) for size in every.sizes if size not in fitted],
        "chunk_kib": topic.bytes // topic.records >> 10,
        "time_per_gib_largest_of_smallest": ratio(_per_gib(rows[large]), _per_gib(rows[small])),
        "one_partition_of_four": ratio(rows[_SLICES]["wall_s"], rows[_PARTITIONS]["wall_s"]),
        "table": [head, *(_line(name, row) for name, row in rows.items())],
    }


def _part(topic: Topic, size: float) -> _Batch:
    part = first_part(topic, size)
    return _Batch(topic, size, None if part.records == topic.records else part.records)


def _of_their_own(bed: TestBed, size: float, say: Say) -> dict[str, _Batch]:
    mib = int(size * 1024)
    return {
        name: _Batch(bed.topic(mib=mib, layout="sticky", partitions=partitions, say=say), size)
        for name, partitions in ((_PARTITIONS, 4), (_SLICES, 1))
    }


def _run(bed: TestBed, child: Child, batch: _Batch, name: str, say: Say) -> Run:
    run = whole_run(bed, child, batch.topic, most=batch.most, check=False)
    say(f"{name}: {run.cost.wall:.1f} s, {run.cost.cpu:.1f} CPU s")
    return run


def name_of(gib: float) -> str:
    """Of a batch of so many GiB."""
    return f"{gib:g} GiB" if gib >= 1 else f"{gib * GIB / MIB:g} MiB"


def _per_gib(row: Json) -> float:
    return float(row["wall_s"] / (row["bytes"] / GIB))


def _line(name: str, row: Json) -> list[object]:
    peaks = row["peak_private_mib"]
    gib = row["bytes"] / GIB
    found = [round(peaks.get(kind, 0)) for kind in ("jvm", "spark worker", "reader")]
    return [name, row["wall_s"], row["wall_s"] / gib, row["cpu_s"] / gib, *found]
