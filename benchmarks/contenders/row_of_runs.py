"""Batches of several streams in one process that has imported what they need: `… row_of_runs JOB`.

As the tasks of Airflow are, which are forked from a scheduler that has. Prints what each took, readers included.
"""

from __future__ import annotations

import json
import sys

from benchmarks.meter import spent
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.run import RunOptions, Silent, done_to_json, run_batch
from wavestitch.settings import load_settings


def main(job: dict[str, object]) -> None:
    deployment = Deployment(load_settings(job["config"]))  # type: ignore[arg-type]
    streams: list[str] = job["streams"]  # type: ignore[assignment]
    for stream in streams:
        began = spent()
        done = done_to_json(run_batch(DeploymentEdges(deployment, stream), RunOptions(), watcher=Silent()))
        cost = spent() - began
        print(json.dumps({"wall": cost.wall, "cpu": cost.cpu, "waveforms": done["published"]["waveforms"]}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
