"""A waveforms table that somebody dropped, and no other: the history still has rows of what was committed in it.

A row says beside which table it was written; what another one had is behind no head of this one.
"""

from __future__ import annotations

from functools import partial
from itertools import count

import pytest

from tests.domain import backfill_rig as rig
from tests.domain.backfill_rig import ARCHIVE, backfill, days, send
from tests.fakes.batch import Bench
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Steps
from wavestitch.batch.history import history_of, whole_history
from wavestitch.batch.rewind import Rewind, Target, apply_rewind, plan_rewind
from wavestitch.batch.steps import finished
from wavestitch.contracts.errors import DataLost, Refused, Transient
from wavestitch.contracts.quantities import Offset, Partition

ANOTHER = "6d0f4f0e-0000-4000-8000-00000000d201"


def dropped(bench: Bench) -> None:
    """With the group's offsets, so that nobody has to settle anything."""
    bench.tables.drop(ANOTHER)
    bench.log.expire_group(Partition(0))


def rewound(bench: Bench, word: str) -> Rewind:
    found = plan_rewind(ARCHIVE, Target(word), log=bench.log, tables=bench.tables, who="ops", why="it is back")
    apply_rewind(ARCHIVE, found, accept_skip=False, log=bench.log, tables=bench.tables)
    return found


def test_a_batch_of_a_table_that_was_dropped_is_not_told_as_finished() -> None:
    """No head of the next one takes its number, either."""
    bench = Bench(FakeLog("waves", 1))
    send(bench, "a", day=5)
    backfill(bench, ARCHIVE, days(5, 6))
    plan_id = bench.tables.history[-1].plan_id
    assert finished(rig.edges(bench, ARCHIVE), plan_id) is not None
    dropped(bench)
    send(bench, "b", day=9)
    rig.ingest(bench)
    assert finished(rig.edges(bench, ARCHIVE), plan_id) is None
    told = [(row.sequence, row.kind) for row in whole_history(history_of(rig.edges(bench, ARCHIVE)))]
    assert told == [(4, "ingest"), (3, "first"), (2, "backfill")], "no head has a number of the table that was dropped"


def test_what_a_dropped_table_had_read_is_lost_also_where_the_next_begins_while_a_backfill_is_planned() -> None:
    """Before each of its looks in turn an ingest makes the first head, whose row is written later, and goes on."""
    for looks in count():
        bench = Bench(FakeLog("waves", 1))
        send(bench, "a", day=5)
        rig.ingest(bench)
        rig.ingest(bench)
        dropped(bench)
        send(bench, "b", day=9)
        bench.log.retain_from(Partition(0), Offset(1))
        asked = Steps(partial(backfill, bench, ARCHIVE, days(5, 6)))
        if not all(asked.advance() for _ in range(looks)):
            break
        rig.ingest(bench)
        asked.finish()
        if isinstance(asked.error, Transient):
            assert "plan again" in str(asked.error)
            asked = Steps(partial(backfill, bench, ARCHIVE, days(5, 6)))
            asked.finish()
        assert isinstance(asked.error, DataLost)
        assert "partition 0 [0, 1) of waves are gone" in str(asked.error)
    assert looks > 20


def test_a_table_that_is_registered_again_believes_its_own_rows_and_none_of_the_one_that_was_there_meanwhile() -> None:
    """Its rewind takes the number and the generation of that one's first head."""
    bench = Bench(FakeLog("waves", 1))
    tables = bench.tables
    send(bench, "a", day=5)
    rig.ingest(bench)
    rig.ingest(bench)
    mine = tables.snapshots[-1].plan_id
    was = {name: getattr(tables, name) for name in ("uuid", "snapshots", "rows", "replaced", "expired")}
    dropped(bench)
    send(bench, "b", day=9)
    rig.ingest(bench)
    rig.ingest(bench)
    others = tables.snapshots[-1].plan_id
    for name, value in was.items():
        setattr(tables, name, value)
    with pytest.raises(Refused, match="--to head"):
        rig.ingest(bench)
    rewound(bench, "head")
    bench.log.retain_from(Partition(0), Offset(2))
    send(bench, "c", day=20)
    assert backfill(bench, ARCHIVE, days(20, 21)).published == 1
    with pytest.raises(DataLost, match=r"partition 0 \[1, 2\) of waves are gone"):
        backfill(bench, ARCHIVE, days(9, 10))
    tables.expired = len(tables.snapshots) - 1  # so that rows alone tell
    assert finished(rig.edges(bench, ARCHIVE), mine) is not None
    assert finished(rig.edges(bench, ARCHIVE), others) is None


def test_what_another_table_had_published_is_not_missing_in_a_head_that_is_made_anew() -> None:
    """And the head is newer than any that this one had: a table counts its own snapshots from 1."""
    bench = Bench(FakeLog("waves", 1))
    send(bench, "a", day=5)
    rig.ingest(bench)
    for _ in range(4):
        send(bench, "a", day=5)
        rig.ingest(bench)
    dropped(bench)
    rig.ingest(bench)
    last = bench.tables.snapshots[-1].version
    bench.tables.history = [row for row in bench.tables.history if row.table != ANOTHER]
    bench.tables.expire_head()
    assert rewound(bench, "rebuilt").missing == ()
    assert bench.tables.snapshots[-1].version > last
