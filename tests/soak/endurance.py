"""The soak itself: rounds of producing and batches, with everything that happens to a platform, until its time is up.

Nothing here is tolerated silently: a batch that ends in any other way than the round expects is a problem, and the
verdict fails.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from tests.builders.published_bytes import rows_with_bytes
from tests.conftest import ROOT
from tests.deployment_rig import STREAM, DeploymentRig
from tests.faults.in_process import run_here
from tests.soak.producing import Production, digest_of
from tests.soak.sampling import take_sample
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.batch.run import RunOptions
from wavestitch.contracts.errors import Fenced, WavestitchError
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import Offset
from wavestitch.maintain.run import maintain_stream
from wavestitch.settings_sections import MaintainLimits
from wavestitch.tables.lookup.file_scans import read_rows

KILLED_AFTER = ("plan", "read", "reassemble", "validate", "publish")
_CHILD_SECONDS = 180
MAINTENANCE_ROUNDS, KILLED_ROUNDS, REWIND_ROUNDS, BACKFILL_ROUNDS = 5, 7, 11, 13

# Ages are short, so that an hour shows what months do; below what settings allow, as nothing here takes that long.
LIMITS = MaintainLimits.model_construct(
    finished_batches=120,
    given_up_batches=120,
    data_docs=120,
    snapshot_age=300,
    most_snapshots=25,
    least_snapshots=5,
    pinned_heads=600,
    orphan_age=120,
    target_file=8 << 20,
    small_files=24,
)


@dataclass
class Endurance:
    """`say` tells whoever waits. `broker_pid`: its memory is watched, too."""

    whole: DeploymentRig
    broker_pid: int
    seconds: float
    sample_seconds: float
    spark_rounds: int
    rng: random.Random
    say: Callable[[str], None]
    events: Counter[str] = field(default_factory=Counter)
    samples: list[dict[str, float]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    began: float = 0.0
    production: Production = field(init=False)

    def __post_init__(self) -> None:
        self.production = Production(random.Random(self.rng.getrandbits(64)))

    def run(self) -> None:
        """Rounds until the time is up; then everything that was withheld, and batches until nothing is left."""
        self.began, due, number = time.monotonic(), 0.0, 0
        while (now := time.monotonic() - self.began) < self.seconds:
            if now >= due:
                self.sample()
                due = now + self.sample_seconds
            number += 1
            self.guarded(f"round {number}", partial(self.round, number))
        self.whole.send(self.production.rest())
        self.guarded("the last batches", self.drain)
        self.guarded("the last maintenance", self.maintain)
        self.sample()

    def guarded(self, what: str, act: Callable[[], Any]) -> None:
        try:
            act()
        except WavestitchError as error:
            self.problems.append(f"{what}: {type(error).__name__}: {error.message}")
            self.say(self.problems[-1])

    def round(self, number: int) -> None:
        self.whole.send(self.production.round(self.rng.randint(2, 12)))
        if number % KILLED_ROUNDS == 0:
            self.killed_batch()
        elif number % BACKFILL_ROUNDS == 0:
            self.backfill()
        elif number % REWIND_ROUNDS == 0:
            self.rewind()
        if number % self.spark_rounds == 0:
            self.events["batches through Spark"] += 1
            self.count(self.whole.run())
        else:
            self.batch()
        if number % MAINTENANCE_ROUNDS == 0:
            self.maintain()

    def batch(self, **options: Any) -> dict[str, Any]:
        done = run_here(self.whole.deployment, STREAM, RunOptions(**options))
        self.count(done)
        return done

    def count(self, done: dict[str, Any]) -> None:
        self.events["batches" if "nothing" not in done else "batches with nothing to do"] += 1

    def killed_batch(self) -> None:
        """A batch dies; it is carried through again, or left, so that the next one reads the same."""
        step = self.rng.choice(KILLED_AFTER)
        before = set(self.plans())
        argv = [sys.executable, "-m", "tests.soak.killed", str(self.whole.folder / "wavestitch.toml"), step]
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=_CHILD_SECONDS, check=False)
        if done.returncode != -signal.SIGKILL:
            self.problems.append(
                f"a batch that was to die after {step} ended with {done.returncode}: {done.stderr[-500:]}"
            )
        self.events["batches killed"] += 1
        left = sorted(set(self.plans()) - before)
        if self.rng.random() < 0.3:
            self.maintain()
        for plan_id in left if self.rng.random() < 0.6 else []:
            self.batch(plan_id=plan_id)
            self.events["plans carried through again"] += 1

    def plans(self) -> list[str]:
        folder = self.whole.folder / "landing" / STREAM
        return [p.name for p in folder.iterdir() if not p.name.startswith(".")] if folder.is_dir() else []

    def rewind(self) -> None:
        """Some hundred offsets back, now and then while a batch is under way, which must end fenced."""
        deployment = self.whole.deployment
        stream, tables = deployment.stream(STREAM), deployment.tables(STREAM)
        head = tables.head()
        if head is None or not any(at.next_offset for at in head.positions.values()):
            return
        back = {p: Offset(max(0, at.next_offset - self.rng.randint(1, 300))) for p, at in head.positions.items()}

        def move() -> None:
            found = plan_rewind(
                stream, Target(offsets=back), log=deployment.log, tables=tables, who="soak", why="again"
            )
            apply_rewind(stream, found, accept_skip=False, log=deployment.log, tables=tables)
            self.events["rewinds"] += 1

        if self.rng.random() < 0.5:
            move()
            return
        try:
            self.batch(after_step=lambda step: move() if step == "read" else None)
        except Fenced:
            self.events["batches fenced by a rewind"] += 1
        else:
            self.problems.append("a batch that was overtaken by a rewind was not fenced")

    def backfill(self) -> None:
        end = time.time_ns() - self.rng.randint(0, 60) * 10**9
        scope = Scope(end - self.rng.randint(1, 120) * 10**9, end)
        self.batch(request=PlanRequest(PlanKind.BACKFILL, scope=scope))
        self.events["backfills"] += 1

    def maintain(self) -> None:
        report = maintain_stream(
            self.whole.deployment,
            STREAM,
            apply=True,
            limits=LIMITS,
        )
        self.events["maintenance runs"] += 1
        for action in report.actions:
            self.events[f"{action.unit} that {action.action} let go of"] += action.count
            self.events["rows compared after compaction"] += int(action.facts.get("rows_compared", 0))

    def drain(self) -> None:
        for _ in range(20):
            if "nothing" in self.batch():
                return
        self.problems.append("20 batches did not come to the end of the log")

    def sample(self) -> None:
        found = take_sample(
            self.whole,
            processes={"soak": os.getpid(), "broker": self.broker_pid},
            began=self.began,
            sent_bytes=self.production.bytes,
            batches=self.events["batches"],
        )
        self.samples.append(found)
        mib = {n: found[n] / 2**20 for n in ("rss_soak", "rss_broker", "landing_bytes", "warehouse_bytes")}
        self.say(
            f"{found['seconds'] / 60:6.1f} min: {self.events['batches']} batches, "
            f"{len(self.production.truth)} waveforms, "
            f"soak {mib['rss_soak']:.0f} MiB, broker {mib['rss_broker']:.0f} MiB, "
            f"landing {mib['landing_bytes']:.1f} MiB, "
            f"warehouse {mib['warehouse_bytes']:.1f} MiB, {found.get('snapshots_waveforms', 0):.0f} snapshots"
        )

    def published(self) -> list[tuple[str, bytes]]:
        """Id and digest of every published row, read straight from the table, file by file."""
        table = self.whole.deployment.tables(STREAM).waveforms()
        found: list[tuple[str, bytes]] = []
        for rows in read_rows(table, ["waveform_id", "sample_format", "samples"]) if table is not None else ():
            found += [
                (r["waveform_id"], digest_of(r["samples"])) for r in rows_with_bytes(pa.Table.from_batches([rows]))
            ]
        return found
