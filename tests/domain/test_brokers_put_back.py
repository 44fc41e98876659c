"""Brokers whose disks are put back from a backup use leader epochs and offsets again: the log itself finds that out.

Of each position the head keeps the record batch in front of it; what is written behind the backup is read, or named.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.domain.test_cut_log import CLOCK_MS, STREAM, forget_batches, go_by, ingest, produce, rewind, undo
from tests.fakes.batch import Bench, run_batch
from tests.fakes.fake_log import FakeLog
from wavestitch.batch.cut_log import earlier_positions, find_cuts
from wavestitch.batch.headroom import measure_room
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.rewind import Target, plan_rewind
from wavestitch.contracts.errors import DataLost, Refused
from wavestitch.contracts.headroom import Thresholds
from wavestitch.contracts.position import GroupOffset, Position
from wavestitch.contracts.quantities import EpochMs, LeaderEpoch, Offset, Partition

P0 = Partition(0)


def published(bench: Bench) -> set[str]:
    return {row.waveform_id for _, row in bench.tables.rows}


def read_beyond_the_backup(bench: Bench) -> None:
    """A backup at 2 in epoch 0; the broker is restarted, and more is written and read, up to 5 in epoch 1."""
    produce(bench, "ab")
    ingest(bench)
    bench.log.restart(P0)
    produce(bench, "cde")
    ingest(bench)


def put_back(bench: Bench) -> None:
    """With the group's offsets, which lie on the same disks."""
    bench.log.put_back(P0, Offset(2), 0)
    bench.log.group[P0] = GroupOffset(Offset(2), bench.tables.snapshots[1].tag(bench.tables.uuid).encode())


def remarks(bench: Bench) -> list[str]:
    """Of the last plan, about what nothing proves."""
    return [said for said in list(bench.plans.values())[-1].remarks if "by leader epochs alone" in said]


def by_its_way_out(bench: Bench) -> DataLost:
    with pytest.raises(DataLost, match="was cut off before") as lost:
        ingest(bench)
    go_by(bench, lost.value)
    ingest(bench)
    return lost.value


LATER = {
    "and grows past the position": "vwxyz",
    "and grows to the very position": "vwx",
    "and does not grow that far": "v",
    "and is restarted again": "vw|xyz",
    "and is restarted more often than it was": "|vw|xyz",
}


@pytest.mark.parametrize("later", LATER)
def test_a_log_that_is_put_back_and_uses_an_epoch_again_is_found_out(later: str) -> None:
    bench = Bench(FakeLog())
    read_beyond_the_backup(bench)
    put_back(bench)
    for one in LATER[later]:
        if one == "|":
            bench.log.restart(P0)
        else:
            produce(bench, one)
    lost = by_its_way_out(bench)
    assert lost.facts["cut"] == 2, "the last place where the stream stood and that is there still"
    assert published(bench) == {*"abcde", *LATER[later]} - {"|"}


@pytest.mark.parametrize("restarts", [0, 3])
def test_brokers_that_go_on_in_the_very_epoch_that_they_had_hide_nothing(restarts: int) -> None:
    """No election as they start: the disks of controllers and brokers are of two times, or it is a broker of before
    KRaft. So that epoch ends behind the backup today; what was written up to there was read by nobody."""
    bench = Bench(FakeLog())
    for _ in range(restarts):
        bench.log.restart(P0)
    for names in ("abc", "defg"):
        produce(bench, names)
        ingest(bench)
    bench.log.put_back(P0, Offset(4), restarts, elected=False)
    produce(bench, "vw")
    bench.log.restart(P0)
    produce(bench, "xyz")
    assert by_its_way_out(bench).facts["cut"] == 3, "the last place where the stream stood and that is there still"
    assert published(bench) == set("abcdefgvwxyz")


def test_where_nothing_is_proven_any_more_the_way_out_is_the_logs_beginning() -> None:
    bench = Bench(FakeLog())
    produce(bench, "ab")
    bench.log.restart(P0)
    produce(bench, "cde")
    ingest(bench)
    bench.log.put_back(P0, Offset(2), 0)
    produce(bench, "vwxyz")
    assert by_its_way_out(bench).facts["cut"] == 0
    assert published(bench) == set("abcdevwxyz")


def test_what_retention_took_of_it_meanwhile_is_named() -> None:
    bench = Bench(FakeLog())
    read_beyond_the_backup(bench)
    put_back(bench)
    produce(bench, "vwxyz")
    bench.log.retain_from(P0, Offset(3))
    with pytest.raises(DataLost, match=re.escape("perhaps never read, are partition 0 [0, 3)")):
        ingest(bench)


def test_whoever_goes_back_to_a_place_behind_it_does_not_hide_it() -> None:
    for back in (
        lambda bench: rewind(bench, Target(offsets={P0: Offset(4)})),
        lambda bench: bench.log.reset_group(P0, Offset(4)),
        lambda bench: bench.log.reset_group(P0, Offset(5)),
    ):
        bench = Bench(FakeLog())
        read_beyond_the_backup(bench)
        bench.log.put_back(P0, Offset(2), 0)
        produce(bench, "vwxyz")
        back(bench)
        with pytest.raises(DataLost):
            ingest(bench)
        by_its_way_out(bench)
        assert published(bench) == set("abcdevwxyz")


@pytest.mark.parametrize("restarts", range(4))
def test_nor_does_who_goes_back_while_the_log_ends_before_that_place(restarts: int) -> None:
    """What is written behind the backup later may be of the very epoch that is known of the place."""
    bench = Bench(FakeLog())
    read_beyond_the_backup(bench)
    bench.log.put_back(P0, Offset(2), 0)
    bench.log.reset_group(P0, Offset(4))
    with pytest.raises((DataLost, Refused)):
        ingest(bench)
    for one in range(restarts):
        if one:
            bench.log.restart(P0)
        produce(bench, "vwxyz"[one])
    produce(bench, "vwxyz"[restarts:])
    by_its_way_out(bench)
    assert published(bench) == set("abcdevwxyz")


def test_an_undo_goes_back_to_before_it_and_reads_all() -> None:
    bench = Bench(FakeLog())
    read_beyond_the_backup(bench)
    bench.log.put_back(P0, Offset(2), 0)
    produce(bench, "vwxyz")
    undo(bench)
    ingest(bench)
    assert published(bench) == set("abcdevwxyz")


def test_a_rewind_forward_names_what_was_written_anew_among_what_it_skips() -> None:
    bench = Bench(FakeLog())
    read_beyond_the_backup(bench)
    put_back(bench)
    produce(bench, "vwxyz")
    edges: dict[str, Any] = {"log": bench.log, "tables": bench.tables}
    found = plan_rewind(STREAM, Target("latest"), **edges, who="a test", why="to see")
    assert [(r.start, r.end) for r in found.skipped] == [(2, 7)]
    rewind(bench, Target("latest"))
    produce(bench, "!")
    ingest(bench)
    assert published(bench) == set("abcde!")


def test_what_an_earlier_version_did_not_keep_is_said_and_taken_up_by_the_next_head() -> None:
    bench = Bench(FakeLog())
    read_beyond_the_backup(bench)
    forget_batches(bench)
    produce(bench, "f")
    ingest(bench)
    assert [said for said in remarks(bench) if "in front of partitions 0 (before 5)" in said]
    assert bench.tables.snapshots[-1].positions[P0].last_batch == bench.log.partitions[P0].batch_at(Offset(5))
    put_back(bench)
    produce(bench, "stuvwxyz")
    by_its_way_out(bench)
    assert set("stuvwxyz") <= published(bench)


def test_a_log_that_is_the_same_is_not_refused_whatever_its_epochs_are() -> None:
    """A disk may be put back before anything came behind it, or brokers lose count."""
    for epoch in (0, 1, 7):
        bench = Bench(FakeLog())
        read_beyond_the_backup(bench)
        bench.log.partitions[P0].epoch = epoch
        produce(bench, "fgh")
        ingest(bench)
        assert published(bench) == set("abcdefgh")


def look(bench: Bench) -> Any:
    return measure_room(
        STREAM, log=bench.log, tables=bench.tables, past=[], now=EpochMs(CLOCK_MS), thresholds=Thresholds()
    )


def test_the_look_at_the_headroom_calls_no_log_another_one_that_a_plan_goes_on_with() -> None:
    """Brokers restarted twice, and put back from before that, with all that was read."""
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    bench.log.restart(P0)
    bench.log.restart(P0)
    ingest(bench)
    bench.log.put_back(P0, Offset(5), 0)
    produce(bench, "f")
    assert look(bench).backlog == 1
    ingest(bench)
    assert published(bench) == set("abcdef")


@pytest.mark.parametrize("may_read", [True, False])
def test_the_look_at_the_headroom_says_where_leader_epochs_show_that_it_is_another_one(may_read: bool) -> None:
    """Who may not read the topic goes by those alone."""
    bench = Bench(FakeLog())
    for names in ("ab", "cde"):
        produce(bench, names)
        ingest(bench)
    if not may_read:
        bench.log.batches_at = lambda topic, offsets: dict.fromkeys(offsets)  # type: ignore[method-assign]
    bench.log.truncate(P0, Offset(3))
    produce(bench, "vwxyz")
    with pytest.raises(DataLost, match=f"written anew from {2 if may_read else 3} on"):
        look(bench)


def test_who_may_not_read_the_topic_is_told_that_nothing_is_proven() -> None:
    bench = Bench(FakeLog())
    read_beyond_the_backup(bench)
    bench.log.batches_at = lambda topic, offsets: dict.fromkeys(offsets)  # type: ignore[method-assign]
    produce(bench, "fgh")
    ingest(bench)
    (said,) = remarks(bench)
    assert "in front of partitions 0 (before 8) of waves could not be read" in said
    assert bench.tables.snapshots[-1].positions[P0].last_batch is None


def test_where_the_batch_itself_is_gone_nothing_is_proven_and_nothing_refused() -> None:
    """A cleaner, or a broken broker; the epoch is asked as it was before."""
    bench = Bench(FakeLog())
    read_beyond_the_backup(bench)
    bench.log.lose(P0, Offset(4))
    produce(bench, "fgh")
    ingest(bench)
    assert published(bench) == set("abcdefgh")


def test_of_one_batch_a_partition_the_log_is_asked_once_and_again_where_it_goes_on() -> None:
    bench = Bench(FakeLog(partitions=3))
    asked: list[dict[Partition, Offset]] = []
    real = bench.log.batches_at
    bench.log.batches_at = lambda topic, offsets: asked.append(dict(offsets)) or real(topic, offsets)  # type: ignore[method-assign,func-returns-value]
    for p, names in enumerate(("ab", "c", "")):
        produce(bench, names, p)
    ingest(bench)
    assert asked == [{0: 1, 1: 0}]
    produce(bench, "d")
    ingest(bench)
    assert asked[1:] == [{0: 1, 1: 0}, {0: 2}]
    assert isinstance(ingest(bench), NothingToDo)
    assert asked[3:] == [{0: 2, 1: 0}]


def test_earlier_heads_are_looked_through_only_where_the_log_is_another_one() -> None:
    bench = Bench(FakeLog())
    read_beyond_the_backup(bench)
    looked: list[str] = []
    real = bench.tables.heads
    bench.tables.heads = lambda: looked.append("heads") or real()  # type: ignore[method-assign,func-returns-value]
    topic, head = bench.log.topic("waves"), bench.tables.head()
    assert head is not None
    asked = topic.name, head.positions, bench.log.ends("waves", topic.partitions), bench.log
    assert find_cuts(*asked, earlier_positions(bench.tables, topic.topic_id)) == {}
    assert not looked
    put_back(bench)
    asked = topic.name, head.positions, bench.log.ends("waves", topic.partitions), bench.log
    assert find_cuts(*asked, earlier_positions(bench.tables, topic.topic_id)) == {P0: 2}
    assert looked


def test_a_stream_that_begins_where_a_group_stood_knows_what_lies_before_it() -> None:
    bench = Bench(FakeLog())
    produce(bench, "ab")
    bench.log.restart(P0)
    produce(bench, "cde")
    bench.log.commit_group("waves-batches", "waves", {P0: Position(Offset(5), leader_epoch=LeaderEpoch(1))}, "theirs")
    run_batch(bench, STREAM, PlanRequest(), clock_ms=CLOCK_MS)
    bench.log.put_back(P0, Offset(2), 0)
    produce(bench, "vwxyz")
    with pytest.raises(DataLost):
        ingest(bench)


def test_who_went_to_the_very_end_of_a_log_that_was_put_back_is_told_of_it_once() -> None:
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    ingest(bench, PlanRequest(until={P0: Offset(3)}))
    ingest(bench)
    bench.log.put_back(P0, Offset(3), 0, elected=False)
    by_its_way_out(bench)
    assert bench.tables.snapshots[-1].positions[P0].next_offset == 3
    assert isinstance(ingest(bench), NothingToDo)


def test_of_a_cut_that_epochs_alone_tell_all_that_is_gone_is_named() -> None:
    """Nobody can say any more that it was read: it was put back from before the epoch, and retention went on."""
    bench = Bench(FakeLog())
    produce(bench, "abc")
    ingest(bench)
    forget_batches(bench)
    bench.log.put_back(P0, Offset(0), -2)
    produce(bench, "vwxyz")
    bench.log.retain_from(P0, Offset(2))
    bench.log.partitions[P0].epoch = -1
    with pytest.raises(DataLost, match=r"perhaps never read, are partition 0 \[0, 2\)"):
        ingest(bench)
