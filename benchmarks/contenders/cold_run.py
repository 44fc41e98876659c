"""One batch in a fresh process, as the command line makes it: `python -m benchmarks.contenders.cold_run JOB`.

Prints what each step cost. What the process took beside them is the interpreter and what it imports.
"""

from __future__ import annotations

import json
import sys

from benchmarks.stopwatch import Stopwatch
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges, submit_by_settings
from wavestitch.batch.run import RunOptions, done_to_json, run_batch
from wavestitch.settings import load_settings


def main(job: dict[str, object]) -> None:
    deployment = Deployment(load_settings(job["config"]))  # type: ignore[arg-type]
    watch = Stopwatch()
    submit = watch.timed("Spark", submit_by_settings(deployment, watch.say))
    edges = DeploymentEdges(deployment, str(job["stream"]), submit=submit, gate_ahead=True)
    done = done_to_json(run_batch(edges, RunOptions(), watcher=watch))
    watch.begin("done")
    print(
        json.dumps(
            {
                "steps": {name: [c.wall, c.cpu] for name, c in watch.costs.items()},
                "waveforms": done["published"]["waveforms"],
            }
        )
    )


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
