"""What happens to log, group and tables in the protocol machine by nobody of ours: Kafka's tools, time, accidents.

Keeps what the checks ask: every head that ever was, of any catalog, and which resets stand.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.domain.approving_machine import ApprovingMachine
from tests.domain.producing_machine import pick
from tests.domain.running_machine import Run
from tests.fakes.fake_rows import FakeFiles
from tests.fakes.fake_tables import FakeTables
from tests.fakes.faults import under_way
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import Offset, Partition

MOST_CATALOGS = 2


class AccidentMachine(ApprovingMachine):
    """`ever`: every head that any catalog of the stream ever had, as they were committed. `other`: a catalog that is
    not in use (a copy). `catalogs`: how often the catalog was lost, set back or exchanged. `resets`: foreign offsets by
    partition, with the number of heads then, and whether a run had looked before. `named`: of each head that ever was,
    the partitions that a rewind named; None: all."""

    def __init__(self) -> None:
        super().__init__()
        self.ever: list[Head] = []
        self.named: list[frozenset[int] | None] = []
        self.other: FakeTables | None = None
        self.catalogs = 0
        self.resets: dict[int, tuple[int, bool]] = {}

    @rule(seconds=st.sampled_from([100, 45, 20, 1]))
    def time_passes(self, seconds: int) -> None:
        """Somebody stops the foreign consumer, too."""
        self.bench.log.live_members = []
        self.clock_ms += seconds * 1000

    @rule(
        what=st.sampled_from(
            [
                *("reset", "reset", "expiry", "retention", "partition", "snapshots", "member", "recreated", "history"),
                *("election", "election"),
            ]
        ),
        which=pick,
        to=st.integers(0, 12),
    )
    def accident(self, what: str, which: int, to: int) -> None:
        log, tables = self.bench.log, self.bench.tables
        p = which % len(log.partitions)
        if what == "reset":
            log.reset_group(Partition(p), Offset(to))
            on_its_way = any(effect.name == "log.commit_group" for effect in self.on_the_way)
            raced = on_its_way or any(self.has_looked_at_the_group(run) for run in self.runs)
            self.resets[p] = len(self.ever), raced
        elif what == "expiry":
            log.expire_group(Partition(p))
            self.resets.pop(p, None)
        elif what == "retention":
            log.retain_from(Partition(p), Offset(to // 2))
        elif what == "partition" and len(log.partitions) < 3:
            log.add_partition()
        elif what == "snapshots":
            tables.expire_snapshots(1 + to % 3)
        elif what == "member":
            log.live_members = ["console-consumer@10.0.0.1"] * (to % 4 == 3)
        elif what == "recreated" and log.incarnation < 2 and to % 3 == 0:
            self.topic_recreated(1 + which % 3)
        elif what == "election" and log.partitions[Partition(p)].end > log.partitions[Partition(p)].log_start:
            # A replica leads that lacks the newest records; what is produced from here on takes their offsets.
            log.truncate(Partition(p), Offset(log.partitions[Partition(p)].end - 1 - to % 4))
        elif what == "history":
            # Somebody deletes rows: a filter too wide, a restored file.
            tables.history = [row for n, row in enumerate(tables.history) if (n + which) % (2 + to % 2)]

    @staticmethod
    def has_looked_at_the_group(run: Run) -> bool:
        """Whether it may write what it decided on before this moment: that cannot be fenced, by anyone."""
        done = run.steps.trace[:-1]
        looked = [n for n, name in enumerate(done) if name == "log.group_offsets"]
        # Behind a commit of its own it looks again.
        return bool(looked) and not {"log.commit_group", "tables.commit"} & set(done[looked[-1] :])

    def topic_recreated(self, partitions: int) -> None:
        for run in list(self.runs):
            # Whoever has looked at the topic and is about to write its group cannot be fenced, by anyone.
            if run.steps.at == "log.commit_group" or (not run.carries and "log.read" not in run.steps.trace):
                run.steps.kill()
                self.settle_run(run)
        # A group's offsets on a topic that is gone are refused, however late they come.
        self.on_the_way = [effect for effect in self.on_the_way if effect.name != "log.commit_group"]
        self.bench.log.recreate(partitions)
        self.resets.clear()

    # catalogs

    @precondition(lambda self: self.catalogs < MOST_CATALOGS and self.bench.tables.snapshots)
    @rule(what=st.sampled_from(["copied", "copied", "lost", "set back"]), which=pick)
    def another_catalog(self, what: str, which: int) -> None:
        """A copy is made, or put in place (a wrong address, a backup); one is lost, with the host that it was on."""
        tables = self.bench.tables
        if what == "copied" and self.other is None:
            self.other = copy_of(tables)
            return
        self.kill_all()
        self.catalogs += 1
        if what == "copied":
            self.bench.tables, self.other = self.other or tables, tables
            self.bench.files = self.bench.tables.files
        elif what == "lost":
            self.bench.files = FakeFiles()
            self.bench.tables = FakeTables(self.bench.files, uuid=f"6d0f4f0e-0000-4000-8000-{self.catalogs + 1:012d}")
            self.bench.tables.tell = self.saw  # type: ignore[method-assign]
            self.bench.gates.clear()
        else:
            tables.restore(tables.snapshots[which % len(tables.snapshots)].sequence)
        self.catalog_changed()

    @precondition(lambda self: not self.catalogs and self.other is None and self.bench.tables.snapshots)
    @rule()
    def another_engine_expires_the_head(self) -> None:
        """Beside whatever is under way. Not where there is a copy of the catalog: what that one writes into the group
        is believed where no head is left that contradicts it (a limit)."""
        self.bench.tables.expire_head()

    def catalog_changed(self) -> None:
        """For whoever remembers what the catalog was."""

    def saw(self, what: str, /, **facts: Any) -> None:
        if what == "committed":
            self.ever.append(facts["head"])
            self.named.append(self.rewinding.get(under_way()))


def copy_of(tables: FakeTables) -> FakeTables:
    """A catalog of its own from here on, over the same files, as a copy of a catalog's database is."""
    made = copy.copy(tables)
    for name, value in vars(tables).items():
        if isinstance(value, list | dict | set):
            setattr(made, name, copy.copy(value))
    made._snapshot_ids = itertools.count(next(tables._snapshot_ids) + 100_000)
    return made
