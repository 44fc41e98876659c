"""What is aimed at, in the order in which it is told, and whether a figure reaches it. Pure.

A figure without a bound completes the picture. Those that are not reached say so in the table; why stands on the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Goal:
    """`least` and `most` are both allowed; `unit` is empty for a ratio."""

    title: str
    least: float | None = None
    most: float | None = None
    unit: str = ""

    @property
    def words(self) -> str:
        if self.least is not None and self.most is not None:
            return f"{self.least:g} to {self.most:g}"
        if self.least is not None:
            return f"≥ {_with(self.least, self.unit)}"
        return "" if self.most is None else f"≤ {_with(self.most, self.unit)}"

    def reached(self, value: float) -> bool | None:
        """None where there is nothing to reach."""
        if self.least is None and self.most is None:
            return None
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def shown(self, value: float) -> str:
        if not self.unit:
            return f"{value:.2f}"
        return f"{value:,.{0 if value == round(value) or value >= 100 else 1 if value >= 10 else 2}f} {self.unit}"


def _with(bound: float, unit: str) -> str:
    return f"{bound:,g} {unit}".strip() if bound < 1e5 else f"{bound:,.0f} {unit}".strip()


_SPARK = "end to end, warm / Spark's Kafka source"
GOALS = {
    "cpu_of_floor_sticky": Goal("CPU, end to end, warm / its floor: raw loop and plain pyarrow's stitching", most=1.2),
    "end_to_end_of_by_hand_sticky": Goal("end to end, warm / a script written by hand", least=1.2),
    "cpu_of_by_hand_sticky": Goal("CPU of the same"),
    "end_to_end_of_typed_spark_sticky": Goal(f"{_SPARK} that writes typed samples, too", least=5),
    "end_to_end_of_spark_sticky": Goal(f"{_SPARK} that writes bytes", least=5),
    "end_to_end_of_spark_round_robin": Goal(f"round robin: {_SPARK} that writes bytes", least=5),
    "end_to_end_of_by_hand_round_robin": Goal("round robin: the same / a script written by hand"),
    "end_to_end_of_spark_device": Goal(f"chunks of 512 bytes: {_SPARK}", least=2),
    "end_to_end_of_typed_spark_device": Goal("chunks of 512 bytes: the same, typed", least=2),
    "end_to_end_of_by_hand_device": Goal("chunks of 512 bytes: the same / a script written by hand"),
    "cpu_of_spark_device": Goal(f"chunks of 512 bytes: CPU, {_SPARK}"),
    "device_records_a_cpu_second": Goal(
        "chunks of 512 bytes: read + land, of one core", least=100_000, unit="records/s"
    ),
    "end_to_end_of_spark_pages": Goal(f"chunks of 4 KiB: {_SPARK}", least=3),
    "end_to_end_of_by_hand_pages": Goal("chunks of 4 KiB: the same / a script written by hand"),
    "end_to_end_of_spark_pairs": Goal(f"waveforms of 1 KiB in two chunks: {_SPARK}", least=1.5),
    "end_to_end_of_by_hand_pairs": Goal("waveforms of 1 KiB in two chunks: the same / a script written by hand"),
    "cpu_of_spark_pairs": Goal(f"waveforms of 1 KiB in two chunks: CPU, {_SPARK}"),
    "pairs_records_a_cpu_second": Goal("waveforms of 1 KiB in two chunks: read + land, of one core", unit="records/s"),
    "end_to_end_of_sink_sticky": Goal(
        "end to end, warm / Kafka Connect's Iceberg sink, which does not stitch", least=1
    ),
    "cpu_of_sink_sticky": Goal("CPU of the same"),
    "end_to_end_of_sink_device": Goal("chunks of 512 bytes: end to end, warm / Kafka Connect's Iceberg sink", least=1),
    "fresh_p99_s": Goal("a waveform's last chunk acknowledged → its row, at 20 MB/s, p99", most=15, unit="s"),
    "small_batch_there_s": Goal("a batch of 1 MB by `wavestitch run`, a Spark is there", most=3, unit="s"),
    "small_batch_there_cpu_s": Goal("CPU of the same, the server's with it", most=3, unit="s"),
    "airflow_there_moved_s": Goal("the same in Airflow, trigger to moved offsets", most=5, unit="s"),
    "fleet_of_two_cores": Goal("200 streams, each a small batch every 5 minutes: CPU / what two cores have", most=1),
    "fleet_of_its_round": Goal("the same, one stream after another: time / 5 minutes", most=1),
    "grown_table_of_empty": Goal("plan + publish on a grown table / on a new one", most=1.5),
    "ten_million_bytes_a_chunk": Goal("10 million chunks in a batch: memory of the index, a chunk", most=200, unit="B"),
    "odd_bytes_a_chunk": Goal("the same where no chunk is plain", unit="B"),
    "small_of_mseed": Goal("IU.COLA: bytes as miniSEED / bytes in the table, `encoding: small`", least=1),
    "files_of_one_id": Goal("files of a day's 576 that one id opens, by the index of ids", most=1, unit="files"),
    "files_of_one_id_by_bounds": Goal("the same by bounds alone, as other engines do", most=12, unit="files"),
    "files_of_one_hour": Goal("files of a day's 576 that one source's hour opens", most=12, unit="files"),
    "read_and_land_of_raw": Goal("read + land (2 processes) / raw loop (2 processes)", least=0.8),
    "read_and_land_of_raw_1_process": Goal("read + land (2 processes) / raw loop (1 process)"),
    "end_to_end_of_spark_small": Goal(f"chunks of 1 KiB: {_SPARK}"),
    "end_to_end_of_by_hand_small": Goal("chunks of 1 KiB: the same / a script written by hand"),
    "read_and_land_of_raw_small": Goal("chunks of 1 KiB: read + land / raw loop (2 processes)"),
    "stitching_cpu_of_pyarrow": Goal("CPU of stitching / plain pyarrow", most=2),
    "read_and_land_of_parallel_consumer": Goal("read + land / Parallel Consumer to disk"),
    "time_per_gib_largest_of_smallest": Goal("time per GiB, largest batch / smallest", least=0.85, most=1.15),
    "one_partition_in_slices_of_four": Goal(
        "time of one partition in slices / of four partitions", least=0.85, most=1.15
    ),
    "small_batch_of_spark_floor": Goal("a batch of 1 MB in a new process, with Spark's start / an empty Spark app"),
    "small_batch_there_of_submit": Goal(
        "a batch of 1 MB by `wavestitch run`: wall, with a Spark that is there / with spark-submit"
    ),
    "small_batch_there_of_submit_cpu": Goal("a batch of 1 MB: CPU, with a Spark that is there / with spark-submit"),
    "small_batch_of_airflow_and_spark_floor": Goal(
        "a batch of 1 MB in Airflow, with Spark's start / an empty DAG of as many tasks with an empty Spark app",
        most=1.5,
    ),
    "large_waveform_time_per_chunk": Goal("stitching time per chunk, largest waveform / smallest", most=1.15),
    "day_of_small_files_of_one_file": Goal("query of a day in small files / in one file"),
    "compacted_day_of_one_file": Goal("the same, after `wavestitch maintain`", most=1.5),
    "junk_of_none": Goal("plan + publish with 10 million held records that are no chunks / with none", most=2),
    "junk_in_small_files_of_none": Goal("plan + publish with 200,000 of them in files of 100 / with none", most=2),
    "junk_memory_of_none": Goal("private memory of the batch's main process with 10 million / with none", most=1.15),
    "rewound_day_of_one_day": Goal("a rewind over one day and its batch, 10,000 files / that day only", most=2),
}


def told_goals(results: Mapping[str, Any]) -> Iterator[tuple[Goal, float | None]]:
    """Those of which there is a figure, and those that should have one."""
    found = {**results.get("ratios", {}), **results.get("amounts", {})}
    for name, goal in GOALS.items():
        if found.get(name) is not None or goal.words:
            yield goal, found.get(name)
