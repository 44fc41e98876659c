"""Brokers' disks that are put back from a backup, in a random history: behind an election that nobody noticed, so that
leader epochs and offsets are used again for other records.

Of the histories that have it in them the draws are made apart. Judges nothing.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from tests.fakes.kept_partition import Record
from tests.histories.verifying import Verifying
from wavestitch.contracts.quantities import Offset, Partition

SHARE, OFTEN, UNNOTICED = 0.2, 0.12, 0.3
"""Of all histories so many have such disks in them; in those something becomes of one after so many acts; and so many
times nobody is elected when it is put back: the leader epoch that was goes on."""


class Backup(NamedTuple):
    """Of one partition's disk: its last record, where it ended, and in which leader epoch."""

    last: Record
    end: Offset
    epoch: int


class PuttingBack(Verifying):
    """`of_disks`: the randomness of backups, apart. `backups`: the last one of each partition."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.of_disks = random.Random(f"putting back {seed}")
        self.of_elections = random.Random(f"elected when put back {seed}")
        self.has_backups = self.of_disks.random() < SHARE
        self.backups: dict[int, Backup] = {}
        self.put_backs = 0

    def something_more(self) -> None:
        super().something_more()
        if not self.has_backups or self.of_disks.random() > OFTEN:
            return
        self.random, drawn = self.of_disks, self.random
        p, _ = self.a_partition()
        if p not in self.backups:
            self.back_up(p)
        elif self.put_backs < 2:
            self.put_back(p)
        self.random = drawn

    def back_up(self, p: int, *, restarted: bool = True) -> bool:
        """Then an election that cuts nothing off."""
        at = self.bench.log.partitions[Partition(p)]
        if at.open or at.end == at.log_start:
            return False
        self.ops["disk backed up"] += 1
        self.backups[p] = Backup(at.records[-1], at.end, at.epoch)
        if restarted:
            self.bench.log.restart(Partition(p))
        return True

    def put_back(self, p: int, *, more: int | None = None, elected: bool | None = None) -> bool:
        """And started, perhaps more often than it was before; what is produced from here on takes offsets again."""
        backup, log = self.backups.pop(p), self.bench.log
        at = log.partitions[Partition(p)]
        there = at.log_start <= backup.end < at.end and at.records[backup.end - 1] is backup.last
        if not there or any(o >= backup.end for o in at.open):
            return False
        self.put_backs += 1
        elected = self.of_elections.random() > UNNOTICED if elected is None else elected
        self.ops["disk put back" if elected else "disk put back into its epoch"] += 1
        log.put_back(Partition(p), backup.end, backup.epoch, elected=elected)
        for _ in range(self.random.choice([0, 1, 3, 6]) if more is None else more):
            *now, later = self.new_waveform(self.random.randint(1, 3))
            for one in now:
                self.send(one, p)
            self.late.append(later)
            if self.random.random() < 0.2:
                log.restart(Partition(p))
        return True
