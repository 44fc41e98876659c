"""What befalls a catalog in the midst of what somebody does, on purpose. Judges nothing."""

from __future__ import annotations

from functools import partial

from tests.histories.left_unread import LeftUnread
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target


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
