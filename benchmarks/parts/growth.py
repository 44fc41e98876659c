"""Time per GiB as batches grow, and one partition in slices against four partitions. Spark's heap is 1 GiB throughout.

DeploymentRig batches, warm, one after another in turns; larger batches than 4 GiB are measured once.
"""

from __future__ import annotations

from benchmarks.children import Child, Json, start
from benchmarks.figures import GIB, Run, ratio, summarise
from benchmarks.options import Options
from benchmarks.parts.reader_memory import big_topic, first_part
from benchmarks.test_bed import Say, TestBed
from benchmarks.whole_runs import whole_run

_MANY_ROUNDS_UP_TO = 4.0
_TOPIC_LANDING_AND_TABLE = 3.5


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    bed.need(int(max(options.sizes) * GIB * _TOPIC_LANDING_AND_TABLE), "growth")
    runs: dict[str, list[Run]] = {}
    with start("benchmarks.contenders.whole", folder=bed.folder, env={"JAVA_HOME": str(bed.java_home)}) as child:
        _sizes(bed, options, say, child, runs)
        _partitions(bed, options, say, child, runs)
    rows = {name: summarise(mine) for name, mine in runs.items()}
    small, large = (f"{f(options.sizes):g} GiB" for f in (min, max))
    head = ["batch", "wall s", "s per GiB", "CPU s per GiB", "JVM private MiB", "Spark worker MiB", "reader MiB"]
    return {
        "rows": rows,
        "time_per_gib_largest_of_smallest": ratio(_per_gib(rows[large]), _per_gib(rows[small])),
        "one_partition_of_four": ratio(rows["one partition, two slices"]["wall_s"], rows["four partitions"]["wall_s"]),
        "table": [head, *(_line(name, row) for name, row in rows.items())],
    }


def _sizes(bed: TestBed, options: Options, say: Say, child: Child, runs: dict[str, list[Run]]) -> None:
    topic = big_topic(bed, options, say)
    for round_ in range(options.rounds + 1):
        for size in sorted(options.sizes):
            if size > _MANY_ROUNDS_UP_TO and round_ != 1:
                continue
            if round_ == 0 and size > min(options.sizes):
                continue  # one of them warms the session up for all
            part = first_part(topic, size)
            most = None if part.records == topic.records else part.records
            run = whole_run(bed, child, topic, most=most, check=False)
            say(f"{size:g} GiB: {run.cost.wall:.1f} s, {run.cost.cpu:.1f} CPU s{' (warm-up)' if not round_ else ''}")
            if round_ > 0:
                runs.setdefault(f"{size:g} GiB", []).append(run)


def _partitions(bed: TestBed, options: Options, say: Say, child: Child, runs: dict[str, list[Run]]) -> None:
    mib = int(min(options.sizes) * 1024)
    topics = {
        "four partitions": bed.topic(mib=mib, layout="sticky", partitions=4, say=say),
        "one partition, two slices": bed.topic(mib=mib, layout="sticky", partitions=1, say=say),
    }
    for _ in range(options.rounds):
        for name, topic in topics.items():
            run = whole_run(bed, child, topic, check=False)
            say(f"{name}: {run.cost.wall:.1f} s, {run.cost.cpu:.1f} CPU s")
            runs.setdefault(name, []).append(run)


def _per_gib(row: Json) -> float:
    return float(row["wall_s"] / (row["bytes"] / GIB))


def _line(name: str, row: Json) -> list[object]:
    peaks = row["peak_private_mib"]
    gib = row["bytes"] / GIB
    found = [round(peaks.get(kind, 0)) for kind in ("jvm", "spark worker", "reader")]
    return [name, row["wall_s"], row["wall_s"] / gib, row["cpu_s"] / gib, *found]
