"""What a backfill of other times had read, done on purpose: the log is cut off there, or its disk put back, and what is
written anew is of the interval of the next one. Judges nothing.
"""

from __future__ import annotations

from functools import partial

from tests.histories.backfilling import DEADLINE, Chain
from tests.histories.on_purpose import OnPurpose
from wavestitch.batch.rewind import Target
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.quantities import Offset, Partition

FAR = 10_000_000
"""Milliseconds between the two times: no block of starts has both."""


class LeftUnread(OnPurpose):
    def some(self, p: int, count: int) -> None:
        for one in [self.new_waveform(1)[0] for _ in range(count)]:
            self.send(one, p)

    def backfilled(self) -> None:
        """What starts now."""
        scope = Scope(self.clock_ms * 10**6, (self.clock_ms + 1) * 10**6)
        self.launch("backfill chain", partial(self.chained, self.stream, scope), far=True, deadline=DEADLINE)

    def left_and_taken(self) -> None:
        """A backfill of another time reads what it does not hold, ahead of the ingest; retention takes that."""
        if not self.is_quiet():
            return
        p, at = self.a_partition()
        self.clock_ms += FAR
        self.send(self.new_waveform(2)[0], p)
        self.backfilled()
        self.bench.log.retain_from(Partition(p), Offset(at.end))
        self.backfilled()

    def read_and_taken(self) -> None:
        """An ingest reads it, and retention takes that; more of then comes, which a backfill reads."""
        if not self.is_quiet():
            return
        p, at = self.a_partition()
        self.clock_ms += FAR
        self.some(p, 3)
        self.all_there_is()
        self.bench.log.retain_from(Partition(p), Offset(at.end))
        self.some(p, 3)
        self.backfilled()

    def taken_before_it_is_read_across_the_cuts(self) -> None:
        """All batches of a backfill are through, and retention takes the first chunk of what lies across their cuts."""
        if not self.is_quiet():
            return
        p, at = self.a_partition()
        self.clock_ms += FAR
        (first, last), start = self.new_waveform(2), at.end
        self.send(first, p)
        self.some(p, 9)
        self.send(last, p)
        scope = Scope(self.clock_ms * 10**6, (self.clock_ms + 1) * 10**6)
        run = self.launch(
            "backfill chain", partial(self.chained, self.in_small_batches(), scope), deadline=DEADLINE, now=0
        )
        planned = len(self.chains)
        while not run.done and (len(self.chains) == planned or not self._all_are_through(self.chains[-1])):
            run.advance()
        self.bench.log.retain_from(Partition(p), Offset(start + 1))
        self.step(run, 1000)

    def _all_are_through(self, chain: Chain) -> bool:
        done = {head.plan_id for head in self.bench.tables.snapshots}
        return done.issuperset(chain.planned.plans)

    def left_and_cut_off(self, *, taken: bool = False) -> None:
        """The same, and an election cuts it off; what is written anew there is of another time. `taken`: by retention,
        after an ingest has read it."""
        if not self.is_quiet():
            return
        p, at = self.a_partition()
        self.clock_ms += FAR
        cut, then = at.end, self.clock_ms
        self.send(self.new_waveform(2)[0], p)
        self.backfilled()
        self.clock_ms += FAR
        self.written_anew(p, cut=cut, until=at.end + 1)
        if taken:
            self.quiet_runs()
            self.bench.log.retain_from(Partition(p), Offset(at.end))
        self.clock_ms = then
        self.backfilled()

    def left_cut_off_and_taken(self) -> None:
        self.left_and_cut_off(taken=True)

    def read_in_a_later_epoch_and_put_back(self, *, taken: bool = False) -> None:
        """A backfill reads once more what an ingest has read, in the epoch after that; the disk is put back to before,
        so that the epoch comes again. `taken`: by retention, a part of what is written anew."""
        if not self.is_quiet():
            return
        p, at = self.a_partition()
        self.clock_ms += FAR
        self.some(p, 2)
        self.quiet_runs()
        if self.stands(p) != at.end or not self.back_up(p, restarted=False):
            return
        self.some(p, 6)
        self.quiet_runs()
        stands = self.stands(p)
        self.bench.log.restart(Partition(p))
        self.backfilled()
        if stands == at.end and self.put_back(p, more=0, elected=True):
            self.clock_ms += FAR
            self.some(p, 8)
            if taken:
                self.bench.log.retain_from(Partition(p), Offset(stands - 2))
            self.backfilled()

    def read_in_a_later_epoch_put_back_and_taken(self) -> None:
        self.read_in_a_later_epoch_and_put_back(taken=True)

    def read_ahead_cut_off_and_taken(self) -> None:
        """A backfill reads ahead of the ingest; an election cuts that off, and retention takes all of it, written anew
        by then."""
        if not self.is_quiet():
            return
        p, at = self.a_partition()
        self.clock_ms += FAR
        self.some(p, 4)
        self.backfilled()
        read, stands = at.end, self.stands(p)
        if stands + 4 == read:
            self.clock_ms += FAR
            self.written_anew(p, cut=stands + 1, until=read + 3)
            self.bench.log.retain_from(Partition(p), Offset(read + 1))
            self.backfilled()

    def deleted_accepted_and_taken(self) -> None:
        """A published row is deleted, the head made anew without it, as somebody accepts, and retention takes the
        record."""
        if not self.is_quiet():
            return
        p, at = self.a_partition()
        self.clock_ms += FAR
        found = self.sound_ones(1, 1)
        if not found:
            return
        one = found[0][0]
        self.send(one, p)
        self.all_there_is()
        if self.bench.tables.delete_published({self.id_of(one)}):
            self.bench.tables.expire_head()
            self.rebuilt()
            self.quiet_runs()
            self.bench.log.retain_from(Partition(p), Offset(at.end))
            self.backfilled()

    def cut_off_skipped_and_taken(self) -> None:
        """What was read is cut off and written anew; somebody skips that by name, and retention takes it."""
        if not self.is_quiet():
            return
        p, at = self.a_partition()
        self.some(p, 3)
        self.quiet_runs()
        stands = self.stands(p)
        if stands != at.end:
            return
        self.clock_ms += FAR
        self.written_anew(p, cut=stands - 2, until=stands + 1)
        self.start_rewind(Target(offsets={Partition(p): Offset(stands + 1)}), True, far=True)
        self.bench.log.retain_from(Partition(p), Offset(at.end))
        self.backfilled()
