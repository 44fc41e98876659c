"""One batch in a fresh process, as the command line makes it: `python -m benchmarks.contenders.cold_run JOB`.

Prints what each step cost. What the process took beside them is the interpreter and what it imports.
"""

from __future__ import annotations

import json
import sys

from benchmarks.stopwatch import Stopwatch
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.run import RunOptions, run_batch, submit_locally
from wavestitch.settings import load_settings


def main(job: dict[str, object]) -> None:
    deployment = Deployment(load_settings(job["config"]))  # type: ignore[arg-type]
    watch = Stopwatch()
    submit = watch.timed("Spark", submit_locally(deployment, watch.say))
    done = run_batch(deployment, str(job["stream"]), RunOptions(), watcher=watch, submit=submit)
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
