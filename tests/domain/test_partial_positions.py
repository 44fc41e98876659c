"""Rewinds and ingests of some partitions: what is not named stays where it is, in the head and in the group."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.kept_partition import Visibility
from tests.fakes.way_out import GoTo, way_out, ways_out
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.request import rewind_target
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.contracts.accepted_skip import AcceptedSkip
from wavestitch.contracts.errors import BadInput, DataLost, Refused
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Stream

START_MS = 1_767_614_400_000
STREAM = make_stream()
RECORDS = 20


def make_bench(partitions: int = 3) -> Bench:
    """All partitions have so many records, and are read."""
    bench = Bench(FakeLog("waves", partitions))
    for p in range(partitions):
        send(bench, p, RECORDS)
    ingest(bench)
    return bench


def send(bench: Bench, partition: int, count: int) -> None:
    for _ in range(count):
        name = f"w{partition}-{bench.log.partitions[Partition(partition)].end}"
        send_chunk(bench.log, name, at_ms=START_MS, partition=partition)


def ingest(bench: Bench, request: PlanRequest | None = None, stream: Stream = STREAM) -> object:
    return run_batch(bench, stream, request or PlanRequest(), clock_ms=START_MS)


def rewind(bench: Bench, target: Target, *, accept_skip: AcceptedSkip = False, stream: Stream = STREAM) -> None:
    found = plan_rewind(stream, target, log=bench.log, tables=bench.tables, who="a test", why="to see")
    apply_rewind(stream, found, accept_skip=accept_skip, log=bench.log, tables=bench.tables)


def stands(bench: Bench) -> dict[int, int]:
    return {p: at.next_offset for p, at in bench.tables.snapshots[-1].positions.items()}


def shown(bench: Bench) -> dict[int, int]:
    return {p: at.offset for p, at in bench.log.group.items()}


def test_the_advice_about_retention_names_the_partition_and_moves_no_other_one() -> None:
    bench = make_bench()
    send(bench, 0, 10)
    bench.log.retain_from(Partition(0), Offset(25))
    with pytest.raises(
        DataLost, match=r"partition 0 of waves begins at 25.*--to 0:earliest --accept-skip 0:20-25 --apply"
    ) as lost:
        ingest(bench)
    way = way_out(lost.value.message)
    assert way is not None
    found = plan_rewind(STREAM, way.target, log=bench.log, tables=bench.tables, who="a test", why="to see")
    assert found.moves == {0: (20, 25)}
    assert found.skipped == (span(0, 20, 25),)
    rewind(bench, way.target, accept_skip=way.accepts)
    assert stands(bench) == {0: 25, 1: 20, 2: 20}
    ingest(bench)
    assert stands(bench) == {0: 30, 1: 20, 2: 20}


def test_several_partitions_that_retention_overtook_are_named_together() -> None:
    bench = make_bench()
    for p in (0, 2):
        send(bench, p, 10)
        bench.log.retain_from(Partition(p), Offset(25 + p))
    with pytest.raises(DataLost, match=r"--to 0:earliest,2:earliest --accept-skip 0:20-25,2:20-27 "):
        ingest(bench)


def test_an_ingest_of_other_partitions_goes_on_while_one_is_overtaken() -> None:
    bench = make_bench()
    for p in range(3):
        send(bench, p, 10)
    bench.log.retain_from(Partition(0), Offset(25))
    ingest(bench, PlanRequest(only=frozenset({Partition(1), Partition(2)})))
    assert stands(bench) == {0: 20, 1: 30, 2: 30}


def test_so_it_does_where_somebody_reset_the_group_of_one_of_them() -> None:
    bench = make_bench()
    for p in range(3):
        send(bench, p, 10)
    bench.log.retain_from(Partition(0), Offset(25))
    bench.log.reset_group(Partition(1), Offset(15))
    with pytest.raises(DataLost, match=r"partition 0 of waves begins at 25.*--partitions 1,2` reads them before that"):
        ingest(bench)
    ingest(bench, PlanRequest(only=frozenset({Partition(1), Partition(2)})))
    assert stands(bench) == {0: 20, 1: 30, 2: 30}


def test_a_group_set_to_where_the_log_has_nothing_names_no_way_around_it() -> None:
    bench = make_bench()
    for p in range(3):
        send(bench, p, 10)
    bench.log.retain_from(Partition(0), Offset(25))
    bench.log.reset_group(Partition(0), Offset(15))
    for only in (None, frozenset({Partition(1), Partition(2)})):
        with pytest.raises(DataLost, match=r"begins at 25, the position is 20; gone .*stay where they are$"):
            ingest(bench, PlanRequest(only=only))


def test_a_new_partition_that_retention_overtook_is_led_past_that_wherever_its_group_was_set() -> None:
    bench = make_bench(1)
    bench.log.add_partition()
    send(bench, 1, 4)
    bench.log.retain_from(Partition(1), Offset(2))
    bench.log.reset_group(Partition(1), Offset(9))
    with pytest.raises(DataLost, match=r"--to 1:earliest --accept-skip 1:0-2 --apply`"):
        ingest(bench)


def test_an_ingest_until_named_offsets_takes_in_what_is_good_before_a_bad_place() -> None:
    bench = make_bench(2)
    for p in range(2):
        send(bench, p, 10)
    ingest(bench, PlanRequest(until={Partition(0): Offset(24)}))
    assert stands(bench) == {0: 24, 1: 30}
    assert shown(bench) == stands(bench)
    ingest(bench)
    assert stands(bench) == {0: 30, 1: 30}
    assert len({r.waveform_id for _, r in bench.tables.rows}) == len(bench.tables.rows) == 60


@pytest.mark.parametrize("until", [19, 31, 1000])
def test_until_an_offset_that_is_behind_or_not_there_is_refused(until: int) -> None:
    bench = make_bench(1)
    send(bench, 0, 10)
    with pytest.raises(Refused, match=rf"until {until}; it stands at 20 and can be read until 30"):
        ingest(bench, PlanRequest(until={Partition(0): Offset(until)}))


def test_until_where_the_stream_stands_is_nothing_to_do_even_before_an_open_transaction() -> None:
    bench = make_bench(1)
    send_chunk(bench.log, "t", at_ms=START_MS, seen=Visibility.OPEN)
    found = ingest(bench, PlanRequest(until={Partition(0): Offset(20)}))
    assert isinstance(found, NothingToDo)
    assert "what was named" in found.why


def test_a_partition_that_the_topic_does_not_have_is_named() -> None:
    bench = make_bench(2)
    for request in (PlanRequest(only=frozenset({Partition(2)})), PlanRequest(until={Partition(2): Offset(5)})):
        with pytest.raises(Refused, match=r"partition 2 was named; topic waves has 2 partitions"):
            ingest(bench, request)
    with pytest.raises(Refused, match=r"partition 2 was named"):
        rewind(bench, rewind_target("2:earliest"))


@pytest.mark.parametrize("word", ["new-topic", "start-over"])
def test_what_is_about_the_whole_stream_takes_no_partitions(word: str) -> None:
    with pytest.raises(BadInput, match="about the whole stream"):
        rewind(make_bench(2), rewind_target(word, "0"))


@given(
    named=st.dictionaries(
        st.integers(0, 2),
        st.sampled_from(["earliest", "latest", "head", "group", "previous", "0", "7", "20", "2026-01-05T12:00:00Z"]),
        min_size=1,
    ),
    reset=st.dictionaries(st.integers(0, 2), st.integers(0, RECORDS)),
    more=st.lists(st.integers(0, 2), max_size=3),
)
def test_a_partial_rewind_never_changes_a_partition_that_is_not_named(
    named: dict[int, str], reset: dict[int, int], more: list[int]
) -> None:
    bench = make_bench()
    rewind(bench, rewind_target("earliest", "1"))  # so that there is a previous
    for p in more:
        send(bench, p, 2)
    for p, to in reset.items():
        bench.log.reset_group(Partition(p), Offset(to))
    before, group = dict(bench.tables.snapshots[-1].positions), dict(bench.log.group)
    target = rewind_target(",".join(f"{p}:{to}" for p, to in named.items()))
    try:
        rewind(bench, target, accept_skip=True)
    except Refused:  # nothing would move
        assert (bench.tables.snapshots[-1].positions, bench.log.group) == (before, group)
        return
    after = bench.tables.snapshots[-1]
    for p in before.keys() - named.keys():
        assert after.positions[p] == before[p], "the head of a partition that was not named"
        assert bench.log.group[p].offset == group[p].offset, "the group's offset of a partition that was not named"
        if p in reset:
            assert bench.log.group[p] == group[p], "somebody's reset is for the next plan to take over"


@pytest.mark.parametrize("on_reset", ["adopt", "refuse"])
def test_a_reset_of_one_partition_is_settled_for_that_partition_alone(on_reset: str) -> None:
    stream = STREAM.model_copy(update={"on_reset": on_reset})
    bench = make_bench()
    bench.log.reset_group(Partition(1), Offset(5))
    if on_reset == "refuse":
        with pytest.raises(Refused, match=r"on_reset: refuse.*--to 1:group --apply.*--to 1:head --apply"):
            ingest(bench, stream=stream)
        assert stands(bench) == dict.fromkeys(range(3), RECORDS)
        rewind(bench, rewind_target("1:group"), stream=stream)
        assert bench.tables.snapshots[-1].kind is HeadKind.REWIND
        assert stands(bench) == {0: 20, 1: 5, 2: 20}
    ingest(bench, stream=stream)
    assert stands(bench) == dict.fromkeys(range(3), RECORDS)
    assert len(bench.tables.rows) == 3 * RECORDS


def test_a_reset_that_is_refused_can_be_undone_for_that_partition_alone() -> None:
    stream = STREAM.model_copy(update={"on_reset": "refuse"})
    bench = make_bench()
    bench.log.reset_group(Partition(1), Offset(5))
    bench.log.reset_group(Partition(2), Offset(6))
    rewind(bench, rewind_target("1:head"), stream=stream)
    assert shown(bench) == {0: 20, 1: 20, 2: 6}
    with pytest.raises(Refused, match=r"reset the group to 6 on partition 2.*--to 2:group"):
        ingest(bench, stream=stream)


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("0:25", []),
        ("1:10", ["set the group to 5 on partition 1"]),
        ("1:head", ["set the group to 5 on partition 1"]),
        ("1:5", []),
        ("1:group", []),
        ("earliest", ["set the group to 5 on partition 1", "set the group to 6 on partition 2"]),
        ("start-over", []),
    ],
)
def test_whoever_goes_over_what_somebody_set_the_group_to_is_told(to: str, said: list[str]) -> None:
    bench = make_bench()
    send(bench, 0, 10)
    for p in (1, 2):
        bench.log.reset_group(Partition(p), Offset(4 + p))
    found = plan_rewind(STREAM, rewind_target(to), log=bench.log, tables=bench.tables, who="a test", why="to see")
    over = [one for one in found.remarks if "this goes over it" in one]
    assert [any(what in one for one in over) for what in said] == [True] * len(over)
    assert len(over) == len(said)


@pytest.mark.parametrize(
    ("to", "log_start", "cut", "on_reset", "stands"),
    [
        (23, 0, None, "adopt", 23),
        (23, 0, 15, "adopt", 0),
        (12, 14, 15, "adopt", 14),
        (40, 0, None, "adopt", 20),
        (24, 27, None, "adopt", 27),
        (12, 14, None, "refuse", 20),
        (12, 14, None, "adopt", 20),
    ],
    ids=[
        "forward",
        "forward on a log that was written anew",
        "to before the beginning of one that was",
        "beyond the end",
        "forward, and to before the beginning",
        "back to before the beginning, which is asked about",
        "back to before the beginning",
    ],
)
def test_where_somebody_sets_the_group_a_way_is_named_that_can_be_gone(
    to: int, log_start: int, cut: int | None, on_reset: str, stands: int
) -> None:
    stream = STREAM.model_copy(update={"on_reset": on_reset})
    bench = make_bench()
    if cut is not None:
        bench.log.truncate(Partition(1), Offset(cut))
    send(bench, 1, 10)
    bench.log.retain_from(Partition(1), Offset(log_start))
    bench.log.reset_group(Partition(1), Offset(to))
    with pytest.raises((DataLost, Refused)) as refused:
        ingest(bench, stream=stream)
    for way in ways_out(str(refused.value)):
        if isinstance(way, GoTo):
            rewind(bench, way.target, accept_skip=way.accepts, stream=stream)
            assert bench.tables.snapshots[-1].positions[Partition(1)].next_offset == stands
            break
    ingest(bench, stream=stream)


def test_partitions_that_were_set_forward_are_all_named() -> None:
    bench = make_bench()
    for p in range(3):
        send(bench, p, 5)
    for p in (0, 2):
        bench.log.reset_group(Partition(p), Offset(23))
    with pytest.raises(Refused, match=re.escape("--to 0:group,2:group --accept-skip 0:20-23,2:20-23 --apply")):
        ingest(bench)


def test_two_rewinds_that_skip_keep_both_skips() -> None:
    bench = make_bench(2)
    for p in range(2):
        send(bench, p, 10)
    rewind(bench, rewind_target("0:25"), accept_skip=True)
    rewind(bench, rewind_target("1:latest"), accept_skip=True)
    assert bench.tables.snapshots[-1].skipped == (span(0, 20, 25), span(1, 20, 30))


def test_a_reset_that_comes_after_a_rewind_was_worked_out_is_left_for_the_next_plan() -> None:
    bench = make_bench(1)
    found = plan_rewind(STREAM, Target("earliest"), log=bench.log, tables=bench.tables, who="a test", why="to see")
    bench.log.reset_group(Partition(0), Offset(7))
    apply_rewind(STREAM, found, accept_skip=False, log=bench.log, tables=bench.tables)
    assert shown(bench) == {0: 7}
    with pytest.raises(Refused, match="set forward to 7"):
        ingest(bench)
