"""A backfill of a log that an election cut off, and that was written anew: what was read before says nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.domain.backfill_rig import (
    ARCHIVE,
    START_MS,
    backfill,
    days,
    edges,
    ingest,
    positions,
    published,
    read_by_backfills,
    send,
)
from tests.fakes.batch import Bench, Carrying, carry_through, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.kept_partition import Visibility
from tests.fakes.way_out import way_out
from wavestitch.batch.backfill import step_plan_backfill
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import BatchDone
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.contracts.errors import DataLost
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.quantities import Offset, Partition

NEW = [f"new{n}" for n in range(3)]


def cut_off(bench: Bench, at: int, *, day: int = 1) -> None:
    """And written anew, further on than it went."""
    bench.log.truncate(Partition(0), Offset(at))
    for n in range(3):
        send(bench, f"new{n}", day=day, chunks=2)


def read_by_a_backfill(bench: Bench, *, day: int = 5) -> None:
    """Six offsets of one day, beyond the positions."""
    for n in range(6):
        send(bench, f"old{n}", day=day)
    backfill(bench, ARCHIVE, days(5, 6))
    assert positions(bench) == {0: 0}


@pytest.mark.parametrize("at", [0, 1, 5])
def test_what_was_written_anew_where_a_backfill_had_read_is_looked_at(at: int) -> None:
    bench = Bench(FakeLog("waves", 1))
    read_by_a_backfill(bench)
    cut_off(bench, at)
    backfill(bench, ARCHIVE, days(1, 2))
    assert [w for w in published(bench) if w.startswith("new")] == NEW


def test_what_was_written_anew_where_an_ingest_had_read_is_looked_at_before_anybody_has_rewound() -> None:
    bench = Bench(FakeLog("waves", 1))
    for n in range(6):
        send(bench, f"old{n}", day=5)
        if n in (0, 5):
            ingest(bench)
    cut_off(bench, 1)
    done = backfill(bench, ARCHIVE, days(1, 2))
    assert [w for w in published(bench) if w.startswith("new")] == NEW
    assert done.lost == (), "what the ingest had read there is published"
    with pytest.raises(DataLost, match="written anew"):
        ingest(bench)
    found = plan_rewind(
        ARCHIVE, Target(offsets={Partition(0): Offset(1)}), log=bench.log, tables=bench.tables, who="ops", why="cut"
    )
    apply_rewind(ARCHIVE, found, accept_skip=False, log=bench.log, tables=bench.tables)
    ingest(bench)
    assert published(bench) == [*NEW, *(f"old{n}" for n in range(6))]


def test_a_leader_that_changed_and_lost_nothing_makes_nobody_read_again() -> None:
    bench = Bench(FakeLog("waves", 1))
    read_by_a_backfill(bench)
    for _ in range(3):
        cut_off(bench, bench.log.partitions[Partition(0)].end)
        before = len(read_by_backfills(bench))
        backfill(bench, ARCHIVE, days(1, 2))
        assert all(r.start >= 6 for r in read_by_backfills(bench)[before:])


def test_a_log_that_was_cut_off_again_and_again_is_read_from_the_deepest_cut_on() -> None:
    bench = Bench(FakeLog("waves", 1))
    read_by_a_backfill(bench)
    for at in (4, 2, 3):
        bench.log.truncate(Partition(0), Offset(at))
        for n in range(4):
            send(bench, f"at{at}-{n}", day=5)
        backfill(bench, ARCHIVE, days(5, 6))
    before = len(read_by_backfills(bench))
    bench.log.truncate(Partition(0), Offset(bench.log.partitions[Partition(0)].end))
    send(bench, "late", day=1)
    backfill(bench, ARCHIVE, days(1, 2))
    assert read_by_backfills(bench)[before:] == [span(0, 7, 8)], "of each epoch what is left was read"
    there = {r.key.decode() for r in bench.log.committed() if r.key is not None}
    assert there <= set(published(bench))


def test_what_only_a_backfill_had_read_and_was_cut_off_is_named_as_lost() -> None:
    """It had left it, as it was of another interval: nobody holds it."""
    bench = Bench(FakeLog("waves", 1))
    read_by_a_backfill(bench, day=1)
    cut_off(bench, 1, day=5)
    done = backfill(bench, ARCHIVE, days(1, 2))
    assert done.lost == (span(0, 1, 6),)
    assert published(bench) == ["old0"]
    cut_off(bench, 0, day=5)
    with pytest.raises(DataLost, match=r"partition 0 \[0, 7\) of waves are gone"):
        backfill(bench, ARCHIVE, days(1, 2))


def test_what_was_cut_off_is_named_after_the_rewind_as_it_was_before() -> None:
    """The ingest's own way out puts the position below the cut, and opens a generation."""
    bench = Bench(FakeLog("waves", 1))
    for n in range(3):
        send(bench, f"read{n}", day=9)
    ingest(bench)
    for n in range(3):
        send(bench, f"mine{n}", day=1)
    backfill(bench, ARCHIVE, days(5, 6))
    bench.log.truncate(Partition(0), Offset(2))
    send(bench, "new0", day=9)
    with pytest.raises(DataLost) as refused:
        ingest(bench)
    way = way_out(str(refused.value))
    assert way is not None
    found = plan_rewind(ARCHIVE, way.target, log=bench.log, tables=bench.tables, who="ops", why="cut")
    apply_rewind(ARCHIVE, found, accept_skip=way.accepts, log=bench.log, tables=bench.tables)
    ingest(bench)
    with pytest.raises(DataLost, match=r"partition 0 \[3, 6\) of waves are gone"):
        backfill(bench, ARCHIVE, days(1, 2))


def test_what_an_ingest_had_read_there_in_another_epoch_is_not_told_as_held() -> None:
    bench = Bench(FakeLog("waves", 1))
    for n in range(6):
        send(bench, f"first{n}", day=1)
    ingest(bench)
    bench.log.truncate(Partition(0), Offset(1))
    for n in range(6):
        send(bench, f"second{n}", day=1)
    backfill(bench, ARCHIVE, days(5, 6))
    cut_off(bench, 1, day=5)
    assert backfill(bench, ARCHIVE, days(1, 2)).lost == (span(0, 1, 7),)


def test_where_retention_has_passed_the_cut_nothing_that_was_read_there_is_believed() -> None:
    bench = Bench(FakeLog("waves", 1))
    for n in range(6):
        send(bench, f"old{n}", day=1)
    ingest(bench)
    cut_off(bench, 1)
    bench.log.retain_from(Partition(0), Offset(3))
    done = backfill(bench, ARCHIVE, days(1, 2))
    assert done.lost == (span(0, 0, 3),)
    assert [w for w in published(bench) if w.startswith("new")] == NEW[1:]


@pytest.mark.parametrize("taken", [3, 5, 6, 7])
def test_the_more_retention_has_taken_of_what_a_backfill_had_read_ahead_of_the_ingest_the_more_is_named(
    taken: int,
) -> None:
    """Beyond the last offset that was read, too, where no leader says any more that it was cut off at 2."""
    bench = Bench(FakeLog("waves", 1))
    read_by_a_backfill(bench)
    bench.log.truncate(Partition(0), Offset(2))
    for n in range(7):
        send(bench, f"new{n}", day=1)
    bench.log.retain_from(Partition(0), Offset(taken))
    done = backfill(bench, ARCHIVE, days(1, 2))
    assert done.lost == (span(0, 0, taken),)
    assert [w for w in published(bench) if w.startswith("new")] == [f"new{n}" for n in range(taken - 2, 7)]


def test_a_row_of_an_earlier_version_is_believed_as_it_was_then() -> None:
    """It kept no epochs: what it says costs nobody reading, and beyond the positions is a limit."""
    bench = Bench(FakeLog("waves", 1))
    read_by_a_backfill(bench)
    bench.tables.history = [replace(row, epochs={}) for row in bench.tables.history]
    bench.log.truncate(Partition(0), Offset(6))
    send(bench, "late", day=1)
    before = len(read_by_backfills(bench))
    backfill(bench, ARCHIVE, days(1, 2))
    assert read_by_backfills(bench)[before:] == [span(0, 6, 7)]


def test_what_retention_took_and_was_noted_as_of_other_days_is_not_lost_where_the_log_was_cut_off_far_behind() -> None:
    """It cannot be read again: what is noted of it counts as far as leader epochs tell."""
    bench = Bench(FakeLog("waves", 1))
    for n in range(12):
        send(bench, f"old{n}", day=5 if n < 6 else 7)
    for day in (5, 7):
        backfill(bench, ARCHIVE, days(day, day + 1))
    bench.log.retain_from(Partition(0), Offset(6))
    bench.log.truncate(Partition(0), Offset(11))
    send(bench, "late", day=7)
    before = len(read_by_backfills(bench))
    assert backfill(bench, ARCHIVE, days(1, 2)).lost == ()
    assert read_by_backfills(bench)[before:] == [span(0, 6, 12)], "what is there is read again"


def test_what_the_first_of_two_cuts_took_is_named_whatever_the_second_one_says() -> None:
    """An ingest has read between the two, so that the later one lies below its position."""
    bench = Bench(FakeLog("waves", 1))
    for n in range(8):
        send(bench, f"old{n}", day=1)
    backfill(bench, ARCHIVE, days(5, 6))
    bench.log.truncate(Partition(0), Offset(2))
    for n in range(6):
        send(bench, f"between{n}", day=9)
        if n > 3:
            ingest(bench)
    bench.log.truncate(Partition(0), Offset(7))
    for n in range(2):
        send(bench, f"new{n}", day=9)
    assert backfill(bench, ARCHIVE, days(1, 2)).lost == (span(0, 2, 8),)


@pytest.mark.parametrize("noted", [True, False])
def test_a_backfill_and_named_offsets_read_on_where_the_log_was_cut_off_below_the_position(noted: bool) -> None:
    """They need no rewind, which would help them alone: where a slice of theirs begins, nobody stands."""
    bench = Bench(FakeLog("waves", 1))
    for n in range(4):
        send(bench, f"old{n}", day=5)
        if n in (0, 3):
            ingest(bench)
    cut_off(bench, 1)
    if not noted:  # as an earlier version wrote it
        bench.tables.history = [replace(row, epochs={}) for row in bench.tables.history]
    done = run_batch(bench, ARCHIVE, PlanRequest(PlanKind.MANUAL, ranges=(span(0, 4, 7),)), clock_ms=START_MS)
    assert isinstance(done, BatchDone)
    assert published(bench) == ["new2", "old0", "old1", "old2", "old3"]
    backfill(bench, ARCHIVE, days(1, 2))
    assert [w for w in published(bench) if w.startswith("new")] == NEW
    with pytest.raises(DataLost, match=r"rewind ecg --to 0:1 --apply"):
        ingest(bench)


@pytest.mark.parametrize("gone", [0, 5])
def test_what_was_written_anew_and_skipped_is_read_by_a_backfill_or_named(gone: int) -> None:
    """What batches had read there before was another log: it says nothing of what lies there now."""
    bench = Bench(FakeLog("waves", 1))
    for n in range(6):
        send(bench, f"old{n}", day=5)
    ingest(bench)
    bench.log.truncate(Partition(0), Offset(1))
    for n in range(8):
        send(bench, f"new{n}", day=1)
    bench.log.retain_from(Partition(0), Offset(gone))
    with pytest.raises(DataLost, match="written anew"):
        ingest(bench)
    to = Target(offsets={Partition(0): Offset(5)}) if gone else Target("latest")
    found = plan_rewind(ARCHIVE, to, log=bench.log, tables=bench.tables, who="ops", why="cut")
    apply_rewind(ARCHIVE, found, accept_skip=True, log=bench.log, tables=bench.tables)
    ingest(bench)
    done = backfill(bench, ARCHIVE, days(1, 2))
    assert done.lost == ((span(0, 0, 5),) if gone else ())
    assert [w for w in published(bench) if w.startswith("new")] == [f"new{n}" for n in range(4 if gone else 0, 8)]


def read_later_by_an_ingest_and_cut_off(bench: Bench) -> None:
    """In a later leader epoch than it was noted in, with every record; then the log is another one."""
    bench.log.partitions[Partition(0)].epoch += 1
    ingest(bench)
    bench.log.truncate(Partition(0), Offset(0))
    for n in range(6):
        send(bench, f"new{n}", day=9)
    earliest = Target("earliest")
    found = plan_rewind(ARCHIVE, earliest, log=bench.log, tables=bench.tables, who="ops", why="cut")
    apply_rewind(ARCHIVE, found, accept_skip=True, log=bench.log, tables=bench.tables)
    ingest(bench)


def test_what_the_backfill_that_noted_it_published_is_not_told_as_lost_though_it_was_cut_off() -> None:
    bench = Bench(FakeLog("waves", 1))
    for n in range(4):
        send(bench, f"old{n}", day=1)
    backfill(bench, ARCHIVE, days(1, 2))
    read_later_by_an_ingest_and_cut_off(bench)
    assert {f"old{n}" for n in range(4)} <= set(published(bench))
    assert backfill(bench, ARCHIVE, days(1, 2)).lost == ()


def test_of_a_backfill_that_published_a_part_the_rest_is_named_where_it_was_cut_off() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "old", day=1)
    send(bench, "half", day=1, chunks=2)
    bench.log.truncate(Partition(0), Offset(2))
    backfill(bench, ARCHIVE, days(1, 2))
    assert published(bench) == ["old"]
    cut_off(bench, 0, day=5)
    with pytest.raises(DataLost, match=r"partition 0 \[0, 2\) of waves are gone"):
        backfill(bench, ARCHIVE, days(1, 2))


def test_what_an_ingest_published_in_a_later_epoch_than_the_backfill_that_noted_it_is_not_told_as_lost() -> None:
    bench = Bench(FakeLog("waves", 1))
    for n in range(4):
        send(bench, f"old{n}", day=1)
    backfill(bench, ARCHIVE, days(5, 6))
    assert published(bench) == []
    read_later_by_an_ingest_and_cut_off(bench)
    assert {f"old{n}" for n in range(4)} <= set(published(bench))
    assert backfill(bench, ARCHIVE, days(1, 2)).lost == ()


def send_in_place(bench: Bench, day: int) -> list[str]:
    send(bench, "new", day=day)
    return ["new"]


def abort_in_place(bench: Bench, day: int) -> list[str]:
    send_chunk(bench.log, "aborted", 0, at_ms=START_MS, seen=Visibility.ABORTED)
    bench.log.mark(Partition(0), Visibility.ABORTED, START_MS)
    return []


@pytest.mark.parametrize("put_in_place", [send_in_place, abort_in_place])
def test_what_was_left_and_cut_off_is_named_where_a_batch_planned_before_reads_what_came_in_its_place(
    put_in_place: Callable[[Bench, int], list[str]],
) -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "first", day=9)
    ingest(bench)
    send(bench, "old", day=1, chunks=2)
    bench.log.truncate(Partition(0), Offset(2))  # one chunk of two is left
    asked = step_plan_backfill(edges(bench, ARCHIVE), days(5, 6))
    backfill(bench, ARCHIVE, days(1, 2))
    bench.log.truncate(Partition(0), Offset(1))
    there = put_in_place(bench, 5)
    for plan_id in asked.plans:
        carry_through(bench, bench.plans[plan_id], Carrying())
    assert published(bench) == ["first", *there]
    with pytest.raises(DataLost, match=r"partition 0 \[1, 2\) of waves are gone"):
        backfill(bench, ARCHIVE, days(1, 2))


def test_what_a_batch_planned_before_reads_and_leaves_of_a_later_epoch_is_read_again() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "first", day=9)
    ingest(bench)
    send(bench, "old", day=5, chunks=2)
    bench.log.truncate(Partition(0), Offset(2))
    asked = step_plan_backfill(edges(bench, ARCHIVE), days(5, 6))
    bench.log.truncate(Partition(0), Offset(1))
    send(bench, "new", day=1)
    for plan_id in asked.plans:
        carry_through(bench, bench.plans[plan_id], Carrying())
    assert published(bench) == ["first"]
    backfill(bench, ARCHIVE, days(1, 2))
    assert published(bench) == ["first", "new"]


@pytest.mark.parametrize("taken", [3, 5])
def test_what_was_left_and_cut_off_is_named_where_retention_has_passed_what_an_ingest_read_in_its_place(
    taken: int,
) -> None:
    bench = Bench(FakeLog("waves", 1))
    for n in range(3):
        send(bench, f"old{n}", day=1)
    backfill(bench, ARCHIVE, days(5, 6))
    cut_off(bench, 1, day=9)
    ingest(bench)
    bench.log.retain_from(Partition(0), Offset(taken))
    with pytest.raises(DataLost, match=r"partition 0 \[1, 3\) of waves are gone"):
        backfill(bench, ARCHIVE, days(1, 2))


@pytest.mark.parametrize("elections", [0, 1, 2])
def test_what_an_ingest_read_after_elections_that_lost_nothing_is_not_named(elections: int) -> None:
    bench = Bench(FakeLog("waves", 1))
    for n in range(3):
        send(bench, f"old{n}", day=1)
    backfill(bench, ARCHIVE, days(5, 6))
    bench.log.partitions[Partition(0)].epoch += elections
    ingest(bench)
    backfill(bench, ARCHIVE, days(5, 6))
    bench.log.partitions[Partition(0)].epoch += elections
    send(bench, "late", day=9)
    ingest(bench)
    bench.log.retain_from(Partition(0), Offset(4))
    assert backfill(bench, ARCHIVE, days(1, 2)).lost == ()
