"""A batch of 1 MB with a Spark that is there, beside the same with a start of Spark's, in turns; then many streams.

The figures of one turn are of one machine in one state: their ratio holds, the seconds drift with its load. What the
server uses is counted with the batch's own process, the broker apart.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from benchmarks.children import ROOT, Json
from benchmarks.figures import Cost, Run, median_costs, ratio, summarise
from benchmarks.headline import THERE
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
_SUBMIT = "with spark-submit"
_FLEET = 200
_EVERY_S = 300
_CORES = 2


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    folder = bed.folder / "spark"
    conf = bed.deployment().spark_conf
    server = start_spark_server(folder=folder, program=ConnectServer(bed.java_home, conf=conf), say=say)
    try:
        ways: dict[str, Mapping[str, str]] = {_SUBMIT: {}, THERE: _remote(server)}
        turns, told = _in_turns(bed, options, ways, say)
        row = _in_a_row(bed, ways[THERE], server, say)
    finally:
        stop_spark_server(folder)
    found = {name: summarise(mine) for name, mine in turns.items()}
    steps = median_costs(told)
    lines = [[f"a batch of 1 MB {name}", about["wall_s"], about["cpu_s"]] for name, about in found.items()]
    lines += [[f"· {name}", cost["wall_s"], cost["cpu_s"]] for name, cost in steps.items()]
    each = f"each of {STREAMS} streams one after another, in a process with all imported"
    lines += [[each, row["wall_s"], row["cpu_s"]], ["· of it in the server", "", row["server_cpu_s"]]]
    round_ = f"{_FLEET} of them every {_EVERY_S} s: share of the time, one after another, and of {_CORES} cores"
    lines.append([round_, row["wall_share"], row["share"]])
    return {
        "rows": found,
        "steps": steps,
        "in_a_row": row,
        "wall_of_submit": ratio(found[THERE]["wall_s"], found[_SUBMIT]["wall_s"]),
        "cpu_of_submit": ratio(found[THERE]["cpu_s"], found[_SUBMIT]["cpu_s"]),
        "table": [["part", "wall s", "CPU s"], *lines],
    }


def _remote(server: SparkServer) -> dict[str, str]:
    return {"WAVESTITCH_SPARK__REMOTE": server.remote, "WAVESTITCH_SPARK__TOKEN": server.token}


def _in_turns(
    bed: TestBed, options: Options, ways: Mapping[str, Mapping[str, str]], say: Say
) -> tuple[dict[str, list[Run]], list[dict[str, Cost]]]:
    """Batches by `wavestitch run`, and what its steps take with a Spark that is there, told by a process that does the
    same without a command line."""
    topic = make_topic(bed, partitions=PARTITIONS, prefix="standing")
    bed.declare("standing", topic)
    turns: dict[str, list[Run]] = {name: [] for name in ways}
    steps = []
    for round_ in range(options.rounds + 1):
        for n, (name, more) in enumerate(ways.items()):
            send_small(bed, topic, 3 * round_ + n)
            run = _command(bed, "standing", more)
            say(f"{name}: {run.cost.wall:.1f} s, {run.cost.cpu:.1f} CPU s")
            if round_ > 0:  # the first batches make the tables, and the server's first task
                turns[name].append(run)
        send_small(bed, topic, 3 * round_ + len(ways))
        found = _steps(bed, "standing", ways[THERE])
        if round_ > 0:
            steps.append(found)
    return turns, steps


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
    said = _child(["benchmarks.contenders.row_of_runs", job], env=os.environ)
    lines = [json.loads(line) for line in said.splitlines()]
    of_server = (tree_cpu([server.pid]) - of_server) / len(names)
    if [line["waveforms"]["published"] for line in lines] != [_WAVEFORMS] * len(names):
        raise RuntimeError(f"{_WAVEFORMS} waveforms a stream were sent, and this came of them: {lines}")
    cpu = sum(line["cpu"] for line in lines[1:]) / STREAMS + of_server
    say(f"{STREAMS} streams in a row: {cpu:.2f} CPU s each, {of_server:.2f} of it in the server")
    wall = sum(line["wall"] for line in lines[1:]) / STREAMS
    return {
        "streams": STREAMS,
        "wall_s": round(wall, 2),
        "wall_share": round(wall * _FLEET / _EVERY_S, 2),
        "cpu_s": round(cpu, 2),
        "server_cpu_s": round(of_server, 2),
        "share": round(cpu * _FLEET / (_EVERY_S * _CORES), 2),
    }


def _command(bed: TestBed, stream: str, more: Mapping[str, str]) -> Run:
    """`wavestitch run`, from its start to its end, with what the server takes; raises `RuntimeError` where it did not
    publish what was sent."""
    env = {**os.environ, **bed.config(), **more}
    # The server was started by this process, and is below it; so is the broker.
    with Meter([os.getpid()], without=[bed.broker_pid]) as meter:
        said = _child(["wavestitch", "run", stream, "--json"], env=env)
    _check(json.loads(said)["published"])
    return Run(meter.cost, BYTES, meter.peak_mib)


def _steps(bed: TestBed, stream: str, more: Mapping[str, str]) -> dict[str, Cost]:
    job = json.dumps({"config": {**bed.config(), **more}, "stream": stream})
    with Meter([os.getpid()], without=[bed.broker_pid]) as meter:
        said = _child(["benchmarks.contenders.cold_run", job], env=os.environ)
    answer = json.loads(said.splitlines()[-1])
    _check(answer)
    costs = {name: Cost(*spent) for name, spent in answer["steps"].items()}
    rest = [c for name, c in costs.items() if name != "Spark"]
    beside = meter.cost - Cost(sum(c.wall for c in rest), sum(c.cpu for c in rest))
    return {**costs, "interpreter, imports and the server": beside}


def _check(answer: Json) -> None:
    if answer["waveforms"]["published"] != _WAVEFORMS:
        raise RuntimeError(f"{_WAVEFORMS} waveforms were sent, and this came of them: {answer}")


def _child(argv: Sequence[str], *, env: Mapping[str, str]) -> str:
    """What a module prints; raises `RuntimeError` with its last words where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", *argv],
        cwd=ROOT,
        env={**env, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{argv[0]} ended with exit code {done.returncode}: {done.stderr[-800:]}")
    return done.stdout
