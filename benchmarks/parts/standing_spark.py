"""A batch of 1 MB with a Spark that is there, beside the same with a start of Spark's, in turns; then many streams.

The figures of one turn are of one machine in one state: their ratio holds, the seconds drift with its load. What the
server uses is counted with the batch's own process, the broker apart.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from statistics import median

from benchmarks.children import ROOT, Json
from benchmarks.figures import Cost, Run, median_costs, ratio, summarise
from benchmarks.meter import Meter, tree_cpu
from benchmarks.options import Options
from benchmarks.parts.small_batch import BYTES, PARTITIONS, send_small
from benchmarks.test_bed import Say, TestBed, make_topic
from spark_apps.server import ConnectServer
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.steps import step_plan
from wavestitch.local.spark_server import SparkServer, start_spark_server, stop_spark_server

STREAMS = 20
_WAVEFORMS = 4
_DEADLINE_S = 600
_SUBMIT, _THERE = "with spark-submit", "with a Spark that is there"
_FLEET = 200
_EVERY_S = 300
_CORES = 2


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    folder = bed.folder / "spark"
    conf = bed.deployment().spark_conf
    server = start_spark_server(folder=folder, program=ConnectServer(bed.java_home, conf=conf), say=say)
    try:
        ways: dict[str, Mapping[str, str]] = {_SUBMIT: {}, _THERE: _remote(server)}
        turns = _in_turns(bed, options, ways, say)
        row = _in_a_row(bed, ways[_THERE], server, say)
    finally:
        stop_spark_server(folder)
    found = {name: summarise([run for run, _ in mine]) for name, mine in turns.items()}
    steps = median_costs([costs for _, costs in turns[_THERE]])
    lines = [[f"a batch of 1 MB {name}", about["wall_s"], about["cpu_s"]] for name, about in found.items()]
    lines += [[f"· {name}", cost["wall_s"], cost["cpu_s"]] for name, cost in steps.items()]
    each = f"each of {STREAMS} streams one after another, in a process with all imported"
    lines += [[each, row["wall_s"], row["cpu_s"]], ["· of it in the server", "", row["server_cpu_s"]]]
    lines.append([f"{_FLEET} of them every {_EVERY_S} s, share of {_CORES} cores", "", row["share"]])
    return {
        "rows": found,
        "steps": steps,
        "in_a_row": row,
        "wall_of_submit": ratio(found[_THERE]["wall_s"], found[_SUBMIT]["wall_s"]),
        "cpu_of_submit": ratio(found[_THERE]["cpu_s"], found[_SUBMIT]["cpu_s"]),
        "table": [["part", "wall s", "CPU s"], *lines],
    }


def _remote(server: SparkServer) -> dict[str, str]:
    return {"WAVESTITCH_SPARK__REMOTE": server.remote, "WAVESTITCH_SPARK__TOKEN": server.token}


def _in_turns(
    bed: TestBed, options: Options, ways: Mapping[str, Mapping[str, str]], say: Say
) -> dict[str, list[tuple[Run, dict[str, Cost]]]]:
    topic = make_topic(bed, partitions=PARTITIONS, prefix="standing")
    bed.declare("standing", topic)
    turns: dict[str, list[tuple[Run, dict[str, Cost]]]] = {name: [] for name in ways}
    for round_ in range(options.rounds + 1):
        for n, (name, more) in enumerate(ways.items()):
            send_small(bed, topic, 2 * round_ + n)
            found = _batch(bed, "standing", more)
            if round_ > 0:  # the first batches make the tables, and the server's first task
                turns[name].append(found)
            say(f"{name}: {found[0].cost.wall:.1f} s, {found[0].cost.cpu:.1f} CPU s")
    return turns


def _in_a_row(bed: TestBed, more: Mapping[str, str], server: SparkServer, say: Say) -> Json:
    """One batch of each of many streams, whose tables are there, in a process that has imported everything, as tasks
    of Airflow's are; CPU s each, and what a fleet of them would take. The first one is the warm-up."""
    names = [f"row_{n}" for n in range(STREAMS + 1)]
    for n, name in enumerate(names):
        topic = make_topic(bed, partitions=PARTITIONS, prefix="row")
        bed.declare(name, topic)
        send_small(bed, topic, 100 + n)
        step_plan(DeploymentEdges(bed.deployment(), name), PlanRequest())  # makes the tables; its plan is left
    job = json.dumps({"config": {**bed.config(), **more}, "streams": names})
    of_server = tree_cpu([server.pid])
    lines = [json.loads(line) for line in _child("benchmarks.contenders.row_of_runs", job).splitlines()]
    of_server = (tree_cpu([server.pid]) - of_server) / len(names)
    if [line["waveforms"]["published"] for line in lines] != [_WAVEFORMS] * len(names):
        raise RuntimeError(f"{_WAVEFORMS} waveforms a stream were sent, and this came of them: {lines}")
    cpu = sum(line["cpu"] for line in lines[1:]) / STREAMS + of_server
    say(f"{STREAMS} streams in a row: {cpu:.2f} CPU s each, {of_server:.2f} of it in the server")
    return {
        "streams": STREAMS,
        "wall_s": round(median(line["wall"] for line in lines[1:]), 2),
        "cpu_s": round(cpu, 2),
        "server_cpu_s": round(of_server, 2),
        "share": round(cpu * _FLEET / (_EVERY_S * _CORES), 2),
    }


def _batch(bed: TestBed, stream: str, more: Mapping[str, str]) -> tuple[Run, dict[str, Cost]]:
    """A batch in a fresh process; raises `RuntimeError` where it did not publish what was sent."""
    job = json.dumps({"config": {**bed.config(), **more}, "stream": stream})
    # The server was started by this process, and is below it; so is the broker.
    with Meter([os.getpid()], without=[bed.broker_pid]) as meter:
        said = _child("benchmarks.contenders.cold_run", job)
    answer = json.loads(said.splitlines()[-1])
    if answer["waveforms"]["published"] != _WAVEFORMS:
        raise RuntimeError(f"{_WAVEFORMS} waveforms were sent, and this came of them: {answer}")
    costs = {name: Cost(*spent) for name, spent in answer["steps"].items()}
    rest = [c for name, c in costs.items() if name != "Spark"]
    beside = meter.cost - Cost(sum(c.wall for c in rest), sum(c.cpu for c in rest))
    costs["interpreter, imports and the server"] = beside
    return Run(meter.cost, BYTES, meter.peak_mib), costs


def _child(module: str, job: str) -> str:
    """What it prints; raises `RuntimeError` with its last words where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", module, job],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{module} ended with exit code {done.returncode}: {done.stderr[-800:]}")
    return done.stdout
