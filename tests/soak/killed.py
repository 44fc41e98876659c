"""One batch in a process that kills itself after a step: `python -m tests.soak.killed CONFIG STEP`."""

from __future__ import annotations

import os
import signal
import sys

from tests.deployment_rig import STREAM
from tests.faults.in_process import run_here
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.run import RunOptions
from wavestitch.settings import load_settings


def main(config: str, step: str) -> None:
    def after_step(done: str) -> None:
        if done == step:
            os.kill(os.getpid(), signal.SIGKILL)

    run_here(Deployment(load_settings({"WAVESTITCH_CONFIG": config})), STREAM, RunOptions(after_step=after_step))


if __name__ == "__main__":
    main(*sys.argv[1:])
