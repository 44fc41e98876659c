"""Ours, whole: batches from plan to moved offsets in one process that keeps its Spark session and its readers.

`spark`: "warm" (the session of this process, and its readers) or "submit" (all anew, as the command line does it). Each
step's wall and CPU seconds are told, and Spark's own apart from what surrounds it.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.children import serve
from benchmarks.stopwatch import Stopwatch
from consumers.unit_processes import UnitProcesses
from consumers.unit_reader import read_units
from spark_apps.reassemble import stitch_on_spark
from spark_apps.submit import spark_conf
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges, submit_by_settings
from wavestitch.batch.plan import NothingToDo
from wavestitch.batch.results import Planned, Published
from wavestitch.batch.run import RunOptions, run_batch
from wavestitch.contracts.stitch_job import stitch_job_from_json
from wavestitch.settings import load_settings
from wavestitch.write_once import write_first


class Contender:
    """One session."""

    def __init__(self) -> None:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        builder = SparkSession.builder.master("local[2]")
        for name, value in spark_conf("local[2]", {}).items():
            builder = builder.config(name, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("ERROR")
        self.children = UnitProcesses()

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        deployment = Deployment(load_settings(job["config"]))
        watch = Stopwatch()
        warm = job["spark"] == "warm"
        submit = watch.timed("Spark", self._stitch if warm else submit_by_settings(deployment, watch.say))
        read = partial(read_units, children=self.children if warm else None)
        edges = DeploymentEdges(deployment, job["stream"], read=read, submit=submit, gate_ahead=True)
        done = run_batch(edges, RunOptions(), watcher=watch)
        watch.begin("done")
        if isinstance(done, NothingToDo):
            raise RuntimeError(f"there was nothing to do: {done.why}")
        planned, published = done.planned, done.published
        if not isinstance(planned, Planned) or not isinstance(published, Published):
            raise RuntimeError("a plan that was just made was committed before")
        if not published.identity_balances:
            raise RuntimeError(f"the audit identity does not hold: {published.counts}")
        return {
            "steps": {name: [c.wall, c.cpu] for name, c in watch.costs.items()},
            "waveforms": published.waveforms,
            "reasons": published.reasons,
            "plan_id": planned.plan_id,
        }

    def _stitch(self, job_path: Path, result: Path) -> None:
        job = stitch_job_from_json(job_path.read_text(encoding="utf-8"))
        write_first(result, stitch_on_spark(self.spark.sparkContext, job).to_json())


if __name__ == "__main__":
    serve(Contender().run)
