"""What happens to log, group and tables of a random history without anybody of ours: other tools, accidents.

Each is counted in `ops` where it did happen. Judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.fake_log import Mood
from tests.fakes.fake_rows import FakeFiles
from tests.fakes.fake_tables import FakeTables
from tests.histories.running import Running
from tests.histories.witness import Witness
from wavestitch.contracts.position import GroupOffset
from wavestitch.contracts.quantities import Offset, Partition

ANOTHER_TABLE = "6d0f4f0e-0000-4000-8000-00000000beef"


class Accidents(Running):
    """`catalogs`: how often one was lost, set back or robbed of its head."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.witness = Witness(self.bench, self.history)
        self.catalogs = 0
        self.forked = False
        self.accidents = self.may_befall()

    def time_passes(self) -> None:
        """Somebody stops the foreign consumer, too, and sets the cleanup policy right."""
        self.bench.log.live_members, self.bench.log.compacted = [], False
        self.clock_ms += self.random.choice([100, 45, 20, 1]) * 1000

    def mood(self) -> None:
        """What the next readers meet."""
        mood = self.random.choice(list(Mood))
        self.ops["reader: " + mood.value] += 1
        self.bench.log.moods.append(mood)

    def accident(self) -> None:
        """Of some kinds a history has few: each of them makes all the others rarer."""
        _, what, call = self.random.choices(self.accidents, [weight for weight, _, _ in self.accidents])[0]
        self.ops[what] += call() is not False

    def may_befall(self) -> list[tuple[int, str, Callable[[], bool | None]]]:
        """With how often each does."""
        return [
            (4, "reset", self.group_reset),
            (2, "expiry", self.group_expires),
            (2, "retention", self.retention),
            (2, "partition", self.partition_added),
            (2, "snapshots", self.snapshots_expire),
            (2, "member", self.member),
            (2, "compacted", self.compacted),
            (1, "recreated", self.recreated),
            (3, "truncated", self.truncated),
            (2, "offset lost", self.offset_lost),
            (2, "shared group", self.shared_group),
            (3, "history rows gone", self.history_rows_gone),
            (3, "property edited", self.property_edited),
            (2, "catalog lost", self.catalog_lost),
            (2, "catalog set back", self.catalog_set_back),
            (2, "head expired", self.head_expired),
        ]

    # the log and the group

    def group_reset(self) -> None:
        self.right_after_a_commit()
        p, at = self.a_partition()
        self.bench.log.reset_group(Partition(p), Offset(self.random.randint(0, at.end)))

    def right_after_a_commit(self) -> None:
        """Sometimes: when somebody is about to show a head that it has just made."""
        if self.runs and self.random.random() < 0.5:
            run = self.random.choice(self.runs)
            self.to_a_commit(run)
            run.advance()
            self.settle(run)

    def group_expires(self) -> None:
        self.bench.log.expire_group(Partition(self.a_partition()[0]))

    def shared_group(self) -> bool:
        """Another deployment writes the group, or somebody who writes to a copy of this table."""
        log, tables = self.bench.log, self.bench.tables
        p, at = self.a_partition()
        if not tables.snapshots or log.live_members or self.catalogs:
            return False
        table = self.random.choice([ANOTHER_TABLE, ANOTHER_TABLE, tables.uuid])
        self.right_after_a_commit()
        self.forked |= table == tables.uuid
        log.group[Partition(p)] = GroupOffset(
            Offset(self.random.randint(0, at.end)), tables.snapshots[-1].tag(table).encode()
        )
        log.tell(
            "shared",
            partition=p,
            offset=log.group[Partition(p)].offset,
            another=table == ANOTHER_TABLE,
            version=tables.snapshots[-1].version,
        )
        return True

    def retention(self) -> None:
        p, at = self.a_partition()
        self.bench.log.retain_from(Partition(p), Offset(self.random.randint(0, at.end)))

    def truncated(self) -> bool:
        """An unclean election; what is produced from here on takes offsets that were taken before, often read ones."""
        p, at = self.a_partition()
        if len(at.cuts) > 1 or at.end == at.log_start:
            return False
        head = self.bench.tables.snapshots[-1] if self.bench.tables.snapshots else None
        here = head is not None and head.topic_id == self.bench.log.topic_id and p in head.positions
        stands = head.positions[Partition(p)].next_offset if head is not None and here else at.end
        about = stands if at.log_start < stands <= at.end and self.random.random() < 0.7 else at.end
        self.bench.log.truncate(Partition(p), Offset(self.random.randint(max(at.log_start, about - 6), about - 1)))
        for _ in range(self.random.choice([0, 1, 3, 6])):
            *now, later = self.new_waveform(self.random.randint(1, 3))
            for one in now:
                self.send(one, p)
            self.late.append(later)
        return True

    def offset_lost(self) -> bool:
        p, at = self.a_partition()
        if at.stable_end == at.log_start:
            return False
        self.bench.log.lose(
            Partition(p), Offset(self.random.randrange(max(at.log_start, at.stable_end - 12), at.stable_end))
        )
        return True

    def partition_added(self) -> bool:
        if len(self.bench.log.partitions) > 3:
            return False
        self.bench.log.add_partition()
        return True

    def member(self) -> None:
        log = self.bench.log
        log.live_members = [] if log.live_members else ["console-consumer at 10.0.0.1"]

    def compacted(self) -> None:
        self.bench.log.compacted = not self.bench.log.compacted

    def recreated(self) -> bool:
        log = self.bench.log
        if log.incarnation > 1:
            return False
        log.recreate(self.random.randint(1, 3))
        return True

    # the tables

    def snapshots_expire(self) -> None:
        self.bench.tables.expire_snapshots(self.random.randint(1, 3))

    def history_rows_gone(self) -> bool:
        rows = self.bench.tables.history
        if not rows:
            return False
        if self.random.random() < 0.5:  # of heads that are expired, nobody writes them again
            self.bench.tables.expire_snapshots(1)
        gone = rows if self.random.random() < 0.5 else self.random.sample(rows, self.random.randint(1, len(rows)))
        self.bench.tables.lose_history({b.sequence for b in gone})
        return True

    def property_edited(self) -> None:
        """As a table's owner may, with any tool: from here on a library would try a commit that lost again."""
        self.bench.tables.properties["commit.retry.num-retries"] = "4"

    def catalog_lost(self) -> bool:
        """With the host that it was on."""
        if not self._another_catalog():
            return False
        self.bench.files = FakeFiles()
        index = self.bench.tables.index
        self.bench.tables = FakeTables(self.bench.files, uuid=f"6d0f4f0e-0000-4000-8000-{self.catalogs + 1:012d}")
        self.bench.tables.index = index
        self.witness.catalog_lost(self.bench.tables)
        self.bench.gates.clear()
        return True

    def catalog_set_back(self) -> bool:
        if not self._another_catalog():
            return False
        heads = self.bench.tables.snapshots
        self.bench.tables.restore(heads[self.random.randrange(len(heads))].sequence)
        return True

    def head_expired(self) -> bool:
        # What a copy of the table wrote into the group is believed where no head is left that contradicts it.
        if self.forked or self.catalogs > 1 or not self.bench.tables.snapshots:
            return False
        self.catalogs += 1
        self.bench.tables.expire_head()
        return True

    def _another_catalog(self) -> bool:
        if self.catalogs > 1 or not self.bench.tables.snapshots:
            return False
        self.stop_everybody()
        self.catalogs += 1
        return True
