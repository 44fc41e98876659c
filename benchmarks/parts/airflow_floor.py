"""A batch of 1 MB in the embedded Airflow, from its trigger to its end, beside an empty DAG of as many tasks.

Times are Airflow's own: from when the run was queued to its end, and from start to end of each task. The floor is the
empty DAG and, since one of the batch's tasks is a Spark app, an empty Spark app.
"""

from __future__ import annotations

import json
import shutil
from datetime import datetime
from statistics import median
from typing import Any

from benchmarks.children import ROOT, Json
from benchmarks.figures import ratio
from benchmarks.options import Options
from benchmarks.parts.small_batch import EMPTY, PARTITIONS, send_small, submit_empty
from benchmarks.test_bed import Say, TestBed, make_topic
from spark_apps.server import ConnectServer
from wavestitch.contracts.quantities import Partition
from wavestitch.local.airflow_api import AirflowApi
from wavestitch.local.airflow_stack import start_airflow, stop_airflow
from wavestitch.local.spark_server import start_spark_server, stop_spark_server

_EMPTY = """
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, task

with DAG("empty", schedule=None) as dag:

    @task
    def plan():
        return [{"unit": 0}, {"unit": 1}]

    @task
    def read(work):
        return work

    @task
    def step(before):
        return {}

    @task.short_circuit
    def last(before):
        return False

    reads = read.expand(work=plan())
    stitched = step.override(task_id="reassemble")(reads)
    published = step.override(task_id="publish")(step.override(task_id="validate")(stitched))
    moved = last.override(task_id="commit_offsets")(published)
    moved >> TriggerDagRunOperator(task_id="catch_up", trigger_dag_id="empty")
"""
_DAG = "ingest_airflow_small"
_SUBMIT, _THERE = "spark-submit", "a Spark that is there"
_MOVED = "trigger to moved offsets"


def measure(bed: TestBed, options: Options, say: Say) -> Json:
    topic = make_topic(bed, partitions=PARTITIONS, prefix="airflow")
    bed.declare("airflow_small", topic)
    home = bed.folder / "airflow"
    dags = bed.folder / "dags"
    dags.mkdir()
    shutil.copy(ROOT / "dags" / "ingest.py", dags)
    (dags / "empty.py").write_text(_EMPTY)
    env = {
        **bed.config(),
        "JAVA_HOME": str(bed.java_home),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(
            {"conn_type": "spark", "host": "local[2]", "extra": {"spark-binary": "spark-submit"}}
        ),
    }
    there, turns = bed.folder / "spark", options.rounds + 1
    conf = bed.deployment().spark_conf
    server = start_spark_server(folder=there, program=ConnectServer(bed.java_home, conf=conf), say=say)
    remote = {"WAVESTITCH_SPARK__REMOTE": server.remote, "WAVESTITCH_SPARK__TOKEN": server.token}
    runs = {}
    try:
        # One after another: a setting is of all of an Airflow's tasks. The empty DAG runs beside each.
        for n, (way, more) in enumerate({_SUBMIT: {}, _THERE: remote}.items()):
            airflow = start_airflow(folder=home, project_root=ROOT, env={**env, **more}, say=say, dags_folder=dags)
            with airflow.login() as api:
                for dag in (_DAG, "empty"):
                    api.wait_for_dag(dag)
                runs[way] = [_round(bed, api, topic, n * turns + i, say, spark=not more) for i in range(turns)][1:]
            stop_airflow(home)
    finally:
        stop_airflow(home)
        stop_spark_server(there)
    return _summary(runs[_SUBMIT], runs[_THERE])


def _round(
    bed: TestBed, api: AirflowApi, topic: str, number: int, say: Say, *, spark: bool
) -> dict[str, dict[str, float]]:
    send_small(bed, topic, 1000 + number)
    found = {"batch": _follow(api, _DAG), "empty": _follow(api, "empty")}
    _check_moved(bed, topic)
    if spark:
        found["spark"] = {EMPTY: submit_empty(bed, {}, []).cost.wall}
    say(f"{found['batch']}, empty DAG {found['empty']['whole']:.1f} s, Spark {found.get('spark')}")
    return found


def _follow(api: AirflowApi, dag: str) -> dict[str, float]:
    """Seconds of a run and of its tasks."""
    run = api.trigger(dag)
    state = api.wait(dag, run, seconds=300)
    if state != "success":
        raise RuntimeError(f"run {run} of {dag} ended as {state}")
    about = api.request("GET", f"/api/v2/dags/{dag}/dagRuns/{run}")
    found = {"whole": _between(about, "queued_at", "end_date")}
    for t in api.request("GET", f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances", params={"limit": 50})[
        "task_instances"
    ]:
        if t["start_date"] and t["end_date"]:
            if t["task_id"] == "commit_offsets":
                found[_MOVED] = _between({"from": about["queued_at"], "to": t["end_date"]}, "from", "to")
            found[t["task_id"]] = max(found.get(t["task_id"], 0.0), _between(t, "start_date", "end_date"))
    return found


def _between(about: dict[str, Any], first: str, last: str) -> float:
    return (datetime.fromisoformat(about[last]) - datetime.fromisoformat(about[first])).total_seconds()


def _check_moved(bed: TestBed, topic: str) -> None:
    """The group stands at the end of the topic: the batch did what it is timed for."""
    deployment = bed.deployment()
    partitions = list(map(Partition, range(PARTITIONS)))
    ends = {p: e.stable_end for p, e in deployment.log.ends(topic, partitions).items()}
    found = deployment.log.group_offsets("airflow_small", topic, partitions)
    group = {p: g.offset for p, g in found.items() if g is not None}
    if group != ends:
        raise RuntimeError(f"the group stands at {group}, the topic ends at {ends}")


def _summary(runs: list[dict[str, dict[str, float]]], there: list[dict[str, dict[str, float]]]) -> Json:
    def middle(kind: str, name: str, of: list[dict[str, dict[str, float]]] = runs) -> float:
        return round(median(r[kind].get(name, 0.0) for r in of), 2)

    tasks = [n for n in runs[0]["batch"] if n not in ("whole", _MOVED)]
    batch, empty = middle("batch", "whole"), middle("empty", "whole")
    sparks = {name: middle("spark", name) for name in runs[0]["spark"]}
    spark = sparks[EMPTY]
    table: list[list[object]] = [["part", f"{_SUBMIT}, s", f"{_THERE}, s", "the empty DAG, s"]]
    for name, shown in [("whole", "trigger to end"), (_MOVED, _MOVED), *((n, f"· {n}") for n in tasks)]:
        table.append([shown, middle("batch", name), middle("batch", name, there), middle("empty", name)])
    between = round(batch - sum(middle("batch", n) for n in tasks), 2)
    of_there = round(middle("batch", "whole", there) - sum(middle("batch", n, there) for n in tasks), 2)
    table.append(["· between tasks", between, of_there, round(empty - sum(middle("empty", n) for n in tasks), 2)])
    table += [[name, wall, "", ""] for name, wall in sparks.items()]
    return {
        "batch_s": batch,
        "empty_dag_s": empty,
        "spark_s": sparks,
        "of_floor": ratio(batch, empty + spark),
        "there_s": middle("batch", "whole", there),
        "there_moved_s": middle("batch", _MOVED, there),
        "there_of_submit": ratio(middle("batch", _MOVED, there), middle("batch", _MOVED)),
        "table": table,
    }
