"""A query over a day of 5-minute batches: one file a batch, the same after maintenance and one more batch, and all rows
in one file."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from statistics import median

import numpy as np

from benchmarks.children import Json
from benchmarks.figures import ratio
from benchmarks.options import Options
from benchmarks.synthetic_rows import DAY, DAY_US, published_table, write_published
from benchmarks.test_bed import Say, TestBed, make_topic
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.steps import step_plan
from wavestitch.maintain.run import maintain_stream
from wavestitch.tables.read_waveforms import read_waveforms
from wavestitch.tables.stream_tables import StreamTables

_PER_FILE, _BYTES = 12, 32 << 10
_SLIM = ["waveform_id", "start_time", "sample_min", "sample_max"]
_TABLES = ("day_of_small_files", "day_of_one_file")


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    topic = make_topic(bed, partitions=1, prefix="days")
    tables: dict[str, StreamTables] = {}
    for stream in _TABLES:
        bed.declare(stream, topic)
        step_plan(DeploymentEdges(bed.deployment(), stream), PlanRequest())
        tables[stream] = bed.deployment().tables(stream)
    rows = _fill(tables, options.small_files)
    say(f"{options.small_files} files of {_PER_FILE} waveforms are there, and all of them in one file")
    # Three times as many rounds as elsewhere: these queries take fractions of a second.
    found = _ask(tables, rows, options.rounds * 3)
    seconds = {_TABLES[0]: found[_TABLES[0]], _TABLES[1]: found[_TABLES[1]]}
    note = _compact(bed, say)
    if note is None:
        # The next batch's commit: it no longer lists the manifests of files that compaction took out.
        stored = tables[_TABLES[0]].stored()[0]
        stored.commit_files(stored.ensure(), [])
        again = _ask(tables, rows, options.rounds * 3)
        seconds = {_TABLES[0]: found[_TABLES[0]], "compacted": again[_TABLES[0]], _TABLES[1]: again[_TABLES[1]]}
    one = seconds[_TABLES[1]]
    titles = {
        "day_of_small_files": f"{options.small_files} files",
        "compacted": "compacted",
        "day_of_one_file": "one file",
    }
    table: list[list[object]] = [["table", *(f"{q}, s" for q in one), *(f"{q}: of one file" for q in one)]]
    for name, mine in seconds.items():
        table.append([titles[name], *mine.values(), *(ratio(mine[q], one[q]) for q in one)])
    return {
        "seconds": seconds,
        "day_of_small_files_of_one_file": _worst(seconds[_TABLES[0]], one),
        "compacted_day_of_one_file": _worst(seconds["compacted"], one) if note is None else None,
        **({"compaction_failed": note} if note else {}),
        "table": table,
    }


def _fill(tables: dict[str, StreamTables], files: int) -> int:
    rng = np.random.default_rng(5)
    rows = files * _PER_FILE
    samples = [np.cumsum(rng.integers(-8, 9, _BYTES // 2)).astype("<i2").tobytes() for _ in range(rows)]
    ids = [f"day-{n:06d}" for n in range(rows)]
    step = DAY_US // rows
    whole = published_table(ids, start_us=0, step_us=step, samples=samples)
    small, one = tables[_TABLES[0]], tables[_TABLES[1]]
    folder, stored = small.data_folder(), small.stored()[0]
    for n in range(files):
        path = write_published(folder / f"small-{n:04d}.parquet", whole.slice(n * _PER_FILE, _PER_FILE))
        stored.commit_files(stored.ensure(), [path])
    path = write_published(one.data_folder() / "one.parquet", whole, group_rows=(64 << 20) // _BYTES)
    one.stored()[0].commit_files(one.stored()[0].ensure(), [path])
    return rows


def _ask(tables: dict[str, StreamTables], rows: int, rounds: int) -> dict[str, dict[str, float]]:
    """Median seconds of each query on each table, in turns; the first time is not counted."""
    spent: dict[str, dict[str, list[float]]] = {}
    for round_ in range(rounds + 1):
        for name, mine in tables.items():
            for query, act in _queries(mine).items():
                began = time.monotonic()
                count = act()
                if round_:
                    spent.setdefault(name, {}).setdefault(query, []).append(time.monotonic() - began)
                if count != (1 if query == "one waveform" else rows):
                    raise RuntimeError(f"{query} of {name} found {count} of {rows} rows")
    return {name: {q: round(median(s), 3) for q, s in mine.items()} for name, mine in spent.items()}


def _queries(tables: StreamTables) -> dict[str, Callable[[], int]]:
    def day(columns: list[str] | None) -> int:
        return int(read_waveforms(tables, columns=columns, start=DAY, end=DAY + timedelta(days=1)).num_rows)

    return {
        "a day, all columns": lambda: day(None),
        "a day, slim columns": lambda: day(_SLIM),
        "one waveform": lambda: int(read_waveforms(tables, ids=["day-000100"]).num_rows),
    }


def _compact(bed: TestBed, say: Say) -> str | None:
    """Put the small files together as maintenance does; why it could not, if so."""
    try:
        deployment = bed.deployment()
        report = maintain_stream(deployment, _TABLES[0], apply=True, only=("compact",))
    except Exception as error:  # the queries without it are still worth having
        say(f"compaction failed: {error}")
        return f"{type(error).__name__}: {error}"[:600]
    say(f"compaction: {report.actions[0].facts}")
    return None


def _worst(mine: dict[str, float], one: dict[str, float]) -> float | None:
    """The largest ratio over the queries of a day."""
    return max((r for q in one if q.startswith("a day") and (r := ratio(mine[q], one[q])) is not None), default=None)
