"""What was measured, read from `benchmarks/results`: no figure of a machine is typed in here. Pure.

Wall seconds are of the machine that measured, with `LANES` readers and as many of Spark's tasks side by side. A step
takes something once a batch and something for each GiB: the first is what a tiny batch takes on a new table, the second
what a warm batch of one GiB takes beyond it. What a GiB takes more where the log does not lie in memory is of the batch
of 4 GiB (the size that a stream's limits allow by default); of it the reader's share was measured by itself.

No other row of the growth is used here: those are what the simulation is held against (`reproduced`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.figures import GIB, rate

Json = Mapping[str, Any]

LANES = 2
"""Readers of a unit each, and tasks of Spark, in every measurement that is used."""
PLAN, READ, INDEX, STITCH = "plan", "read", "index and assign", "stitch"
VALIDATE, PUBLISH, OFFSETS, BETWEEN = "validate", "publish", "commit offsets", "between steps"
STEPS = (PLAN, READ, INDEX, STITCH, VALIDATE, PUBLISH, OFFSETS, BETWEEN)
ANCHOR = "4 GiB"
_COLD = ("1 GiB", ANCHOR, "16 GiB")
_WARM = ("four partitions", "one partition, two slices")
"""Rows of the growth: parts of one large topic, and topics of 1 GiB that were written just before. The largest is only
measured where there is room for it."""
_ROUNDING = 0.002
_ROUNDING_MB_S = 0.2
_OVERLAP = 0.05
"""Medians of steps need not add up to the median of the whole."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall and CPU seconds."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Step:
    """What a batch takes in it: once, for each GiB, and for each GiB more where the log is not in memory."""

    once: Cost
    per_gib: Cost
    cold: Cost


@dataclass(frozen=True, slots=True)
class Grown:
    """A row of the measured growth."""

    gib: float
    cost: Cost
    cold: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """`chunk`: bytes of the chunks that `steps` were measured with; `a_chunk`: CPU seconds of a small one, by step;
    `in_airflow`: wall seconds of a batch of 1 MB, by step; `snapshot`: seconds that each of `snapshots` added to
    plan and publish; `smaller`: bytes sent over bytes on disk, of the signal that shrinks least."""

    steps: Mapping[str, Step]
    growth: Mapping[str, Grown]
    chunk: int
    a_chunk: Mapping[str, float]
    index_bytes: int
    in_airflow: Mapping[str, float]
    small_batch_cpu: float
    snapshot: float
    snapshots: int
    smaller: float
    parsing: Json
    runs: Mapping[str, Json]
    when: Mapping[str, str]


def read_constants(latest: Json, small_records: Json, many_streams: Json, many_runs: Mapping[str, Json]) -> Measured:
    """Raises `ValueError` where figures that belong together contradict each other: somebody has changed them."""
    parts = latest["parts"]
    warm = parts["side-by-side"]["sticky"]["ours: end to end, warm"]
    growth = parts["growth"]["rows"]
    for name, row in {"ours: end to end, warm": warm, **growth}.items():
        _agrees_with_itself(name, row)
    steps = _steps(parts["grown-table"]["steps"]["fresh"], warm, growth[ANCHOR], parts["reader-memory"]["table"])
    grown, new = (parts["grown-table"]["steps"][kind] for kind in ("grown", "fresh"))
    more = sum(grown[step]["wall_s"] - new[step]["wall_s"] for step in ("plan", "publish"))
    kept = _snapshots(parts["grown-table"]["table"])
    records = {name: cost["cpu_s"] / small_records["records"] for name, cost in small_records["steps"].items()}
    return Measured(
        steps=steps,
        growth={name: _grown(growth[name], cold=name in _COLD) for name in (*_COLD, *_WARM) if name in growth},
        chunk=parts["side-by-side"]["chunk_kib"] << 10,
        a_chunk={
            READ: records["land"],
            INDEX: records["index"] + records["decide what is whole"] + records["assign"],
            STITCH: records["stitch"],
            PUBLISH: sum(cost for name, cost in records.items() if name.startswith("publish")),
        },
        index_bytes=small_records["bytes_a_chunk"]["index and assembly"],
        in_airflow=_in_airflow(parts["airflow"]["table"]),
        small_batch_cpu=parts["small-batch"]["rows"]["a batch of 1 MB"]["cpu_s"],
        snapshot=more / kept,
        snapshots=kept,
        smaller=min(found["fast"]["ratio"] for found in parts["table-size"].values() if "fast" in _keys(found)),
        parsing=many_streams,
        runs=many_runs,
        when={
            **{
                name: parts[name]["when"]
                for name in ("side-by-side", "growth", "grown-table", "airflow", "small-batch")
            },
            "small records": small_records["when"],
            "many streams": many_streams["when"],
            "many runs": max(found["when"] for found in many_runs.values()),
        },
    )


def _agrees_with_itself(name: str, row: Json) -> None:
    medians = abs(median(row["wall_s_rounds"]) - row["wall_s"])
    rates = abs(rate(row["bytes"], row["wall_s"]) - row["mb_s"])
    if medians > _ROUNDING or rates > _ROUNDING_MB_S:
        raise ValueError(
            f"benchmarks/results: {name!r} says {row['wall_s']} s and {row['mb_s']} MB/s, its rounds say "
            f"{row['wall_s_rounds']} s for {row['bytes']} bytes; figures are measured, never written: `make bench`"
        )


def _steps(tiny: Json, warm: Json, anchor: Json, reading: list[list[Any]]) -> dict[str, Step]:
    once, gib = (
        _by_step(tiny, tiny["whole"]),
        _by_step(warm["steps"], {"wall_s": warm["wall_s"], "cpu_s": warm["cpu_s"]}),
    )
    size = warm["bytes"] / GIB
    each = {
        name: Cost(max(0.0, gib[name].wall - once[name].wall) / size, max(0.0, gib[name].cpu - once[name].cpu) / size)
        for name in STEPS
    }
    read = _cold_reading(reading, anchor["bytes"] / GIB, once[READ], each[READ])
    whole = _cold_whole(anchor, list(once.values()), list(each.values()))
    cold = {READ: read, STITCH: Cost(max(0.0, whole.wall - read.wall), max(0.0, whole.cpu - read.cpu))}
    return {name: Step(once[name], each[name], cold.get(name, Cost(0.0, 0.0))) for name in STEPS}


def _by_step(steps: Json, whole: Json) -> dict[str, Cost]:
    """Of a table in which *reassemble* has what it did in Spark, and *whole* what passed between the steps."""
    found = {name: Cost(row["wall_s"], row["cpu_s"]) for name, row in steps.items()}
    spark, reassembled = found["Spark"], found["reassemble"]
    named = {name: found[name] for name in (PLAN, READ, VALIDATE, PUBLISH, OFFSETS)}
    named[INDEX] = Cost(reassembled.wall - spark.wall, reassembled.cpu - spark.cpu)
    named[STITCH] = spark
    rest = Cost(
        whole["wall_s"] - sum(c.wall for c in named.values()), whole["cpu_s"] - sum(c.cpu for c in named.values())
    )
    if rest.wall < -_OVERLAP * whole["wall_s"] or rest.cpu < -_OVERLAP * whole["cpu_s"]:
        raise ValueError(
            f"benchmarks/results: the steps of a batch take {-rest.wall:.2f} s and {-rest.cpu:.2f} CPU s more than the "
            f"whole of it, {whole['wall_s']} s and {whole['cpu_s']} CPU s; figures are measured, never written: "
            "`make bench`"
        )
    named[BETWEEN] = Cost(max(0.0, rest.wall), max(0.0, rest.cpu))
    return named


def _cold_reading(table: list[list[Any]], gib: float, once: Cost, each: Cost) -> Cost:
    """Of the reading alone, over the same part of the same large topic."""
    mb_s, cpu = next((row[2], row[3]) for row in table[1:] if float(row[0]) == gib)
    wall = gib * GIB / 1e6 / mb_s
    return Cost(max(0.0, (wall - once.wall) / gib - each.wall), max(0.0, (cpu - once.cpu) / gib - each.cpu))


def _cold_whole(anchor: Json, once: list[Cost], each: list[Cost]) -> Cost:
    gib = anchor["bytes"] / GIB
    found = Cost(anchor["wall_s"], anchor["cpu_s"])
    return Cost(
        (found.wall - sum(c.wall for c in once)) / gib - sum(c.wall for c in each),
        (found.cpu - sum(c.cpu for c in once)) / gib - sum(c.cpu for c in each),
    )


def _grown(row: Json, *, cold: bool) -> Grown:
    return Grown(row["bytes"] / GIB, Cost(row["wall_s"], row["cpu_s"]), cold)


def _in_airflow(table: list[list[Any]]) -> dict[str, float]:
    """A batch of 1 MB by a run of the DAG, Spark by spark-submit: seconds of each task, and between them."""
    said = {str(row[0]).removeprefix("· "): row[1] for row in table[1:]}
    return {
        PLAN: said["plan"],
        READ: said["read"],
        INDEX: 0.0,
        STITCH: said["reassemble"],
        VALIDATE: said["validate"],
        PUBLISH: said["publish"],
        OFFSETS: said["commit_offsets"],
        BETWEEN: said["between tasks"],
    }


def _snapshots(table: list[list[Any]]) -> int:
    """How many the grown table has; its heading says so: `10,000,000 ids, 10,000 snapshots: wall s`."""
    return int(str(table[0][1]).split(" snapshots")[0].rsplit(" ", 1)[-1].replace(",", ""))


def _keys(found: Any) -> Json:
    return found if isinstance(found, Mapping) else {}
