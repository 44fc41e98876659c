"""Eight points at which a batch kills itself, as a machine that loses power.

The points are outside the product: after a step, or around a call at an edge. Nothing is cleaned up, nothing flushed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from consumers.record_sink import RecordSink
from tests.clean_processes import clean_processes
from tests.deployment_rig import STREAM
from wavestitch.batch import publish
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.run import RunOptions, Silent, run_batch
from wavestitch.contracts.quantities import Offset
from wavestitch.contracts.record_columns import RecordColumns
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
AFTER_STEP = {"after plan": "plan", "after landing": "read", "after offsets": "commit_offsets"}


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


def die_at_record(nth: int, die: Callable[[], Any]) -> None:
    """Die when the `nth` record (from 0) of this process is about to be landed: of those that come in columns the ones
    before it are landed as they are, in columns where they would be."""
    land, land_columns, seen, in_columns = RecordSink.land, RecordSink.land_columns, [0], [False]

    def killed_land(self: RecordSink, message: Any, offset: Offset) -> int:
        if not in_columns[0]:
            if seen[0] == nth:
                die()
            seen[0] += 1
        return land(self, message, offset)

    def killed_columns(self: RecordSink, records: RecordColumns, epoch: int) -> int:
        left = nth - seen[0]
        seen[0] += len(records)
        in_columns[0] = True
        some = records if left >= len(records) else records.between(Offset(0), Offset(int(records.offsets[left])))
        size = land_columns(self, some, epoch) if left else 0
        in_columns[0] = False
        if left < len(records):
            die()
        return size

    RecordSink.land, RecordSink.land_columns = killed_land, killed_columns  # type: ignore[method-assign]


def die_around_the_commit(point: str, die: Callable[[], Any]) -> None:
    """Die at the points that lie inside publishing; does nothing for the others."""
    if point == "before the decision":
        publish.decide = lambda *_a, **_k: die()  # type: ignore[assignment]
    if point in ("between staging and the head's commit", "between commit and offsets"):
        commit = StreamTables.commit

        def killed_commit(self: StreamTables, *args: Any, **more: Any) -> Any:
            if args[0] is None:  # the first head is the plan's
                return commit(self, *args, **more)
            if point == "between commit and offsets":
                commit(self, *args, **more)
            return die()

        StreamTables.commit = killed_commit  # type: ignore[assignment, method-assign]


def run_killed(config: Path, point: str, *, seconds: float) -> None:
    """Run a batch in a process group of its own until it has killed itself there."""
    said = config.with_name("killed.log")
    child = clean_processes().Process(target=_apart, args=(str(config), point, said))
    child.start()
    child.join(seconds)
    if child.is_alive():
        os.killpg(child.pid, signal.SIGKILL)
        child.join()
        raise AssertionError(f"it was to be killed {point}, and ran on for {seconds:.0f} s: {_end_of(said)}")
    assert child.exitcode == -signal.SIGKILL, f"it was to be killed {point}: {_end_of(said)}"


def _end_of(said: Path) -> str:
    return said.read_text(errors="replace")[-2000:] if said.exists() else "nothing was said"


def _apart(config: str, point: str, said: Path) -> None:
    os.setsid()
    with said.open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    main(config, point)


def main(config: str, point: str) -> None:
    deployment = Deployment(load_settings({"WAVESTITCH_CONFIG": config}))
    step = AFTER_STEP.get(point)

    def after_step(done: str) -> None:
        if done == step:
            die()

    if point == "mid-write in Spark":
        die_once_written(Path(config).parent / "warehouse")
    die_around_the_commit(point, die)
    watcher = Killer() if point == "mid-read" else Silent()
    edges = DeploymentEdges(deployment, STREAM, gate_ahead=True)
    run_batch(edges, RunOptions(after_step=after_step), watcher=watcher)
