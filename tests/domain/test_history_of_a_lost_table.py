"""A waveforms table that somebody dropped, and no other: the history still has rows of what was committed in it."""

from __future__ import annotations

from tests.domain import backfill_rig as rig
from tests.domain.backfill_rig import ARCHIVE, backfill, days, send
from tests.fakes.batch import Bench
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.history import history_of, whole_history
from wavestitch.batch.steps import finished
from wavestitch.contracts.quantities import Partition


def test_a_batch_of_a_table_that_was_dropped_is_not_told_as_finished() -> None:
    """The group's offsets are gone, too, so that nobody has to settle anything; the next head takes its number."""
    bench = Bench(FakeLog("waves", 1))
    send(bench, "a", day=5)
    backfill(bench, ARCHIVE, days(5, 6))
    plan_id = bench.tables.history[-1].plan_id
    assert finished(rig.edges(bench, ARCHIVE), plan_id) is not None
    bench.tables.drop("6d0f4f0e-0000-4000-8000-00000000d201")
    bench.log.expire_group(Partition(0))
    send(bench, "b", day=9)
    rig.ingest(bench)
    assert finished(rig.edges(bench, ARCHIVE), plan_id) is None
    told = [(row.sequence, row.kind) for row in whole_history(history_of(rig.edges(bench, ARCHIVE)))]
    assert told == [(4, "ingest"), (3, "first"), (2, "backfill")], "no head has a number of the table that was dropped"
