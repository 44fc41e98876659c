"""Runs one batch and kills itself at a chosen point, as a machine that loses power: `killed_batch.py CONFIG POINT`.

The points are outside the product: after a step, or around a call at an edge. Nothing is cleaned up, nothing flushed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from tests.whole import STREAM
from wavestitch.batch import publish
from wavestitch.batch.run import RunOptions, Silent, run_batch
from wavestitch.batch.site import Site
from wavestitch.settings import load_settings
from wavestitch.tables.stream_tables import StreamTables

POINTS = (
    "after plan",
    "mid-read",
    "after landing",
    "mid-write in Spark",
    "before the decision",
    "between staging and the head's commit",
    "between commit and offsets",
    "after offsets",
)
_AFTER_STEP = {"after plan": "plan", "after landing": "read", "after offsets": "commit_offsets"}


def die() -> None:
    """Kill this process and all it started (they share its process group), at once."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


class Killer(Silent):
    """Dies at the first sign of progress in reading."""

    def progress(self, records: int, size: int) -> None:
        if records > 0:
            die()


def die_once_written(folder: Path) -> None:
    """Die as soon as a task has begun to write into the folder of staged files."""

    def look() -> None:
        while True:
            if any(p.stat().st_size for p in folder.rglob("*.tmp") if p.is_file()):
                die()

    threading.Thread(target=look, daemon=True).start()


def main(config: str, point: str) -> None:
    site = Site(load_settings({"WAVESTITCH_CONFIG": config}))
    step = _AFTER_STEP.get(point)

    def after_step(done: str) -> None:
        if done == step:
            die()

    if point == "mid-write in Spark":
        die_once_written(Path(config).parent / "warehouse")
    if point == "before the decision":
        publish.decide = lambda *_a, **_k: die()  # type: ignore[assignment]
    if point in ("between staging and the head's commit", "between commit and offsets"):
        commit = StreamTables.commit

        def killed_commit(self: StreamTables, *args: Any) -> Any:
            if args[0] is None:  # the first head is the plan's
                return commit(self, *args)
            if point == "between commit and offsets":
                commit(self, *args)
            return die()

        StreamTables.commit = killed_commit  # type: ignore[method-assign]
    watcher = Killer() if point == "mid-read" else Silent()
    run_batch(site, STREAM, RunOptions(after_step=after_step), watcher=watcher)


if __name__ == "__main__":
    main(*sys.argv[1:])
