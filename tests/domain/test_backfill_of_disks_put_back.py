"""Backfills of a log whose brokers' disks were put back from a backup: what batches had noted of it says nothing of
what was written anew, as far as anything tells."""

from __future__ import annotations

import pytest

from tests.builders.ranges import span
from tests.domain import backfill_rig as rig
from tests.domain.backfill_rig import ARCHIVE, backfill, days, send
from tests.fakes.batch import Bench
from tests.fakes.fake_log import FakeLog
from wavestitch.contracts.errors import DataLost
from wavestitch.contracts.quantities import Offset, Partition

P0 = Partition(0)


def published(bench: Bench) -> set[str]:
    return set(rig.published(bench))


def test_what_batches_had_noted_behind_the_backup_is_not_believed_by_a_backfill() -> None:
    """Before anybody has rewound; and with what the ingest had read there nothing is lost."""
    bench = Bench(FakeLog("waves", 1))
    send(bench, "old0", day=5)
    rig.ingest(bench)
    bench.log.restart(P0)
    for n in range(1, 4):
        send(bench, f"old{n}", day=5)
    rig.ingest(bench)
    bench.log.put_back(P0, Offset(1), 0)
    for n in range(5):
        send(bench, f"new{n}", day=1)
    done = backfill(bench, ARCHIVE, days(1, 2))
    assert published(bench) == {*(f"old{n}" for n in range(4)), *(f"new{n}" for n in range(5))}
    assert done.lost == ()


@pytest.mark.parametrize("elected", [True, False])
@pytest.mark.parametrize(
    "more",
    [
        1,
        2,
        pytest.param(
            6,
            marks=pytest.mark.xfail(
                strict=True, reason="what a batch notes is held against leader epochs, and not against what lies there"
            ),
        ),
    ],
)
def test_what_a_backfill_had_noted_ahead_of_the_ingest_is_not_believed_where_the_log_ends_before_that(
    more: int, elected: bool
) -> None:
    """Up to 6, in epoch 0; put back to 2 it is written anew, in that epoch."""
    bench = Bench(FakeLog("waves", 1))
    for n in range(6):
        send(bench, f"old{n}", day=5)
    backfill(bench, ARCHIVE, days(5, 6))
    assert rig.positions(bench) == {0: 0}
    bench.log.put_back(P0, Offset(2), 0, elected=False)
    for n in range(more):
        send(bench, f"new{n}", day=1)
    if elected:
        bench.log.restart(P0)
    backfill(bench, ARCHIVE, days(1, 2))
    assert {f"new{n}" for n in range(more)} <= published(bench)


def test_nothing_is_believed_behind_the_place_from_which_a_position_is_on_another_log() -> None:
    """A backfill had read there in a later epoch than the position is of; behind the backup that comes again."""
    bench = Bench(FakeLog("waves", 1))
    for n in range(5):
        send(bench, f"old{n}", day=9)
    rig.ingest(bench)
    bench.log.restart(P0)
    for n in range(5, 10):
        send(bench, f"old{n}", day=5)
    backfill(bench, ARCHIVE, days(5, 6))
    bench.log.put_back(P0, Offset(3), 0)
    for n in range(3, 12):
        send(bench, f"new{n}", day=1)
    assert backfill(bench, ARCHIVE, days(1, 2)).lost == ()
    assert {f"new{n}" for n in range(3, 12)} <= published(bench)


@pytest.mark.parametrize("taken", [3, 5, 7])
def test_of_what_is_gone_nothing_is_believed_either_behind_the_place_from_which_a_position_is_on_another_log(
    taken: int,
) -> None:
    """Whatever leader epochs say, and as the next ingest says it: a backfill had read that in a later epoch than the
    position is of."""
    bench = Bench(FakeLog("waves", 1))
    for n in range(8):
        send(bench, f"old{n}", day=5)
    rig.ingest(bench)
    bench.log.restart(P0)
    backfill(bench, ARCHIVE, days(5, 6))
    bench.log.put_back(P0, Offset(2), 0)
    for n in range(2, 10):
        send(bench, f"new{n}", day=1)
    bench.log.retain_from(P0, Offset(taken))
    done = backfill(bench, ARCHIVE, days(1, 2))
    assert {f"new{n}" for n in range(taken, 10)} <= published(bench)
    assert done.lost == (span(0, 0, taken),)


def test_what_a_backfill_had_left_behind_the_backup_is_named_where_its_epoch_has_gone_on_since() -> None:
    """As far as an epoch tells it lies there yet: it goes on behind the place where that was."""
    bench = Bench(FakeLog("waves", 1))
    bench.log.restart(P0)
    for n in range(3):
        send(bench, f"old{n}", day=5)
    rig.ingest(bench)
    send(bench, "mine", day=1)
    send(bench, "old4", day=5)
    backfill(bench, ARCHIVE, days(5, 6))
    assert published(bench) == {"old0", "old1", "old2", "old4"}
    bench.log.put_back(P0, Offset(2), 1, elected=False)
    for n in range(2, 8):
        send(bench, f"new{n}", day=9)
    with pytest.raises(DataLost, match=r"nothing is left of this interval: partition 0 \[3, 5\) of waves are gone"):
        backfill(bench, ARCHIVE, days(1, 2))
