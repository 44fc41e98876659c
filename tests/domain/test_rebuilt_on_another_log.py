"""A head that is rebuilt on a log that was put back from a backup: the history says in which leader epoch what lies in
front of it had been written, and the group in which it was read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.builders.records import cut, metadata
from tests.domain.test_brokers_put_back import P0, by_its_way_out, published, read_beyond_the_backup
from tests.domain.test_cut_log import CLOCK_MS, STREAM, ingest, produce, rewind
from tests.fakes.batch import Bench, run_batch
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.results import BatchDone
from wavestitch.batch.rewind import Target, plan_rewind
from wavestitch.contracts.quantities import Offset, Partition

P1 = Partition(1)
DAY_MS = 24 * 3600 * 1000


def read_in_a_later_epoch() -> Bench:
    """Three records of epoch 0, the last one read in epoch 1; then every head is expired."""
    bench = Bench(FakeLog())
    produce(bench, "ab")
    ingest(bench)
    produce(bench, "c")
    bench.log.restart(P0)
    ingest(bench)
    bench.tables.expire_head()
    return bench


def test_a_head_that_is_rebuilt_on_a_log_that_was_put_back_does_not_hide_it() -> None:
    """Where an older head is left that stood there: the group shows no other place."""
    bench = Bench(FakeLog())
    read_beyond_the_backup(bench)
    ingest(bench)
    head = bench.tables.head()
    assert head is not None
    bench.tables.expire_head()
    bench.tables.left = head
    bench.log.put_back(P0, Offset(2), 0)
    produce(bench, "vwxyz")
    rewind(bench, Target("rebuilt"))
    by_its_way_out(bench)
    assert published(bench) == set("abcdevwxyz")


@pytest.mark.parametrize("written", [True, False])
def test_a_head_that_is_rebuilt_knows_in_which_epoch_what_it_stands_behind_was_written(written: bool) -> None:
    """Read in a later epoch than that, which begins a second time where the log is cut off, after all heads are gone.
    A history of a version that did not keep it, and a group that shows that epoch: nobody can tell."""
    bench = read_in_a_later_epoch()
    if not written:
        bench.tables.history = [replace(row, written={}) for row in bench.tables.history]
    bench.log.put_back(P0, Offset(3), 0, elected=False)
    bench.log.truncate(P0, Offset(0))
    produce(bench, "vwxyz")
    rewind(bench, Target("rebuilt"))
    if written:
        by_its_way_out(bench)
    else:
        ingest(bench)
    assert published(bench) == set("abcvwxyz" if written else "abcyz")


def test_and_keeps_what_lies_in_front_of_it_by_that() -> None:
    """The log is in a later epoch by then, and whole; it is put back after that, and goes on in the earlier one."""
    bench = read_in_a_later_epoch()
    rewind(bench, Target("rebuilt"))
    bench.log.put_back(P0, Offset(2), 0, elected=False)
    produce(bench, "vwxyz")
    by_its_way_out(bench)
    assert published(bench) == set("abcvwxyz")


def test_and_takes_nothing_for_that_which_was_written_anew_in_an_earlier_epoch() -> None:
    """The brokers are put back, before it is rebuilt, into an epoch that was over when that was written; then they come
    to the one in which it was read."""
    bench = Bench(FakeLog())
    produce(bench, "ab")
    ingest(bench)
    for _ in range(2):
        bench.log.restart(P0)
    produce(bench, "c")
    ingest(bench)
    bench.tables.expire_head()
    bench.log.put_back(P0, Offset(2), 0)
    produce(bench, "vwxyz")
    bench.log.restart(P0)
    rewind(bench, Target("rebuilt"))
    by_its_way_out(bench)
    assert published(bench) == set("abcvwxyz")


@pytest.mark.parametrize("elected", [True, False])
def test_and_asks_by_the_groups_epoch_where_the_log_has_not_come_to_that(elected: bool) -> None:
    """The brokers are put back into the one in which that was written: it goes on, and says nothing."""
    bench = Bench(FakeLog())
    for _ in range(elected):
        bench.log.restart(P0)
    produce(bench, "a")
    ingest(bench)
    produce(bench, "bcd")
    bench.log.restart(P0)
    ingest(bench)
    bench.tables.expire_head()
    bench.log.put_back(P0, Offset(0), 0, elected=elected)
    produce(bench, "vwxyz")
    rewind(bench, Target("rebuilt"))
    by_its_way_out(bench)
    assert published(bench) == set("abcdvwxyz")


def nothing_is_read(bench: Bench) -> None:
    """An ingest of which nothing comes but what had waited too long."""
    assert isinstance(run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS + 400 * DAY_MS), BatchDone)


def another_partition_is_rewound(bench: Bench) -> None:
    rewind(bench, Target(offsets={P1: Offset(1)}))
    ingest(bench)


def another_partition_is_reset(bench: Bench) -> None:
    bench.log.reset_group(P1, Offset(1))
    ingest(bench)
    ingest(bench)  # the row of the head that took it over


@pytest.mark.parametrize("since", [nothing_is_read, another_partition_is_rewound, another_partition_is_reset])
def test_and_does_not_forget_it_where_nothing_has_moved_there_since(since: Callable[[Bench], None]) -> None:
    """The brokers are put back into the epoch in which the stream stood there last, and go on in it."""
    bench = Bench(FakeLog(partitions=2))
    produce(bench, "a")
    bench.log.append(P0, CLOCK_MS, *cut("half", [b"1111", b"2222"], meta=metadata(CLOCK_MS))[0])
    produce(bench, "c")
    produce(bench, "m", P1)
    ingest(bench)
    bench.log.restart(P0)
    produce(bench, "n", P1)
    ingest(bench)
    since(bench)
    bench.tables.expire_head()
    bench.log.put_back(P0, Offset(2), 1, elected=False)
    produce(bench, "vw")
    rewind(bench, Target("rebuilt"))
    by_its_way_out(bench)
    assert published(bench) == set("acmnvw")


@pytest.mark.parametrize("retained", [False, True])
def test_a_cut_behind_which_all_was_read_is_not_found_again_by_a_head_of_before_it(*, retained: bool) -> None:
    bench = Bench(FakeLog())
    produce(bench, "abc")
    ingest(bench)
    before = bench.tables.head()
    bench.log.truncate(P0, Offset(2))
    produce(bench, "v")
    by_its_way_out(bench)
    bench.tables.expire_head(left=before)
    if retained:
        bench.log.retain_from(P0, Offset(2))
    rewind(bench, Target("rebuilt"))
    assert isinstance(ingest(bench), NothingToDo)
    assert published(bench) == set("abcv")


def test_a_head_that_is_left_and_knows_no_batch_is_asked_less_than_the_history() -> None:
    """One of a version that kept none, where the stream still stands: its leader epoch is the one of reading."""
    bench = Bench(FakeLog())
    produce(bench, "abc")
    bench.log.restart(P0)
    ingest(bench)
    assert isinstance(ingest(bench), NothingToDo)
    head = bench.tables.head()
    assert head is not None
    old = replace(head, positions={p: at._replace(last_batch=None) for p, at in head.positions.items()})
    bench.tables.expire_head(left=old)
    bench.log.put_back(P0, Offset(2), 1, elected=False)
    produce(bench, "vw")
    rewind(bench, Target("rebuilt"))
    by_its_way_out(bench)
    assert published(bench) == set("abcvw")


@pytest.mark.parametrize(("retained", "stands"), [(6, 6), (None, 0)])
def test_a_head_that_is_left_leads_to_no_place_that_the_log_has_not(retained: int | None, stands: int) -> None:
    """Retention passed where the stream stands, or the log ends before that."""
    bench = Bench(FakeLog())
    produce(bench, "abcd")
    ingest(bench)
    assert isinstance(ingest(bench), NothingToDo)
    bench.tables.expire_head(left=bench.tables.head())
    if retained is not None:
        produce(bench, "efg")
        bench.log.retain_from(P0, Offset(retained))
    else:
        bench.log.truncate(P0, Offset(2))
    edges = {"log": bench.log, "tables": bench.tables}
    after = plan_rewind(STREAM, Target("rebuilt"), **edges, who="a test", why="to see").head  # type: ignore[arg-type]
    assert after.positions[P0].next_offset == stands


def skipped_over_a_cut() -> Bench:
    """The log is cut off and written anew; somebody goes back to there, and then gives all of it up by name."""
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    ingest(bench)
    bench.log.truncate(P0, Offset(1))
    produce(bench, "vwxy")
    rewind(bench, Target(offsets={P0: Offset(1)}))
    rewind(bench, Target("latest"))
    assert isinstance(ingest(bench), NothingToDo)
    return bench


@pytest.mark.parametrize("retained", [False, True])
def test_who_went_on_behind_a_cut_by_name_is_not_asked_again_where_that_head_is_left(*, retained: bool) -> None:
    """It knows the batch in front of it, which no ingest has read."""
    bench = skipped_over_a_cut()
    head = bench.tables.head()
    assert head is not None
    bench.tables.expire_head(left=head)
    if retained:
        bench.log.retain_from(P0, Offset(3))
    rewind(bench, Target("rebuilt"))
    assert isinstance(ingest(bench), NothingToDo)
    anew = bench.tables.head()
    assert anew is not None
    assert (anew.positions, anew.skipped) == (head.positions, head.skipped)


@pytest.mark.parametrize("left", [False, True])
def test_and_is_asked_again_where_it_is_not_or_another_record_lies_there(*, left: bool) -> None:
    """Of a rewind the history says no place: what was read in front of it before the cut is all that is known."""
    bench = skipped_over_a_cut()
    bench.tables.expire_head(left=bench.tables.head() if left else None)
    if left:
        bench.log.put_back(P0, Offset(4), 1, elected=False)
        produce(bench, "z")
    rewind(bench, Target("rebuilt"))
    by_its_way_out(bench)
    assert published(bench) >= set("abcdevwx")


def test_a_cut_whose_way_out_was_followed_is_told_once_more_where_a_head_of_before_it_is_left() -> None:
    """Nothing was written behind it: that the log is another one than it knew is all that it says."""
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    ingest(bench)
    before = bench.tables.head()
    bench.log.truncate(P0, Offset(3))
    by_its_way_out(bench)
    bench.tables.expire_head(left=before)
    rewind(bench, Target("rebuilt"))
    by_its_way_out(bench)
    assert published(bench) == set("abcde")
    assert isinstance(ingest(bench), NothingToDo)


def test_what_a_head_that_is_left_gave_up_and_was_read_since_is_not_given_up_again() -> None:
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    ingest(bench, PlanRequest(until={P0: Offset(1)}))
    rewind(bench, Target("latest"))
    before = bench.tables.head()
    rewind(bench, Target(offsets={P0: Offset(1)}))
    ingest(bench)
    bench.tables.expire_head(left=before)
    rewind(bench, Target("rebuilt"))
    head = bench.tables.head()
    assert head is not None
    assert head.skipped == ()
    assert published(bench) == set("abcde")


def test_the_tag_of_a_head_that_follows_one_which_was_rebuilt_is_believed() -> None:
    """The snapshot of whoever expired it has a number, which is of no decision."""
    bench = Bench(FakeLog())
    for n, letter in enumerate("abc"):
        produce(bench, letter)
        ingest(bench)
        assert isinstance(ingest(bench), NothingToDo)
        bench.tables.expire_head()
        bench.log.retain_from(P0, Offset(n))
        rewind(bench, Target("rebuilt"))
        assert isinstance(ingest(bench), NothingToDo)


@pytest.mark.parametrize(
    ("accident", "said"),
    [
        (lambda log: log.truncate(P0, Offset(2)), "the group's tag shows 3, beyond the log's end 2"),
        (lambda log: log.retain_from(P0, Offset(4)), "the group's tag shows 3, where retention has been since"),
    ],
)
def test_who_begins_at_the_logs_start_is_told_so(accident: Callable[[FakeLog], None], said: str) -> None:
    bench = Bench(FakeLog())
    produce(bench, "abc")
    ingest(bench)
    assert isinstance(ingest(bench), NothingToDo)
    produce(bench, "de")
    bench.tables.expire_head()
    accident(bench.log)
    found = plan_rewind(STREAM, Target("rebuilt"), log=bench.log, tables=bench.tables, who="x", why="y")
    assert f"partition 0: the log's start; {said}" in found.remarks[1]
