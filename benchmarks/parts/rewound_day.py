"""A rewind over one day of a table with thousands of files, against a table that has that day only.

Two streams publish the same day, whose rows then stand in one file each; one of them gets the files of other days
beside. Both are rewound to the day's beginning, and the next batch reads the day again and recognises all of it.
"""

from __future__ import annotations

import os

import pyarrow as pa

from benchmarks.children import Child, Json, race, start
from benchmarks.figures import Cost, median_costs, ratio
from benchmarks.meter import Meter
from benchmarks.options import Options
from benchmarks.synthetic_rows import DAY_US, published_table, write_published
from benchmarks.test_bed import Say, TestBed, make_topic, send, waveforms
from benchmarks.whole_runs import job_of, steps_of
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import apply_rewind, plan_rewind
from wavestitch.batch.rewind_target import Target
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.rows import published_schema
from wavestitch.tables.lookup.file_scans import files_to_read
from wavestitch.tables.stream_tables import StreamTables

_DAY_FILES, _BYTES = 288, 16 << 10
_FILE_ROWS, _DAYS = 4, 34
_STREAMS = ("ten_thousand", "one_day")


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    topic = make_topic(bed, partitions=4, prefix="rewound")
    for stream in _STREAMS:
        bed.declare(stream, topic)
        step_plan(DeploymentEdges(bed.deployment(), stream), PlanRequest())
    send(bed, topic, [waveforms(_DAY_FILES, size=_BYTES, prefix="day", seed=7)], chunk=8 << 10)
    rounds: dict[str, list[dict[str, Cost]]] = {stream: [] for stream in _STREAMS}
    with start("benchmarks.contenders.whole", folder=bed.folder, env={"JAVA_HOME": str(bed.java_home)}) as child:
        for stream in _STREAMS:
            _batch(bed, child, stream, published=_DAY_FILES)
            tables = bed.deployment().tables(stream)
            _scatter(tables)
            if stream == _STREAMS[0]:
                _grow(tables, options.rewound_files - _DAY_FILES)
            say(f"{stream}: {len(files_to_read(tables.stored()[0].ensure()))} files")
        for _ in range(options.rounds + 1):
            for stream in _STREAMS:
                costs = _rewind_and_run(bed, child, stream)
                say(f"{stream}: " + ", ".join(f"{n} {c.wall:.2f} s" for n, c in costs.items()))
                rounds[stream].append(costs)
    return _summary(rounds, options)


def _scatter(tables: StreamTables) -> None:
    """The day's rows, each in a file of its own: as many small batches leave them."""
    stored, folder = tables.stored()[0], tables.data_folder()
    table = stored.ensure()
    old = files_to_read(table)
    rows = (
        pa.concat_tables([table.scan().to_arrow()]).select(published_schema("int").names).cast(published_schema("int"))
    )
    if rows.num_rows != _DAY_FILES:
        raise RuntimeError(f"{rows.num_rows} rows of {_DAY_FILES} were published")
    paths = [write_published(folder / f"day-{n:05d}.parquet", rows.slice(n, 1)) for n in range(rows.num_rows)]
    stored.commit_files(table, paths)
    stored.replace(stored.ensure(), [task.file for task in old], [])


def _grow(tables: StreamTables, files: int) -> None:
    """Files of other days, in one snapshot without a head, as maintenance would make it."""
    folder, paths = tables.data_folder(), []
    for number in range(files):
        ids = [f"old-{number * _FILE_ROWS + i:08d}" for i in range(_FILE_ROWS)]
        start_us = number % _DAYS * DAY_US + number // _DAYS * 10**6
        rows = published_table(ids, start_us=start_us, step_us=200_000, samples=[b"\0\0\1\0"] * _FILE_ROWS)
        paths.append(write_published(folder / f"old-{number:05d}.parquet", rows))
    stored = tables.stored()[0]
    stored.commit_files(stored.ensure(), paths)


def _rewind_and_run(bed: TestBed, child: Child, stream: str) -> dict[str, Cost]:
    edges = DeploymentEdges(bed.deployment(), stream)
    with Meter([os.getpid()], without=[child.pid, bed.broker_pid]) as meter:
        log, tables = edges.log, edges.tables
        again = Target(word="earliest")
        found = plan_rewind(edges.stream, again, log=log, tables=tables, who="bench", why="a day once more")
        apply_rewind(edges.stream, found, accept_skip=False, log=log, tables=tables)
    steps = _batch(bed, child, stream, published=0)
    around = steps["reassemble"] - steps.get("Spark", Cost(0, 0))
    parts = ("plan", "publish")
    mine = [meter.cost, *(steps[n] for n in parts), around]
    ours = Cost(sum(c.wall for c in mine), sum(c.cpu for c in mine))
    return {
        "rewind": meter.cost,
        "plan": steps["plan"],
        "reassemble, without Spark": around,
        "publish": steps["publish"],
        "all four": ours,
        "rewind and batch": Cost(meter.cost.wall + steps["whole"].wall, meter.cost.cpu + steps["whole"].cpu),
    }


def _batch(bed: TestBed, child: Child, stream: str, *, published: int) -> dict[str, Cost]:
    run = race([child], [job_of(bed, stream)], size=_DAY_FILES * _BYTES)
    if run.facts["waveforms"]["published"] != published or run.facts["reasons"]:
        raise RuntimeError(f"{stream}: {run.facts}")
    return {**steps_of(run), "whole": run.cost}


def _summary(rounds: dict[str, list[dict[str, Cost]]], options: Options) -> Json:
    steps = {stream: median_costs(mine[1:]) for stream, mine in rounds.items()}
    title = f"{options.rewound_files:,} files"
    table: list[list[object]] = [["step", f"{title}: wall s", "that day only: wall s", "ratio", "ratio of CPU"]]
    many, one = (steps[s] for s in _STREAMS)
    for name in one:
        row = [many[name]["wall_s"], one[name]["wall_s"], ratio(many[name]["wall_s"], one[name]["wall_s"])]
        table.append([name, *row, ratio(many[name]["cpu_s"], one[name]["cpu_s"])])
    first = rounds[_STREAMS[0]][0]["rewind and batch"].wall
    table.append(["first rewind and batch, which makes the local index of ids", round(first, 2), "", None, None])
    whole = "rewind and batch"
    return {
        "steps": steps,
        "first_s": round(first, 2),
        "many_of_one_day": ratio(many[whole]["wall_s"], one[whole]["wall_s"]),
        "around_of_one_day": ratio(many["all four"]["wall_s"], one["all four"]["wall_s"]),
        "table": table,
    }
