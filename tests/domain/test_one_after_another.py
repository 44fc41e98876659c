"""A run of batch after batch: where it ends, and what of that which comes meanwhile it takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.builders.records import cut, metadata
from tests.builders.streams import make_stream
from tests.deployment_rig import STREAM, DeploymentRig
from tests.fakes.batch import Bench, Carrying, FakeEdges
from tests.fakes.fake_log import FakeLog
from tests.hostile.landed_deployment import declare, make_landed_deployment
from wavestitch.batch.plan import NothingToDo
from wavestitch.batch.results import BatchDone
from wavestitch.batch.run import RunOptions, Silent, catch_up, one_after_another, run_batch
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.stream import Limits

CLOCK_MS = 1_700_000_000_000


class Catching:
    """A catch-up in memory. `moments`: what comes before each time that it asks whether to go on; it does as long as
    there are any."""

    def __init__(self, *moments: str) -> None:
        self.bench = Bench(FakeLog(partitions=1))
        self.stream = make_stream("waves", group="waves-batches", limits=Limits(max_batch_records=2))
        self.moments = list(moments)
        self.waited = 0
        self.sent = 0

    def send(self, waveforms: int) -> None:
        for _ in range(waveforms):
            self.sent += 1
            chunks = [b"ab", b"cd"]
            for one in cut(f"w{self.sent}", chunks, meta=metadata(CLOCK_MS), live=False, digest=None, keyed=True):
                self.bench.log.append(Partition(0), CLOCK_MS, *one)

    def batch(self) -> BatchDone | NothingToDo:
        edges = FakeEdges(self.bench, self.stream, CLOCK_MS, Carrying())
        return run_batch(edges, RunOptions(), watcher=Silent())

    def go_on(self) -> bool:
        if not self.moments:
            return False
        self.send(len(self.moments.pop(0)))
        return True

    def wait(self) -> None:
        self.waited += 1

    def run(self) -> str:
        """A letter for each result that is told: a batch or nothing."""
        found = one_after_another(self.batch, go_on=self.go_on, wait=self.wait)
        return "".join("n" if isinstance(one, NothingToDo) else "b" for one in found)

    def published(self) -> int:
        return len(self.bench.tables.rows)


def test_it_goes_to_the_end_of_the_log_that_its_last_plan_saw() -> None:
    run = Catching()
    run.send(3)
    assert (run.run(), run.published(), run.waited) == ("bbb", 3, 0)
    assert (run.run(), run.published()) == ("n", 3)


def test_for_as_long_as_is_said_it_takes_what_comes_meanwhile_and_waits_where_nothing_has() -> None:
    run = Catching("w", "", "", "ww", "")
    assert (run.run(), run.published(), run.waited) == ("bbbn", 3, 2)


def test_what_is_left_when_the_time_is_over_is_read_to_its_end() -> None:
    run = Catching("w", "www")
    assert (run.run(), run.published(), run.waited) == ("bbbb", 4, 0)


class Redefines(Silent):
    """Declares something else before the second batch is planned."""

    def __init__(self, rig: DeploymentRig) -> None:
        self.rig, self.begun = rig, 0

    def begin(self, step: str, total: int | None = None) -> None:
        self.begun += 1
        if self.begun == 2:
            declare(self.rig, "samples: complex\n")


def test_each_batch_goes_by_the_definition_as_it_is_when_it_is_planned(tmp_path: Path) -> None:
    rig = make_landed_deployment(tmp_path, stream_yaml="", partitions=1)
    os.utime(rig.folder / "streams" / f"{STREAM}.yaml", (0, 0))
    watcher = Redefines(rig)
    with pytest.raises(BadInput, match="samples"):
        list(catch_up(rig.deployment, STREAM, RunOptions(), watcher=watcher, seconds=5))
    assert watcher.begun == 2
