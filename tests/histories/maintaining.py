"""What happens around maintenance and catalogs in a random history: readers are killed over files in the making, a
stage fails, a catalog fails in the words of its own library. Of the histories that have it the draws are made apart.
Judges nothing.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
import weakref
from functools import partial
from pathlib import Path

from pyiceberg.exceptions import ServerError
from sqlalchemy.exc import OperationalError

from tests.fakes.batch import FakeEdges
from tests.fakes.fake_maintenance import ORPHAN_AGE, maintain
from tests.fakes.faults import Fault, Foreign
from tests.histories.promoting import Promoting
from wavestitch.batch.plan import PlanRequest
from wavestitch.write_once import DigestingFile

SHARE, OFTEN = 0.2, 0.1
"""Of all histories so many have such things in them; in those something of them comes after so many acts."""
LOOKS = ("tables.head", "tables.heads", "tables.batches", "tables.published", "tables.held")


class SlowDownError(Exception):
    """Of a library that no list of ours has."""


class Maintaining(Promoting):
    """`of_maintenance`: the randomness of all this, apart."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.of_maintenance = random.Random(f"tending {seed}")
        self.maintains = self.of_maintenance.random() < SHARE
        self._disk: Path | None = None
        self._open: list[DigestingFile] = []
        self._files = 0

    def something_more(self) -> None:
        super().something_more()
        if not self.maintains or self.of_maintenance.random() > OFTEN:
            return
        self.random, drawn = self.of_maintenance, self.random
        self.random.choice([self.a_reader_leaves_a_file, self.a_stage_fails, self.a_catalog_fails_in_its_own_words])()
        self.random = drawn

    def landing(self) -> Path:
        if self._disk is None:
            # A history that ended by an anomaly has nobody who closes it.
            self._disk = self.bench.landing = Path(tempfile.mkdtemp(prefix="landing-"))
            weakref.finalize(self, shutil.rmtree, self._disk)
        folder = self._disk / self.stream.name / "plan"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def a_reader_leaves_a_file(self) -> None:
        """It is killed amid it, as is known by the lock that it has no more; or it is at work, however long."""
        file = DigestingFile(self.landing())
        file.write(b"half a unit")
        alive = self.random.random() < 0.3
        if alive:
            self._open.append(file)
        else:
            os.close(file._fd)
        self._files += 1
        # Its own name is chance, and a seed is its own reproduction.
        path = file.path.rename(file.path.with_name(f".{self._files:032x}.tmp"))
        os.utime(path, ns=(self.clock_ms * 1_000_000,) * 2)
        self.ops["a reader at work" if alive else "a reader killed over a file"] += 1
        self.bench.tell("left behind", name=path.name, at_ms=self.clock_ms, alive=alive)

    def readers_leave_files(self) -> None:
        """Then time passes, one more does, and maintenance runs."""
        for _ in range(3):
            self.a_reader_leaves_a_file()
        self.clock_ms += 2 * ORPHAN_AGE * 1000
        self.a_reader_leaves_a_file()
        self.maintained()

    def maintained(self, fault: Fault | Foreign | None = None) -> None:
        """To its end; `fault`: at some effect of a stage."""
        if self.busy:
            return
        edges = FakeEdges(self.bench, self.stream, self.clock_ms, self.carrying())
        run = self.launch("maintain", partial(maintain, edges, most=self.random.choice([1, 3])), now=0)
        looked = self.random.randint(3, 9) if fault is not None else 0
        while not run.done and (len(run.trace) < looked or (fault is not None and run.at not in LOOKS)):
            run.advance()
        if not run.done:
            run.advance(fault)
        self.step(run, 1000)

    def a_stage_fails(self) -> None:
        """Whichever it meets; the others are tried all the same."""
        self.ops["a stage of maintenance fails"] += 1
        faults: list[Fault | Foreign] = [Fault.FAIL_BEFORE, self.foreign()]
        self.maintained(self.random.choice(faults))

    def a_catalog_fails_at_an_ingest(self) -> None:
        self.send(self.new_waveform(1)[0])
        self.launch("ingest", partial(self.batch, self.stream, PlanRequest()), now=0)
        self.a_catalog_fails_in_its_own_words()

    def a_catalog_fails_in_its_own_words(self) -> None:
        """To whoever asks it next."""
        if not self.runs:
            return
        run = self.random.choice(self.runs)
        for _ in range(40):
            if run.done or run.at in LOOKS:
                break
            run.advance()
        if not run.done and run.at in LOOKS:
            self.ops["a catalog fails in its own words"] += 1
            run.advance(self.foreign())
        self.settle(run)

    def foreign(self) -> Foreign:
        return Foreign(
            self.random.choice(
                [
                    ServerError("ServerError: 503: try later"),
                    OperationalError("SELECT 1", {}, Exception("the server closed the connection")),
                    SlowDownError("Please reduce your request rate"),
                ]
            )
        )
