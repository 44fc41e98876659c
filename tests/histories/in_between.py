"""What befalls a catalog, or a log, in the midst of what somebody does, on purpose. Judges nothing."""

from __future__ import annotations

from functools import partial

from tests.fakes.way_out import GoTo, way_out
from tests.histories.backfilling import DEADLINE
from tests.histories.left_unread import FAR, LeftUnread
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target
from wavestitch.contracts.errors import DataLost
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.quantities import Offset, Partition


class InBetween(LeftUnread):
    def set_back_under_a_batch_and_expired(self) -> None:
        """Two plan; one commits, and shows that. The catalog is set back to before, the other commits under the same
        number, and another tool expires that head."""
        tables = self.bench.tables
        if not (self.is_quiet() and tables.snapshots) or self.forked or self.catalogs > 1:
            return
        p, at = self.a_partition()
        self.send(self.new_waveform(2)[0], p)
        before = tables.snapshots[-1].sequence
        first = self.launch("ingest", partial(self.batch, self.stream, PlanRequest()), now=0)
        self.to_its_plan(first)
        for one in [self.new_waveform(2)[0] for _ in range(2)]:
            self.send(one, p)
        self.all_there_is()
        if first.done or tables.snapshots[-1].sequence != before + 1:
            return
        self.catalogs += 1
        tables.restore(before)
        self.step(first, 1000)
        if tables.snapshots[-1].sequence == before + 1 and self.stands(p) < at.end:
            tables.expire_head()
            self.start_rewind(Target("rebuilt"), True, far=True)

    def read_in_a_later_epoch_and_expired(self) -> None:
        """What one leader took is read in the epoch of the next; every head is expired. The brokers are put back from a
        backup of before that election, and an unclean one, which begins that epoch again, cuts off what was read."""
        tables = self.bench.tables
        if not (self.is_quiet() and tables.snapshots) or self.forked or self.catalogs > 1:
            return
        self.all_there_is()
        p, at = self.a_partition()
        self.some(p, 3)
        if at.open or not at.log_start < self.stands(p) < at.end:
            return
        cut, end, epoch = self.stands(p), at.end, at.epoch
        self.bench.log.restart(Partition(p))
        self.all_there_is()
        if self.stands(p) != end:
            return
        tables.expire_head()
        self.bench.log.put_back(Partition(p), Offset(end), epoch, elected=False)
        self.written_anew(p, cut=cut, until=end + 1)
        self.start_rewind(Target("rebuilt"), True, far=True)

    def put_back_into_the_epoch_in_which_it_was_written_and_expired(self) -> None:
        """What was read in a later one is gone with a backup of before it was written; every head is expired."""
        tables = self.bench.tables
        if not (self.is_quiet() and tables.snapshots) or self.forked or self.catalogs > 1:
            return
        self.all_there_is()
        p, at = self.a_partition()
        if at.open or self.stands(p) != at.end:
            return
        cut, epoch = at.end, at.epoch
        self.some(p, 2)
        self.bench.log.restart(Partition(p))
        self.all_there_is()
        if self.stands(p) == cut + 2:
            tables.expire_head()
            self.bench.log.put_back(Partition(p), Offset(cut), epoch, elected=False)
            self.some(p, 3)
            self.start_rewind(Target("rebuilt"), True, far=True)

    def put_back_into_an_epoch_in_which_nothing_was_written_and_expired(self) -> None:
        """The stream stands in a later epoch than the last of it was written in; another partition is rewound and read
        again, and every head expired. A backup of that later epoch lacks the last record; the brokers go on in it."""
        tables, log = self.bench.tables, self.bench.log
        if not (self.is_quiet() and tables.snapshots) or self.forked or self.catalogs > 1:
            return
        self.all_there_is()
        p, at = self.a_partition()
        others = [q for q in sorted(log.partitions) if q != p and self.stands(q) > log.partitions[q].log_start]
        if at.open or not others or self.stands(p) != at.end:
            return
        self.some(p, 2)
        self.all_there_is()
        end, other = at.end, others[0]
        log.restart(Partition(p))
        self.some(other, 1)
        self.all_there_is()
        self.start_rewind(Target(offsets={other: Offset(self.stands(other) - 1)}), True, far=True)
        self.all_there_is()
        if self.stands(p) == end:
            tables.expire_head()
            log.put_back(Partition(p), Offset(end - 1), at.epoch, elected=False)
            self.some(p, 3)
            self.start_rewind(Target("rebuilt"), True, far=True)

    def planned_and_cut_off_before_it_reads(self) -> None:
        """A backfill plans; another one, of other times, reads that, and leaves a half of a waveform; an election cuts
        it off. What is written anew there is of the first one's times, which reads it."""
        if not self.is_quiet():
            return
        p, at = self.a_partition()
        self.clock_ms += FAR
        cut, first = at.end, self.clock_ms
        self.clock_ms += FAR
        then = self.clock_ms
        self.send(self.new_waveform(2)[0], p)
        scope = Scope(first * 10**6, (first + 1) * 10**6)
        run = self.launch("backfill chain", partial(self.chained, self.stream, scope), deadline=DEADLINE, now=0)
        self.to_its_plan(run)
        self.backfilled()
        self.clock_ms = first
        self.written_anew(p, cut=cut, until=cut + 1)
        self.step(run, 1000)
        self.clock_ms = then
        self.backfilled()

    def planned_and_rewound_before_it_reads(self) -> None:
        """An ingest plans; somebody goes back to the beginning, and the log loses the first of what was planned."""
        if (first := self.first_of_three_unread()) is None:
            return
        run = self.launch("ingest", partial(self.batch, self.stream, PlanRequest()), now=0)
        self.to_its_plan(run)
        done = self.start_rewind(Target("earliest"), True, far=True)
        if done.error is None and not run.done:
            self.bench.log.lose(*first)
        self.step(run, 1000)

    def rewound_before_its_way_out_is_followed(self) -> None:
        """An ingest names the way past what the log has lost; before anybody goes it, somebody goes back."""
        way = self.way_past_a_loss()
        if way is not None and self.start_rewind(Target("earliest"), True, far=True).error is None:
            self.start_rewind(way.target, way.accepts, far=True)

    def further_than_its_way_out_goes(self) -> None:
        """An ingest names the way past what the log has lost; what that accepts is said of a way to the end."""
        if (way := self.way_past_a_loss()) is not None:
            self.start_rewind(Target("latest"), way.accepts, far=True)

    def first_of_three_unread(self) -> tuple[Partition, Offset] | None:
        """In a partition of which something was read that the log still has."""
        if not (self.is_quiet() and self.bench.tables.snapshots):
            return None
        p, at = self.a_partition()
        self.some(p, 3)
        first = self.stands(p)
        return (Partition(p), Offset(first)) if at.log_start < first < at.end else None

    def way_past_a_loss(self) -> GoTo | None:
        """Of the first of three."""
        if (first := self.first_of_three_unread()) is None:
            return None
        self.bench.log.lose(*first)
        run = self.launch("ingest", partial(self.batch, self.stream, PlanRequest()), far=True)
        return way_out(str(run.error)) if isinstance(run.error, DataLost) else None
