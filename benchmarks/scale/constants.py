"""What was measured, read from `benchmarks/results`: no figure of a machine is typed in here. Pure.

Wall seconds are of the machine that measured, with `LANES` readers and as many of Spark's tasks side by side. A step
takes something once a batch and something for each GiB. Both are of two batches of the growth, one tiny, over parts of
one topic; the other batches over parts of that topic took turns with them, and are what the simulation is held against
(`reproduced`). So what is compared is a ratio within one run: a machine that is slower on another day is it for both.
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
SUBMIT, THERE = "spark-submit", "a Spark that is there"
_WAYS = (SUBMIT, THERE)
"""In which a batch in Airflow comes to a Spark."""
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
    """What a batch takes in it: once, and for each GiB."""

    once: Cost
    per_gib: Cost


@dataclass(frozen=True, slots=True)
class Grown:
    """A row of the measured growth. `fitted`: constants are of it; `held`: it has to come out."""

    gib: float
    cost: Cost
    fitted: bool
    held: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """`chunk`: bytes of the chunks that `steps` were measured with; `a_chunk`: CPU seconds of a small one, by step;
    `in_airflow`: wall seconds of a batch of 1 MB, by how it comes to a Spark and by step; `snapshot`: seconds that each
    of `snapshots` added to plan and publish; `smaller`: bytes sent over bytes on disk, of the signal that shrinks
    least."""

    steps: Mapping[str, Step]
    growth: Mapping[str, Grown]
    chunk: int
    a_chunk: Mapping[str, float]
    index_bytes: int
    in_airflow: Mapping[str, Mapping[str, float]]
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
    growth, rows = parts["growth"], parts["growth"]["rows"]
    for name, row in rows.items():
        _agrees_with_itself(name, row)
    steps = _steps(*(rows[name] for name in growth["fitted"]))
    grown, new = (parts["grown-table"]["steps"][kind] for kind in ("grown", "fresh"))
    more = sum(grown[step]["wall_s"] - new[step]["wall_s"] for step in ("plan", "publish"))
    kept = _snapshots(parts["grown-table"]["table"])
    records = {name: cost["cpu_s"] / small_records["records"] for name, cost in small_records["steps"].items()}
    return Measured(
        steps=steps,
        growth={name: _grown(name, growth) for name in rows},
        chunk=growth["chunk_kib"] << 10,
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
            **{name: parts[name]["when"] for name in ("growth", "grown-table", "airflow", "small-batch")},
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


def _steps(tiny: Json, small: Json) -> dict[str, Step]:
    """Lines through what both took."""
    few, many = _by_step(tiny), _by_step(small)
    size, more = tiny["bytes"] / GIB, (small["bytes"] - tiny["bytes"]) / GIB
    found = {}
    for name in STEPS:
        wall = max(0.0, many[name].wall - few[name].wall) / more
        cpu = max(0.0, many[name].cpu - few[name].cpu) / more
        once = Cost(max(0.0, few[name].wall - wall * size), max(0.0, few[name].cpu - cpu * size))
        found[name] = Step(once, Cost(wall, cpu))
    return found


def _by_step(whole: Json) -> dict[str, Cost]:
    """Of a row in whose steps *reassemble* has what it did in Spark; the whole has what passed between them, too."""
    found = {name: Cost(row["wall_s"], row["cpu_s"]) for name, row in whole["steps"].items()}
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


def _grown(name: str, growth: Json) -> Grown:
    row = growth["rows"][name]
    cost = Cost(row["wall_s"], row["cpu_s"])
    return Grown(row["bytes"] / GIB, cost, fitted=name in growth["fitted"], held=name in growth["held_out"])


def _in_airflow(table: list[list[Any]]) -> dict[str, dict[str, float]]:
    """A batch of 1 MB by a run of the DAG: seconds of each task, and between them."""
    ways = [str(title).removesuffix(", s") for title in table[0]]
    return {way: _tasks({str(row[0]).removeprefix("· "): row[ways.index(way)] for row in table}) for way in _WAYS}


def _tasks(said: Mapping[str, Any]) -> dict[str, float]:
    return {
        PLAN: said["plan"],
        READ: said["read"],
        INDEX: 0.0,
        STITCH: said["reassemble"],
        VALIDATE: said["validate"] + said.get("answered", 0.0),
        PUBLISH: said["publish"],
        OFFSETS: said["commit_offsets"],
        # Where the gate is open nobody is asked: that task has no slot, and may have no times.
        BETWEEN: said["between tasks"] + said.get("ask", 0.0),
    }


def _snapshots(table: list[list[Any]]) -> int:
    """How many the grown table has; its heading says so: `10,000,000 ids, 10,000 snapshots: wall s`."""
    return int(str(table[0][1]).split(" snapshots")[0].rsplit(" ", 1)[-1].replace(",", ""))


def _keys(found: Any) -> Json:
    return found if isinstance(found, Mapping) else {}
