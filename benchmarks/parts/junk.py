"""Plan and publish where millions of records are held that are no chunks, against a stream that has none.

Streams of the same small batches, each with some junk of its own, one after the other through the real steps of whole
batches, each in a warm process of its own: what a process has in memory is of one stream.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from statistics import median

from confluent_kafka import Producer

from benchmarks.children import Child, Json, race, start
from benchmarks.figures import Cost, Run, median_costs, ratio
from benchmarks.meter import Meter
from benchmarks.options import Options
from benchmarks.synthetic_junk import hold_junk
from benchmarks.test_bed import Say, TestBed, make_topic, send, waveforms
from benchmarks.whole_runs import job_of, steps_of
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.steps import step_plan
from wavestitch.maintain.run import maintain_stream

_WAVEFORMS, _BYTES = 16, 64 << 10
_OWN_JUNK = 20
_PARTITIONS = 4
_DAY_MS = 86_400_000
_NONE = "none"


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    few, many = options.junk_rows // 50, options.junk_rows
    amounts = {_NONE: (0, 1), "few": (few, 100_000), "small": (few, 100), "many": (many, 100_000)}
    titles = {
        _NONE: "none",
        "few": f"{few:,} rows",
        "small": f"{few:,} rows in files of 100",
        "many": f"{many:,} rows",
    }
    topic = make_topic(bed, partitions=_PARTITIONS, prefix="junk")
    files: dict[str, int] = {}
    for stream, (rows, file_rows) in amounts.items():
        bed.declare(f"junk_{stream}", topic)
        step_plan(DeploymentEdges(bed.deployment(), f"junk_{stream}"), PlanRequest())
        tables = bed.deployment().tables(f"junk_{stream}")
        head = tables.head()
        if rows and head is not None:
            long_ago = time.time_ns() // 1_000_000 - 60 * _DAY_MS
            each = {"rows": rows, "file_rows": min(file_rows, rows), "held_ms": long_ago}
            files[stream] = hold_junk(tables, topic_id=head.topic_id, **each)
            say(f"{rows} records that are no chunks are held, in {files[stream]} files")
    runs: dict[str, list[Run]] = {stream: [] for stream in amounts}
    with ExitStack() as stack:
        children = {s: _child(stack, bed) for s in amounts}
        for round_ in range(options.rounds + 1):
            part = waveforms(_WAVEFORMS, size=_BYTES, prefix=f"junk-{round_}", seed=round_)
            send(bed, topic, [part], chunk=16 << 10)
            _misdirect(bed, topic)
            for stream in amounts:
                run = _batch(bed, children[stream], f"junk_{stream}")
                said = {n: round(c.wall, 2) for n, c in steps_of(run).items() if n in ("plan", "publish")}
                say(f"{stream}: {said}, {run.peak_mib}")
                runs[stream].append(run)
    expired = {s: _expire(bed, f"junk_{s}", say) for s in files}
    return _summary(runs, titles, expired)


def _child(stack: ExitStack, bed: TestBed) -> Child:
    env = {"JAVA_HOME": str(bed.java_home)}
    return stack.enter_context(start("benchmarks.contenders.whole", folder=bed.folder, env=env))


def _misdirect(bed: TestBed, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bed.bootstrap})
    for n in range(_OWN_JUNK):
        producer.produce(topic, value=b"a line of somebody's log file", partition=n % _PARTITIONS)
    if producer.flush(60):
        raise RuntimeError("the broker did not take the junk")


def _batch(bed: TestBed, child: Child, stream: str) -> Run:
    run = race([child], [job_of(bed, stream)], size=_WAVEFORMS * _BYTES)
    if run.facts["waveforms"]["published"] != _WAVEFORMS or run.facts["reasons"] != {"not_a_chunk": _OWN_JUNK}:
        raise RuntimeError(f"{stream}: {run.facts}")
    return run


def _expire(bed: TestBed, stream: str, say: Say) -> tuple[int, Cost]:
    """What is older than the limit goes; the rows of these batches stay."""
    import os  # noqa: PLC0415

    with Meter([os.getpid()]) as meter:
        report = maintain_stream(bed.deployment(), stream, apply=True, only=["junk"])
    say(f"{stream}: {report.actions[0].count} rows expired in {meter.cost.wall:.2f} s")
    return report.actions[0].count, meter.cost


def _summary(runs: dict[str, list[Run]], titles: dict[str, str], expired: dict[str, tuple[int, Cost]]) -> Json:
    steps = {s: median_costs([steps_of(r) for r in mine[1:]]) for s, mine in runs.items()}
    sums = {
        s: {k: round(mine["plan"][k] + mine["publish"][k], 3) for k in ("wall_s", "cpu_s")} for s, mine in steps.items()
    }
    peaks = {s: round(median(r.peak_mib.get("main", 0.0) for r in mine[1:]), 1) for s, mine in runs.items()}
    table: list[list[object]] = [
        [
            "held junk",
            "plan s",
            "publish s",
            "plan + publish s",
            "of none",
            "CPU s",
            "of none",
            "main private MiB",
            "of none",
            "expires in s",
        ]
    ]
    base = sums[_NONE]
    for s, title in titles.items():
        table.append(
            [
                title,
                steps[s]["plan"]["wall_s"],
                steps[s]["publish"]["wall_s"],
                sums[s]["wall_s"],
                ratio(sums[s]["wall_s"], base["wall_s"]),
                sums[s]["cpu_s"],
                ratio(sums[s]["cpu_s"], base["cpu_s"]),
                peaks[s],
                ratio(peaks[s], peaks[_NONE]),
                round(expired[s][1].wall, 2) if s in expired else "",
            ]
        )
    return {
        "steps": steps,
        "main_private_mib": peaks,
        "expired": {s: [rows, cost.wall, cost.cpu] for s, (rows, cost) in expired.items()},
        **{f"{s}_of_none": ratio(sums[s]["wall_s"], base["wall_s"]) for s in titles if s != _NONE},
        **{f"{s}_memory_of_none": ratio(peaks[s], peaks[_NONE]) for s in titles if s != _NONE},
        "table": table,
    }
