"""A backfill keeps its word: each waveform of its interval, once, wherever it lies; and what is lost by name."""

from __future__ import annotations

import pytest

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.domain.backfill_rig import (
    ARCHIVE,
    DAY,
    LIMITED,
    SKEW,
    START_MS,
    backfill,
    days,
    edges,
    ingest,
    positions,
    published,
    read_by_backfills,
    run_plan,
    send,
)
from tests.fakes.batch import Bench
from tests.fakes.fake_log import FakeLog
from wavestitch.batch import links
from wavestitch.batch.backfill import BackfillPlanned, step_plan_backfill, step_plan_seams
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.contracts.errors import DataLost, Refused, Transient
from wavestitch.contracts.quantities import Offset, Partition


def test_an_archive_is_found_by_the_start_of_its_waveforms_however_old_they_are() -> None:
    bench = Bench(FakeLog("waves", 2))
    for day in range(3):
        send(bench, f"w{day}", day=day, chunks=2, partition=day % 2)
    done = backfill(bench, ARCHIVE, days(1, 2))
    assert published(bench) == ["w1"]
    assert (done.published, done.lost, done.incomplete) == (1, (), ())
    assert positions(bench) == {0: 0, 1: 0}


def test_an_interval_above_the_limits_is_a_chain_and_a_waveform_across_its_cuts_is_published() -> None:
    bench = Bench(FakeLog("waves", 2))
    for n in range(4):
        send(bench, f"w{n}", day=1, chunks=4, partition=n % 2)
    done = backfill(bench, LIMITED, days(1, 2))
    assert published(bench) == ["w0", "w1", "w2", "w3"]
    assert done.batches > 4
    assert done.published == 4
    assert done.incomplete == ()
    assert all(plan.records <= 5 for plan in bench.plans.values())
    assert positions(bench) == {0: 0, 1: 0}


def carried_up_to_its_seams() -> tuple[Bench, BackfillPlanned]:
    """A backfill of two partitions, of which all batches are done but those across its cuts."""
    bench = Bench(FakeLog("waves", 2))
    for n in range(4):
        send(bench, f"w{n}", day=1, chunks=4, partition=n % 2)
    planned = step_plan_backfill(edges(bench, LIMITED), days(1, 2))
    for plan_id in planned.plans:
        run_plan(bench, plan_id)
    return bench, planned


@pytest.mark.parametrize("partitions", [1, 2])
def test_what_lies_across_the_cuts_is_not_read_on_another_topic_in_its_place(partitions: int) -> None:
    """At these offsets it has other records, or none, or not even the partition; what a broker does not show yet is
    waited for."""
    bench, planned = carried_up_to_its_seams()
    before = published(bench)
    bench.log.lag(1, shows=1)
    with pytest.raises(Transient, match="shows no partition 1 of topic waves"):
        step_plan_seams(edges(bench, LIMITED), planned)
    bench.log.recreate(partitions)
    rewind = plan_rewind(LIMITED, Target("new-topic"), log=bench.log, tables=bench.tables, who="ops", why="so it is")
    apply_rewind(LIMITED, rewind, accept_skip=True, log=bench.log, tables=bench.tables)
    for n in range(4, 8):
        send(bench, f"w{n}", day=1, chunks=4)
    with pytest.raises(Refused, match=r"this backfill has read id topic-1, now it is topic-2.*backfill .* again"):
        step_plan_seams(edges(bench, LIMITED), planned)
    assert len(bench.plans) == len(planned.plans)
    assert published(bench) == before


def test_what_lies_across_the_cuts_is_waited_for_also_where_the_head_knows_no_such_partition_any_more() -> None:
    """Somebody began anew by the broker that had not heard of it."""
    bench, planned = carried_up_to_its_seams()
    bench.log.lag(99, shows=1)
    rewind = plan_rewind(LIMITED, Target("start-over"), log=bench.log, tables=bench.tables, who="ops", why="so it is")
    apply_rewind(LIMITED, rewind, accept_skip=True, log=bench.log, tables=bench.tables)
    with pytest.raises(Transient, match="shows no partition 1 of topic waves, which this backfill has"):
        step_plan_seams(edges(bench, LIMITED), planned)
    bench.log.lag(0, shows=0)
    for plan_id in step_plan_seams(edges(bench, LIMITED), planned).plans:
        run_plan(bench, plan_id)
    assert published(bench) == ["w0", "w1", "w2", "w3"]


def test_pieces_that_lie_far_apart_are_read_together_and_nothing_between_them() -> None:
    bench = Bench(FakeLog("waves", 1))
    send_chunk(bench.log, "long", 0, at_ms=START_MS, start_ms=START_MS - 999 * DAY, count=2)
    for n in range(8):
        send(bench, f"other{n}", day=5)
    send_chunk(bench.log, "long", 1, at_ms=START_MS, start_ms=START_MS - 999 * DAY, count=2)
    done = backfill(bench, LIMITED, days(1, 2))
    assert published(bench) == ["long"]
    assert done.published == 1
    last = list(bench.plans.values())[-1]
    assert last.ranges == (span(0, 0, 1), span(0, 9, 10))


def test_what_is_held_and_what_several_batches_have_is_published_together() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "w", day=1, chunks=3)
    one = make_stream(limits={**SKEW, "max_batch_records": 1}, reading={"min_slice": 1})
    ingest(bench, one)
    done = backfill(bench, one, days(1, 2))
    assert published(bench) == ["w"]
    assert (done.published, done.incomplete) == (1, ())


def test_a_batch_is_not_published_before_those_before_it_are_finished() -> None:
    bench = Bench(FakeLog("waves", 1))
    for n in range(8):
        send(bench, f"w{n}", day=1)
    planned = step_plan_backfill(edges(bench, LIMITED), days(1, 2))
    first, second = planned.plans
    with pytest.raises(Transient, match=f"comes after batch {first[:16]} of the same backfill, which is not finished"):
        run_plan(bench, second)
    run_plan(bench, first)
    run_plan(bench, second)
    assert len(published(bench)) == 8


def test_what_batches_have_read_and_found_elsewhere_is_not_read_again() -> None:
    bench = Bench(FakeLog("waves", 1))
    for day in range(6):
        send(bench, f"w{day}", day=day)
    for _ in range(2):
        ingest(bench, make_stream(limits={**SKEW, "max_batch_records": 3}))
    send(bench, "late", day=1)
    done = backfill(bench, ARCHIVE, days(1, 2))
    # The first batch has such a waveform among its own, the second has none, and the last record nobody has read.
    assert read_by_backfills(bench) == [span(0, 0, 3), span(0, 6, 7)]
    assert (done.published, done.replays) == (1, 1)
    assert "late" in published(bench)
    assert positions(bench) == {0: 6}


def test_backfills_of_an_archive_that_nobody_ingests_read_it_once_to_know_it() -> None:
    bench = Bench(FakeLog("waves", 1))
    for day in range(6):
        send(bench, f"w{day}", day=day)
    backfill(bench, make_stream(limits={**SKEW, "max_batch_records": 2}, reading={"min_slice": 1}), days(0, 1))
    before = len(bench.plans)
    backfill(bench, ARCHIVE, days(5, 6))
    assert [list(plan.ranges) for plan in list(bench.plans.values())[before:]] == [[span(0, 4, 6)]]
    assert published(bench) == ["w0", "w5"]


def test_after_a_rewind_only_what_lies_before_the_positions_counts_as_known() -> None:
    """A log that was cut off is rewound, and may have other records where the old ones were read."""
    bench = Bench(FakeLog("waves", 1))
    for day in range(4):
        send(bench, f"w{day}", day=day)
    ingest(bench)
    rewound = plan_rewind(
        ARCHIVE,
        Target(offsets={Partition(0): Offset(2)}),
        log=bench.log,
        tables=bench.tables,
        who="somebody",
        why="the log was cut",
    )
    apply_rewind(ARCHIVE, rewound, accept_skip=False, log=bench.log, tables=bench.tables)
    assert step_plan_backfill(edges(bench, ARCHIVE), days(9, 10), apply=False).offsets == 2


def test_offsets_that_retention_took_unread_are_named_in_the_result() -> None:
    bench = Bench(FakeLog("waves", 1))
    for n in range(4):
        send(bench, f"w{n}", day=1)
    bench.log.retain_from(Partition(0), Offset(2))
    done = backfill(bench, ARCHIVE, days(1, 2))
    assert published(bench) == ["w2", "w3"]
    assert done.lost == (span(0, 0, 2),)
    assert "partition 0 [0, 2) are gone from the log, and no ingest that the table knows of has" in done.said[0]


def test_an_interval_that_is_empty_because_of_retention_is_no_success() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "gone", day=1)
    send(bench, "other", day=9)
    bench.log.retain_from(Partition(0), Offset(1))
    with pytest.raises(DataLost, match=r"nothing is left of this interval: partition 0 \[0, 1\)"):
        backfill(bench, ARCHIVE, days(1, 2))
    assert published(bench) == []


def test_what_a_backfill_of_another_interval_has_read_and_retention_took_is_no_success() -> None:
    bench = Bench(FakeLog("waves", 1))
    stream = make_stream(limits=SKEW, reading={"min_slice": 1}, start="latest")
    for day in (1, 2, 2):
        send(bench, f"w{len(bench.log.partitions[Partition(0)].records)}", day=day)
    ingest(bench, stream)
    assert backfill(bench, stream, days(1, 2)).published == 1
    bench.log.retain_from(Partition(0), Offset(3))
    assert backfill(bench, stream, days(7, 9)).lost == ()
    with pytest.raises(DataLost, match=r"partition 0 \[0, 3\) of waves are gone from the log, no ingest that"):
        backfill(bench, stream, days(2, 3))
    send(bench, "again", day=2)
    done = backfill(bench, stream, days(2, 3))
    assert (done.published, done.lost, done.read_before) == (1, (span(0, 0, 3),), ())


def test_what_an_ingest_has_read_and_retention_took_is_published_or_held() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "w", day=2)
    ingest(bench)
    send(bench, "later", day=1)
    backfill(bench, ARCHIVE, days(1, 2))
    bench.log.retain_from(Partition(0), Offset(2))
    done = backfill(bench, ARCHIVE, days(2, 3))
    assert (done.lost, done.read_before) == ((), (span(0, 0, 1),))


def test_what_retention_took_behind_an_older_record_is_named_unless_the_broker_says_when() -> None:
    """An archive, or a station that was offline: one record that says an old time hides nothing that lay before it."""
    for append_time, lost in ((False, (span(0, 0, 2),)), (True, ())):
        bench = Bench(FakeLog("waves", 1))
        bench.log.append_time = append_time
        for name, day in (("mine1", 9), ("mine2", 9), ("kept", -3000), ("mine3", 9)):
            at_ms = START_MS - 1000 * DAY + day * DAY
            send_chunk(bench.log, name, at_ms=at_ms, start_ms=at_ms, count=1, partition=0)
        bench.log.retain_from(Partition(0), Offset(2))
        stream = make_stream(reading={"min_slice": 1}, start="latest")
        done = backfill(bench, stream, days(9, 10))
        assert (published(bench), done.lost) == (["mine3"], lost)


def test_an_interval_without_waveforms_says_so_and_succeeds() -> None:
    bench = Bench(FakeLog("waves", 1))
    done = backfill(bench, ARCHIVE, days(1, 2))
    assert "nothing that may start in the interval" in done.said[0]
    assert (done.published, done.lost) == (0, ())


def test_a_preview_keeps_no_plan() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "w", day=1)
    ingest(bench)
    before = dict(bench.plans)
    shown = step_plan_backfill(edges(bench, ARCHIVE), days(1, 2), apply=False)
    assert shown.offsets == 1
    assert bench.plans == before


def test_before_the_first_head_a_preview_names_what_retention_took() -> None:
    bench = Bench(FakeLog("waves", 1))
    for n in range(6):
        send(bench, f"w{n}", day=1)
    bench.log.retain_from(Partition(0), Offset(2))
    shown = step_plan_backfill(edges(bench, ARCHIVE), days(1, 2), apply=False)
    assert (shown.offsets, list(shown.lost)) == (4, [span(0, 0, 2)])
    assert bench.tables.head() is None
    assert step_plan_backfill(edges(bench, ARCHIVE), days(1, 2)).lost == shown.lost


def test_the_margin_of_a_search_by_record_time_is_said_where_it_is_smaller_than_the_allowed_skew() -> None:
    bench = Bench(FakeLog("waves", 1))
    by_time = make_stream(backfill_by="record_time", search_margin=60)
    shown = step_plan_backfill(edges(bench, by_time), days(1, 2), apply=False)
    assert "those farther away are not found" in shown.remarks[0]
    enough = make_stream(backfill_by="record_time", search_margin="7 d")
    assert step_plan_backfill(edges(bench, enough), days(1, 2), apply=False).remarks == ()


def test_of_three_intervals_one_above_the_limits_and_one_half_deleted_each_waveform_is_there_once() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "half", day=0, chunks=2)
    bench.log.retain_from(Partition(0), Offset(1))
    for n in range(2):
        send(bench, f"w1-{n}", day=1, chunks=4)
    send(bench, "w2", day=2, chunks=2)
    send(bench, "w0", day=0, chunks=2)
    stream = make_stream(limits={**SKEW, "max_batch_records": 8}, reading={"min_slice": 1})
    done = [backfill(bench, stream, days(n, n + 1)) for n in range(3)]
    assert published(bench) == ["w0", "w1-0", "w1-1", "w2"]
    assert [found.published for found in done] == [1, 2, 1]
    assert [found.lost for found in done] == [(span(0, 0, 1),)] * 3
    assert [found.incomplete for found in done] == [("half",), (), ()]
    assert done[1].batches > 1
    assert positions(bench) == {0: 1}


def test_so_many_batches_one_backfill_may_have_and_what_is_more_is_refused_with_how_much_that_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(links, "MOST_LINKS", 2)
    bench = Bench(FakeLog("waves", 1))
    for n in range(10):
        send(bench, f"w{n}", day=1)
    assert len(step_plan_backfill(edges(bench, LIMITED), days(1, 2)).plans) == 2
    send(bench, "w10", day=1)
    with pytest.raises(Refused, match=r"covers 11 offsets of about \d+ bytes; a batch may have 10 ") as refused:
        step_plan_backfill(edges(bench, LIMITED), days(1, 2))
    assert (refused.value.facts["offsets"], refused.value.facts["allowed"]) == (11, 10)


def test_what_lies_between_two_near_places_is_read_with_them_since_another_slice_costs_more() -> None:
    bench = Bench(FakeLog("waves", 1))
    for day in range(6):
        send(bench, f"w{day}", day=day)
    for _ in range(2):
        ingest(bench, make_stream(limits={**SKEW, "max_batch_records": 3}))
    send(bench, "late", day=1)
    step_plan_backfill(edges(bench, make_stream(limits=SKEW, reading={"min_slice": 4})), days(1, 2))
    assert read_by_backfills(bench) == [span(0, 0, 7)]
