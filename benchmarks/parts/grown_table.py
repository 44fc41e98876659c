"""Plan and publish on a table with millions of published ids and thousands of snapshots, against a new table.

Two streams of the same small batches, one after the other, through the real steps of whole batches in a warm process.
"""

from __future__ import annotations

from benchmarks.children import Child, Json, race, start
from benchmarks.figures import Cost, median_costs, ratio
from benchmarks.grown_history import lengthen
from benchmarks.options import Options
from benchmarks.synthetic_rows import DAY_US, published_table, write_published
from benchmarks.test_bed import Say, TestBed, make_topic, send, waveforms
from benchmarks.whole_runs import job_of, steps_of
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.steps import step_plan
from wavestitch.tables.stream_tables import StreamTables

_FILE_ROWS = 100_000
_DAYS = 28
_WAVEFORMS, _BYTES = 16, 64 << 10
_STREAMS = ("grown", "fresh")


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    topic = make_topic(bed, partitions=4, prefix="grown")
    for stream in _STREAMS:
        bed.declare(stream, topic)
        # Nothing is there to read; the first head is.
        step_plan(DeploymentEdges(bed.deployment(), stream), PlanRequest())
    tables = bed.deployment().tables("grown")
    lengthen(bed.folder, "grown", tables, options.grown_snapshots, options.grown_batches)
    say(f"{options.grown_snapshots} snapshots and {options.grown_batches} batches are there")
    _grow(tables, options.grown_rows, say)
    rounds: dict[str, list[dict[str, Cost]]] = {stream: [] for stream in _STREAMS}
    with start("benchmarks.contenders.whole", folder=bed.folder, env={"JAVA_HOME": str(bed.java_home)}) as child:
        for round_ in range(options.rounds + 1):
            part = waveforms(_WAVEFORMS, size=_BYTES, prefix=f"new-{round_}", seed=round_)
            send(bed, topic, [part], chunk=16 << 10)
            for stream in _STREAMS:
                costs = _batch(bed, child, stream)
                say(f"{stream}: plan {costs['plan'].wall:.2f} s, publish {costs['publish'].wall:.2f} s")
                rounds[stream].append(costs)
    return _summary(rounds, options)


def _grow(tables: StreamTables, rows: int, say: Say) -> None:
    """Files of tiny waveforms, in one snapshot without a head, as maintenance would make it."""
    folder = tables.data_folder()
    paths = []
    for number in range(rows // _FILE_ROWS):
        ids = [f"grown-{number * _FILE_ROWS + i:010d}" for i in range(_FILE_ROWS)]
        day = number % _DAYS * DAY_US
        table = published_table(ids, start_us=day, step_us=800_000, samples=[b"\0\0\1\0"] * _FILE_ROWS)
        paths.append(write_published(folder / f"grown-{number:05d}.parquet", table))
    stored = tables.stored()[0]
    stored.commit_files(stored.ensure(), paths)
    say(f"{rows} published ids are there, in {len(paths)} files")


def _batch(bed: TestBed, child: Child, stream: str) -> dict[str, Cost]:
    run = race([child], [job_of(bed, stream)], size=_WAVEFORMS * _BYTES)
    if run.facts["waveforms"]["published"] != _WAVEFORMS:
        raise RuntimeError(f"{stream}: {run.facts}")
    steps = steps_of(run)
    around = steps["reassemble"] - steps["Spark"]
    return {**steps, "reassemble, without Spark": around, "whole": Cost(run.cost.wall, run.cost.cpu)}


def _summary(rounds: dict[str, list[dict[str, Cost]]], options: Options) -> Json:
    first = rounds["grown"][0]
    steps = {stream: median_costs(mine[1:]) for stream, mine in rounds.items()}
    sums = {
        stream: {k: round(mine["plan"][k] + mine["publish"][k], 3) for k in ("wall_s", "cpu_s")}
        for stream, mine in steps.items()
    }
    ids, snapshots, batches = options.grown_rows, options.grown_snapshots, options.grown_batches
    title = f"{ids:,} ids, {snapshots:,} snapshots, {batches:,} batches of history"
    table: list[list[object]] = [["step", f"{title}: wall s", "new table: wall s", "ratio"]]
    for name in ("plan", "publish", "reassemble, without Spark", "whole"):
        grown, fresh = (steps[s][name]["wall_s"] for s in _STREAMS)
        table.append([name, grown, fresh, ratio(grown, fresh)])
    table.append(["plan + publish", sums["grown"]["wall_s"], sums["fresh"]["wall_s"], _of(sums, "wall_s")])
    table.append(["plan + publish, CPU s", sums["grown"]["cpu_s"], sums["fresh"]["cpu_s"], _of(sums, "cpu_s")])
    once = round(first["plan"].wall + first["publish"].wall + first["reassemble, without Spark"].wall, 2)
    table.append(["first batch, which makes the local cache of ids: plan, look, publish", once, "", None])
    return {"steps": steps, "first_batch_s": once, "grown_of_empty": _of(sums, "wall_s"), "table": table}


def _of(sums: dict[str, dict[str, float]], key: str) -> float | None:
    return ratio(sums["grown"][key], sums["fresh"][key])
