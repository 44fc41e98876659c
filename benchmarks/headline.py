"""The figures that have a goal, or are told first, taken out of the parts of a measurement. Pure.

Nothing is reckoned here but ratios of two figures of one part, and a sum of two; what was not measured is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.figures import Json, pick, ratio

LAYOUTS = {
    "sticky": "sticky",
    "round-robin": "round robin",
    "small": "chunks of 1 KiB",
    "device": "chunks of 512 bytes",
    "pages": "chunks of 4 KiB",
    "pairs": "waveforms of two chunks of 512 bytes",
}
"""The topics of the side-by-side, and what they are called."""

WHOLE = "ours: end to end, warm"
LAND = "ours: read + land, 2 processes"
SINK = "Kafka Connect's Iceberg sink"
SPARK = "Spark's Kafka source, warm"
TYPED_SPARK = "Spark's Kafka source, warm, typed"
BY_HAND = "by hand"
RAW = "raw, 2 processes"
PYARROW = "pyarrow: stitching"
THERE = "with a Spark that is there"

_BESIDE = {"spark": SPARK, "typed_spark": TYPED_SPARK, "by_hand": BY_HAND, "sink": SINK}
"""Whom a whole batch is compared with."""


def headline(parts: Mapping[str, Any]) -> Json:
    """The figures at the top level, from all parts."""

    def speed(layout: str, contender: str) -> Any:
        return pick(parts, "side-by-side", layout, contender, "mb_s")

    raw, raw1 = speed("sticky", RAW), speed("sticky", "raw, 1 process")
    land = speed("sticky", LAND)
    return {
        "raw_consume_mb_s": raw,
        "raw_consume_1_process_mb_s": raw1,
        "spark_kafka_job_mb_s": speed("sticky", SPARK),
        "read_and_land_mb_s": land,
        "end_to_end_mb_s": speed("sticky", WHOLE),
        "reader_private_mib": pick(parts, "reader-memory", "reader_private_mib") or {},
        "ratios": {
            "read_and_land_of_raw": ratio(land, raw),
            "read_and_land_of_raw_1_process": ratio(land, raw1),
            **{
                f"end_to_end_of_{name}_{layout.replace('-', '_')}": ratio(
                    speed(layout, WHOLE), speed(layout, contender)
                )
                for layout in LAYOUTS
                for name, contender in _BESIDE.items()
            },
            "read_and_land_of_raw_small": ratio(speed("small", LAND), speed("small", RAW)),
            **_cpu_ratios(parts),
            "read_and_land_of_parallel_consumer": ratio(land, speed("sticky", "Parallel Consumer")),
            **{name: pick(parts, *path) for name, path in _PART_RATIOS.items()},
        },
        "amounts": {
            "device_records_a_cpu_second": _records_a_cpu_second(parts, "device"),
            "pairs_records_a_cpu_second": _records_a_cpu_second(parts, "pairs"),
            **{name: pick(parts, *path) for name, path in _PART_AMOUNTS.items()},
        },
    }


def _cpu_ratios(parts: Mapping[str, Any]) -> Json:
    def cpu(layout: str, contender: str) -> Any:
        return pick(parts, "side-by-side", layout, contender, "cpu_s")

    floor = [cpu("sticky", RAW), cpu("sticky", PYARROW)]
    return {
        "cpu_of_floor_sticky": ratio(cpu("sticky", WHOLE), None if None in floor else sum(floor)),
        "cpu_of_by_hand_sticky": ratio(cpu("sticky", WHOLE), cpu("sticky", BY_HAND)),
        "cpu_of_sink_sticky": ratio(cpu("sticky", WHOLE), cpu("sticky", SINK)),
        **{f"cpu_of_spark_{layout}": ratio(cpu(layout, WHOLE), cpu(layout, SPARK)) for layout in ("device", "pairs")},
        "stitching_cpu_of_pyarrow": ratio(cpu("sticky", "ours: stitching"), cpu("sticky", PYARROW)),
    }


def _records_a_cpu_second(parts: Mapping[str, Any], layout: str) -> int | None:
    """Of read + land, in two processes: what one core gets through while nothing else takes it."""
    row = pick(parts, "side-by-side", layout, LAND)
    found = ratio(pick(row or {}, "records"), pick(row or {}, "cpu_s"))
    return None if found is None else round(found)


_PART_RATIOS = {
    "time_per_gib_largest_of_smallest": ("growth", "time_per_gib_largest_of_smallest"),
    "one_partition_in_slices_of_four": ("growth", "one_partition_of_four"),
    "small_batch_of_spark_floor": ("small-batch", "of_spark_floor"),
    "small_batch_there_of_submit": ("standing-spark", "wall_of_submit"),
    "small_batch_there_of_submit_cpu": ("standing-spark", "cpu_of_submit"),
    "fleet_of_two_cores": ("standing-spark", "in_a_row", "share"),
    "fleet_of_its_round": ("standing-spark", "in_a_row", "wall_share"),
    "small_batch_of_airflow_and_spark_floor": ("airflow", "of_floor"),
    "grown_table_of_empty": ("grown-table", "grown_of_empty"),
    "small_of_mseed": ("table-size", "small_of_mseed"),
    "large_waveform_time_per_chunk": ("large-waveform", "time_per_chunk_largest_of_smallest"),
    "day_of_small_files_of_one_file": ("small-files", "day_of_small_files_of_one_file"),
    "compacted_day_of_one_file": ("small-files", "compacted_day_of_one_file"),
    "junk_of_none": ("junk", "many_of_none"),
    "junk_in_small_files_of_none": ("junk", "small_of_none"),
    "junk_memory_of_none": ("junk", "many_memory_of_none"),
    "rewound_day_of_one_day": ("rewound-day", "many_of_one_day"),
}

_PART_AMOUNTS = {
    "fresh_p99_s": ("freshness", "p99_s"),
    "small_batch_there_s": ("standing-spark", "rows", THERE, "wall_s"),
    "small_batch_there_cpu_s": ("standing-spark", "rows", THERE, "cpu_s"),
    "airflow_there_moved_s": ("airflow", "there_moved_s"),
    "files_of_one_id": ("table-size", "opened", "one waveform, by the index of ids,"),
    "files_of_one_id_by_bounds": ("table-size", "opened", "one waveform, by bounds alone,"),
    "files_of_one_hour": ("table-size", "opened", "one source's hour"),
    "ten_million_bytes_a_chunk": ("ten-million", "plain", "bytes_a_chunk"),
    "odd_bytes_a_chunk": ("ten-million", "odd", "bytes_a_chunk"),
}
