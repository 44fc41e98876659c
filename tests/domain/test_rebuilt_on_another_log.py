"""A head that is rebuilt on a log that was put back from a backup: the history says in which leader epoch what lies in
front of it had been written, and the group in which it was read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.domain.test_brokers_put_back import P0, by_its_way_out, published, read_beyond_the_backup
from tests.domain.test_cut_log import ingest, produce, rewind
from tests.fakes.batch import Bench
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.rewind import Target
from wavestitch.contracts.quantities import Offset


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
