"""The results as a Markdown document part, between markers in a page that people wrote. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.figures import LAYOUTS, pick, ratio

BEGIN = "<!-- figures: written by `make bench`, do not edit -->"
END = "<!-- end of figures -->"
_NOT_ROWS = ("failed",)
_GOALS = {
    "read_and_land_of_raw": ("read + land (2 processes) / raw loop (2 processes)", "≥ 0.8"),
    "read_and_land_of_raw_1_process": ("read + land (2 processes) / raw loop (1 process)", ""),
    "end_to_end_of_spark_sticky": ("end to end, warm / Spark's Kafka source, sticky", "≥ 3"),
    "end_to_end_of_typed_spark_sticky": (
        "end to end, warm / Spark's Kafka source that writes typed samples, too",
        "≥ 5",
    ),
    "end_to_end_of_by_hand_sticky": ("end to end, warm / a script written by hand", "≥ 1.2"),
    "cpu_of_by_hand_sticky": ("CPU of the same", ""),
    "end_to_end_of_spark_round_robin": ("round robin: end to end, warm / Spark's Kafka source", "≥ 2"),
    "end_to_end_of_by_hand_round_robin": ("round robin: the same / a script written by hand", ""),
    "read_and_land_of_raw_small": ("chunks of 1 KiB: read + land / raw loop (2 processes)", ""),
    "end_to_end_of_spark_small": ("chunks of 1 KiB: end to end, warm / Spark's Kafka source", ""),
    "end_to_end_of_by_hand_small": ("chunks of 1 KiB: the same / a script written by hand", ""),
    "end_to_end_of_spark_device": ("chunks of 512 bytes: end to end, warm / Spark's Kafka source", "≥ 2"),
    "end_to_end_of_typed_spark_device": ("chunks of 512 bytes: the same / Spark's that writes typed samples, too", ""),
    "end_to_end_of_by_hand_device": ("chunks of 512 bytes: the same / a script written by hand", ""),
    "cpu_of_spark_device": ("chunks of 512 bytes: CPU, end to end, warm / Spark's Kafka source", ""),
    "end_to_end_of_spark_pages": ("chunks of 4 KiB: end to end, warm / Spark's Kafka source", "≥ 3"),
    "end_to_end_of_spark_pairs": ("waveforms of 1 KiB in two chunks: end to end, warm / Spark's Kafka source", "≥ 1.5"),
    "end_to_end_of_by_hand_pairs": ("waveforms of 1 KiB in two chunks: the same / a script written by hand", ""),
    "stitching_cpu_of_pyarrow": ("CPU of stitching / plain pyarrow, zstd-1", "≤ 2"),
    "read_and_land_of_parallel_consumer": ("read + land / Parallel Consumer to disk", ""),
    "time_per_gib_largest_of_smallest": ("time per GiB, largest batch / smallest", "0.85 to 1.15"),
    "one_partition_in_slices_of_four": ("time of one partition in slices / of four partitions", "about 1"),
    "small_batch_of_spark_floor": ("a batch of 1 MB by `wavestitch run` / an empty Spark app", ""),
    "small_batch_there_of_submit": ("a batch of 1 MB: wall, with a Spark that is there / with spark-submit", ""),
    "small_batch_there_of_submit_cpu": ("a batch of 1 MB: CPU, with a Spark that is there / with spark-submit", ""),
    "small_batch_of_airflow_and_spark_floor": (
        "a batch of 1 MB in Airflow / an empty DAG of as many tasks with an empty Spark app",
        "≤ 1.5",
    ),
    "grown_table_of_empty": ("plan + publish on a grown table / on a new one", "≤ 2"),
    "large_waveform_time_per_chunk": ("stitching time per chunk, largest waveform / smallest", "about 1"),
    "day_of_small_files_of_one_file": ("query of a day in small files / in one file", ""),
    "compacted_day_of_one_file": ("the same, after `wavestitch maintain`", "≤ 1.5"),
    "junk_of_none": ("plan + publish with 10 million held records that are no chunks / with none", "≤ 2"),
    "junk_in_small_files_of_none": ("plan + publish with 200,000 of them in files of 100 / with none", "≤ 2"),
    "junk_memory_of_none": ("private memory of the batch's main process with 10 million / with none", "about 1"),
    "rewound_day_of_one_day": ("a rewind over one day and its batch, 10,000 files / that day only", "≤ 2"),
}


def replace_between(page: str, generated: str) -> str:
    """The page with `generated` between its markers. Raises `ValueError` where it has none."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise ValueError(f"the page must have {BEGIN!r} once, and {END!r} once after it")
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{generated.strip()}\n{END}{rest.split(END)[1]}"


def render(results: Mapping[str, Any]) -> str:
    """All tables: ratios against their goals first, then each part."""
    about = results.get("machine", {})
    lines = [
        f"{about.get('cores', '?')} cores, {about.get('memory_gib', '?')} GiB memory, {results.get('when', '?')}. "
        f"{results.get('mib', '?')} MiB a topic, medians of {results.get('rounds', '?')} interleaved rounds.",
        "",
        *_ratios(results.get("ratios", {})),
    ]
    parts = results.get("parts", {})
    for layout, title in LAYOUTS.items():
        rows = pick(parts, "side-by-side", layout)
        if rows:
            lines += ["", f"### Side by side, {title}", "", *_contest(rows)]
    steps = pick(parts, "side-by-side", "sticky", "ours: end to end, warm", "steps")
    if steps:
        lines += ["", "### Where a warm batch's time goes (sticky, zstd-1)", "", *_steps(steps)]
    lines += _others(parts)
    return "\n".join(lines)


def _ratios(ratios: Mapping[str, Any]) -> list[str]:
    rows = ["| ratio | measured | goal |", "|---|---|---|"]
    for name, (title, goal) in _GOALS.items():
        if ratios.get(name) is not None:
            rows.append(f"| {title} | {ratios[name]:.2f} | {goal} |")
    return rows


def _contest(rows: Mapping[str, Any]) -> list[str]:
    raw = pick(rows, "raw, 2 processes", "mb_s")
    spark = pick(rows, "Spark's Kafka source, warm", "mb_s")
    lines = ["| | MB/s | wall s | CPU s | x raw | x Spark's source | private MiB |", "|---|---|---|---|---|---|---|"]
    for name, row in rows.items():
        if name in _NOT_ROWS:
            continue
        peaks = ", ".join(f"{kind} {mib:.0f}" for kind, mib in row["peak_private_mib"].items())
        ratios = [_number(ratio(row["mb_s"], base)) for base in (raw, spark)]
        lines.append(
            f"| {name} | {row['mb_s']:.0f} | {row['wall_s']:.2f} | {row['cpu_s']:.2f} | {ratios[0]} | {ratios[1]} "
            f"| {peaks} |"
        )
    lines += [f"| {name} | not measured: {_cell(why)} | | | | | |" for name, why in rows.get("failed", {}).items()]
    return lines


def _steps(steps: Mapping[str, Any]) -> list[str]:
    lines = ["| step | wall s | CPU s |", "|---|---|---|"]
    for name, row in steps.items():
        title = "of it in Spark" if name == "Spark" else name
        lines.append(f"| {title} | {row['wall_s']:.2f} | {row['cpu_s']:.2f} |")
    return lines


def _others(parts: Mapping[str, Any]) -> list[str]:
    """The other parts: each brings rows of its own, or says why it has none."""
    lines: list[str] = []
    for name, part in parts.items():
        if "failed" in part and "table" not in part:
            lines += ["", f"### {_title(name)}", "", f"Not measured: {_cell(str(part['failed']))}"]
        elif "table" in part:
            head, *rows = part["table"]
            lines += ["", f"### {_title(name)}", "", _line(head), "|" + "---|" * len(head), *map(_line, rows)]
    return lines


def _title(name: str) -> str:
    return name.replace("-", " ").capitalize()


def _line(cells: list[Any]) -> str:
    return "| " + " | ".join(_cell(_number(c)) for c in cells) + " |"


def _number(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:300]
