"""What a measurement says, as values: runs, their medians, ratios, and how they compare with earlier ones. Pure.

Absolute figures drift with the machine; only ratios of runs that took turns on one machine hold. MB are 10^6 bytes of
payload, GiB and MiB are 2^30 and 2^20; CPU seconds are user and system of all processes of a part, the broker apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

MIB = 1 << 20
GIB = 1 << 30
Json = dict[str, Any]

LAYOUTS = {
    "sticky": "sticky",
    "round-robin": "round robin",
    "small": "chunks of 1 KiB",
    "device": "chunks of 512 bytes",
    "pages": "chunks of 4 KiB",
    "pairs": "waveforms of two chunks of 512 bytes",
}
"""The topics of the side-by-side, and what they are called."""

_BESIDE = {
    "spark": "Spark's Kafka source, warm",
    "typed_spark": "Spark's Kafka source, warm, typed",
    "by_hand": "by hand",
}
"""Whom a whole batch is compared with."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall and CPU seconds."""

    wall: float
    cpu: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.wall - other.wall, self.cpu - other.cpu)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one contender: what it cost, the payload bytes it got through, peak private MiB per kind of process,
    and what it says of itself."""

    cost: Cost
    size: int
    peak_mib: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


def summarise(runs: Sequence[Run]) -> Json:
    """Medians over the rounds; peaks are the largest that was seen. Raises `ValueError` without a run."""
    if not runs:
        raise ValueError("no run was measured; look for what failed above")
    walls = [r.cost.wall for r in runs]
    wall, size = median(walls), runs[0].size
    kinds = sorted({k for r in runs for k in r.peak_mib})
    return {
        "mb_s": rate(size, wall),
        "wall_s": round(wall, 3),
        "cpu_s": round(median(r.cost.cpu for r in runs), 3),
        "wall_s_rounds": [round(w, 3) for w in walls],
        "bytes": size,
        "peak_private_mib": {k: round(max(r.peak_mib.get(k, 0.0) for r in runs), 1) for k in kinds},
    }


def median_costs(rounds: Sequence[Mapping[str, Cost]]) -> dict[str, Json]:
    """Median wall and CPU seconds of each step over the rounds, in the order of the first round."""
    return {
        name: {
            "wall_s": round(median(r[name].wall for r in rounds if name in r), 3),
            "cpu_s": round(median(r[name].cpu for r in rounds if name in r), 3),
        }
        for name in rounds[0]
    }


def rate(size: int, seconds: float) -> float:
    """MB/s."""
    return round(size / 1e6 / seconds, 1) if seconds > 0 else 0.0


def ratio(found: float | None, base: float | None) -> float | None:
    """`found / base`; None where either is missing or nothing."""
    return None if not found or not base else round(found / base, 3)


def pick(results: Mapping[str, Any], *path: str) -> Any:
    """What stands at the path, or None where a part of it is missing (it failed, or was not asked for)."""
    at: Any = results
    for name in path:
        if not isinstance(at, Mapping) or name not in at:
            return None
        at = at[name]
    return at


def headline(parts: Mapping[str, Any]) -> Json:
    """The figures at the top level, from all parts; what was not measured is None."""
    side = "side-by-side"

    def speed(layout: str, contender: str) -> Any:
        return pick(parts, side, layout, contender, "mb_s")

    def cpu(layout: str, contender: str) -> Any:
        return pick(parts, side, layout, contender, "cpu_s")

    raw, raw1 = speed("sticky", "raw, 2 processes"), speed("sticky", "raw, 1 process")
    land = speed("sticky", "ours: read + land, 2 processes")
    whole, spark = speed("sticky", "ours: end to end, warm"), speed("sticky", "Spark's Kafka source, warm")
    return {
        "raw_consume_mb_s": raw,
        "raw_consume_1_process_mb_s": raw1,
        "spark_kafka_job_mb_s": spark,
        "read_and_land_mb_s": land,
        "end_to_end_mb_s": whole,
        "reader_private_mib": pick(parts, "reader-memory", "reader_private_mib") or {},
        "ratios": {
            "read_and_land_of_raw": ratio(land, raw),
            "read_and_land_of_raw_1_process": ratio(land, raw1),
            **{
                f"end_to_end_of_{name}_{layout.replace('-', '_')}": ratio(
                    speed(layout, "ours: end to end, warm"), speed(layout, contender)
                )
                for layout in LAYOUTS
                for name, contender in _BESIDE.items()
            },
            "read_and_land_of_raw_small": ratio(
                speed("small", "ours: read + land, 2 processes"), speed("small", "raw, 2 processes")
            ),
            "cpu_of_by_hand_sticky": ratio(cpu("sticky", "ours: end to end, warm"), cpu("sticky", "by hand")),
            "cpu_of_spark_device": ratio(
                cpu("device", "ours: end to end, warm"), cpu("device", "Spark's Kafka source, warm")
            ),
            "stitching_cpu_of_pyarrow": ratio(cpu("sticky", "ours: stitching"), cpu("sticky", "pyarrow: stitching")),
            "read_and_land_of_parallel_consumer": ratio(land, speed("sticky", "Parallel Consumer")),
            **_part_ratios(parts),
        },
    }


_PART_RATIOS = {
    "time_per_gib_largest_of_smallest": ("growth", "time_per_gib_largest_of_smallest"),
    "one_partition_in_slices_of_four": ("growth", "one_partition_of_four"),
    "small_batch_of_spark_floor": ("small-batch", "of_spark_floor"),
    "small_batch_there_of_submit": ("standing-spark", "wall_of_submit"),
    "small_batch_there_of_submit_cpu": ("standing-spark", "cpu_of_submit"),
    "small_batch_of_airflow_and_spark_floor": ("airflow", "of_floor"),
    "grown_table_of_empty": ("grown-table", "grown_of_empty"),
    "large_waveform_time_per_chunk": ("large-waveform", "time_per_chunk_largest_of_smallest"),
    "day_of_small_files_of_one_file": ("small-files", "day_of_small_files_of_one_file"),
    "compacted_day_of_one_file": ("small-files", "compacted_day_of_one_file"),
    "junk_of_none": ("junk", "many_of_none"),
    "junk_in_small_files_of_none": ("junk", "small_of_none"),
    "junk_memory_of_none": ("junk", "many_memory_of_none"),
    "rewound_day_of_one_day": ("rewound-day", "many_of_one_day"),
}


def _part_ratios(parts: Mapping[str, Any]) -> Json:
    return {name: pick(parts, *path) for name, path in _PART_RATIOS.items()}


def compare(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """One line for each ratio that both have: what it is, what it was, and by how much it moved."""
    lines = []
    for name, value in now.items():
        was = then.get(name)
        if value is None or not was:
            continue
        lines.append(f"{name:44}{value:9.2f}  committed {was:8.2f}  {100 * (value / was - 1):+6.0f} %")
    return lines
