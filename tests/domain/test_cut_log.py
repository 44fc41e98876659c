"""A log that an unclean election cut off and that was written anew: found out by the leader epoch that the head keeps.

Every head keeps one, whoever moved it, and the ways past what was lost lead out together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.builders.ranges import span
from tests.builders.records import cut, metadata
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.way_out import GoTo, Take, named_then, way_out, ways_out
from wavestitch.batch.cut_log import find_cuts, with_last_batches
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Rewind, Target, apply_rewind, plan_rewind
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.contracts.accepted_skip import AcceptedSkip
from wavestitch.contracts.errors import DataLost, Refused, WavestitchError
from wavestitch.contracts.position import LastBatch, Position
from wavestitch.contracts.quantities import LeaderEpoch, Offset, Partition

CLOCK_MS = 1_700_000_000_000
STREAM = make_stream("waves", group="waves-batches")


def ingest(bench: Bench, request: PlanRequest | None = None) -> Any:
    return run_batch(bench, STREAM, request or PlanRequest(), clock_ms=CLOCK_MS)


def produce(bench: Bench, names: str, partition: int = 0) -> None:
    for name in names:
        for one in cut(name, [name.encode() * 2], meta=metadata(CLOCK_MS)):
            bench.log.append(Partition(partition), CLOCK_MS, *one)


def rewind(bench: Bench, target: Target, accept_skip: AcceptedSkip = True) -> Any:
    edges: dict[str, Any] = {"log": bench.log, "tables": bench.tables}
    return apply_rewind(
        STREAM, plan_rewind(STREAM, target, **edges, who="a test", why="to see"), accept_skip=accept_skip, **edges
    )


def go_by(bench: Bench, refusal: WavestitchError) -> Target:
    """The way that it names, as it names it; what that would skip besides is said, and is then accepted, too."""
    way = way_out(str(refusal))
    assert way is not None, refusal
    try:
        rewind(bench, way.target, way.accepts)
    except Refused as more:
        rewind(bench, way.target, named_then(more))
    return way.target


def undo(bench: Bench) -> None:
    edges = FakeEdges(bench, STREAM, CLOCK_MS, Carrying())
    found = plan_undo(edges, committed_stages(edges), who="a test", why="to see")
    assert isinstance(found, Rewind)
    apply_rewind(STREAM, found, accept_skip=False, log=bench.log, tables=bench.tables)


def reset(bench: Bench) -> None:
    ingest(bench)
    bench.log.reset_group(Partition(0), Offset(4))
    ingest(bench, PlanRequest(until={Partition(0): Offset(4)}))


def forget_batches(bench: Bench) -> None:
    """As an earlier version left the head."""
    head = bench.tables.snapshots[-1]
    bare = {p: at._replace(last_batch=None) for p, at in head.positions.items()}
    bench.tables.snapshots[-1] = replace(head, positions=bare)


def rebuilt(bench: Bench) -> None:
    ingest(bench)
    ingest(bench)  # which completes the history, so that the group's tag is believed
    bench.tables.expire_head()
    rewind(bench, Target("rebuilt"))


def started_at_the_end(bench: Bench) -> None:
    latest = STREAM.model_copy(update={"start": "latest"})
    run_batch(bench, latest, PlanRequest(), clock_ms=CLOCK_MS)


MOVES: dict[str, Callable[[Bench], Any]] = {
    "a batch": ingest,
    "a rewind": lambda bench: (
        ingest(bench, PlanRequest(until={Partition(0): Offset(1)})),
        rewind(bench, Target("latest")),
    ),
    "a rewind back": lambda bench: (ingest(bench), rewind(bench, Target(offsets={Partition(0): Offset(4)}))),
    "a reset of the group": reset,
    "a head that was rebuilt": rebuilt,
    "a first head at the end of the log": started_at_the_end,
}


@pytest.mark.parametrize("move", MOVES)
def test_whoever_put_the_head_there_a_log_cut_off_below_it_and_written_anew_is_found_out(move: str) -> None:
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    MOVES[move](bench)
    bench.log.truncate(Partition(0), Offset(1))
    produce(bench, "vwxyz")
    with pytest.raises(DataLost, match="was cut off before") as lost:
        ingest(bench)
    go_by(bench, lost.value)
    ingest(bench)
    assert {"v", "w", "x", "y", "z"} <= {row.waveform_id for _, row in bench.tables.rows}


BACK: dict[str, Callable[[Bench], Any]] = {
    "a rewind": lambda bench: rewind(bench, Target(offsets={Partition(0): Offset(3)})),
    "a rewind to where the last batch began": lambda bench: rewind(bench, Target("previous")),
    "an undo": undo,
    "a reset of the group": lambda bench: bench.log.reset_group(Partition(0), Offset(3)),
    "a reset of the group to where it stood": lambda bench: bench.log.reset_group(Partition(0), Offset(5)),
}


@pytest.mark.parametrize("back", BACK)
def test_whoever_goes_back_to_a_place_behind_a_cut_does_not_hide_it(back: str) -> None:
    bench = Bench(FakeLog())
    produce(bench, "abc")
    ingest(bench)
    produce(bench, "de")
    ingest(bench)
    bench.log.truncate(Partition(0), Offset(1))
    produce(bench, "stuvwxyz")
    BACK[back](bench)
    for _ in range(2):
        with pytest.raises(DataLost, match="was cut off before") as lost:
            ingest(bench)
    go_by(bench, lost.value)
    ingest(bench)
    assert set("stuvwxyz") <= {row.waveform_id for _, row in bench.tables.rows}


def test_who_goes_back_to_before_a_cut_or_to_the_beginning_reads_what_was_written_anew() -> None:
    for target in (Target(offsets={Partition(0): Offset(1)}), Target("earliest")):
        bench = Bench(FakeLog())
        read_in_two(bench)
        bench.log.truncate(Partition(0), Offset(1))
        produce(bench, "stuvwxyz")
        rewind(bench, target)
        ingest(bench)
        assert set("abcdestuvwxyz") == {row.waveform_id for _, row in bench.tables.rows}


@pytest.mark.parametrize("back", ["a rewind", "a reset of the group"])
def test_what_is_read_again_is_not_named_as_skipped_any_more(back: str) -> None:
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    ingest(bench, PlanRequest(until={Partition(0): Offset(1)}))
    rewind(bench, Target("latest"))
    assert bench.tables.snapshots[-1].skipped == (span(0, 1, 5),)
    BACK[back](bench)
    ingest(bench)
    assert bench.tables.snapshots[-1].skipped == (span(0, 1, 3),)
    rewind(bench, Target("earliest"))
    assert not bench.tables.snapshots[-1].skipped
    ingest(bench)
    assert {row.waveform_id for _, row in bench.tables.rows} == set("abcde")


def test_what_lay_there_before_and_what_lies_there_now_are_both_kept_with_their_own_bytes() -> None:
    bench = Bench(FakeLog())
    first, second = (cut(name, [name.encode() * 2, b"--"], meta=metadata(CLOCK_MS)) for name in "ab")
    bench.log.append(Partition(0), CLOCK_MS, *first[0])
    ingest(bench)
    bench.log.truncate(Partition(0), Offset(0))
    bench.log.append(Partition(0), CLOCK_MS, *second[0])
    produce(bench, "c")
    with pytest.raises(DataLost) as lost:
        ingest(bench)
    go_by(bench, lost.value)
    for one in (first[1], second[1]):
        bench.log.append(Partition(0), CLOCK_MS, *one)
    ingest(bench)
    assert {row.waveform_id: row.samples for _, row in bench.tables.rows} == {"a": b"aa--", "b": b"bb--", "c": b"cc"}


def test_the_ways_past_two_bad_places_do_not_stand_in_each_others_way() -> None:
    bench = Bench(FakeLog(partitions=2))
    for p, names in enumerate(("abcd", "efgh")):
        produce(bench, names, p)
        bench.log.lose(Partition(p), Offset(2))
    for _ in range(2):
        with pytest.raises(DataLost) as lost:
            ingest(bench)
        first, then = ways_out(str(lost.value))
        assert isinstance(first, Take)
        assert isinstance(then, GoTo)
        ingest(bench, first.request)
        rewind(bench, then.target, then.accepts)
    ingest(bench)
    assert {row.waveform_id for _, row in bench.tables.rows} == set("abdefh")


def test_a_rewind_forward_over_a_cut_names_what_was_written_anew_before_it_among_what_it_skips() -> None:
    bench = Bench(FakeLog())
    read_in_two(bench)
    bench.log.truncate(Partition(0), Offset(1))
    produce(bench, "stuvwxyz")
    edges: dict[str, Any] = {"log": bench.log, "tables": bench.tables}
    for to, anew in ((Target("latest"), 9), (Target(offsets={Partition(0): Offset(7)}), 7)):
        found = plan_rewind(STREAM, to, **edges, who="a test", why="to see")
        assert found.skipped == (span(0, 1, anew),)
        assert f"{span(0, 1, 5)} holds other records, which nobody has read" in found.remarks[0]
        with pytest.raises(Refused, match=re.escape(f"would skip {span(0, 1, anew)}")):
            apply_rewind(STREAM, found, accept_skip=False, **edges)
    rewind(bench, Target("latest"))
    assert bench.tables.snapshots[-1].skipped == (span(0, 1, 9),)


def read_in_two(bench: Bench) -> None:
    """Up to 1, then up to 5: both places are known."""
    produce(bench, "abcde")
    ingest(bench, PlanRequest(until={Partition(0): Offset(1)}))
    ingest(bench)


def test_of_what_is_not_proven_the_end_of_the_leader_epoch_says_nothing() -> None:
    """It would say 1, rightly here; nothing tells that from brokers that were put back and went on in that epoch."""
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    ingest(bench)
    bench.log.truncate(Partition(0), Offset(1))
    produce(bench, "stuvwxyz")
    with pytest.raises(DataLost, match="written anew from 0 on, at the earliest") as lost:
        ingest(bench)
    go_by(bench, lost.value)
    ingest(bench)
    assert {row.waveform_id for _, row in bench.tables.rows} == set("abcdestuvwxyz")
    assert not bench.tables.snapshots[-1].skipped


@pytest.mark.parametrize("grown", ["wxyz", "stuvwxyz"])
def test_a_log_that_was_written_anew_is_found_out_by_the_plan_which_names_what_is_proven_before_it(grown: str) -> None:
    """Also where it was written anew to the very position, and nothing lies behind it yet."""
    bench = Bench(FakeLog())
    read_in_two(bench)
    bench.log.truncate(Partition(0), Offset(1))
    produce(bench, grown)
    plans = len(bench.plans)
    with pytest.raises(DataLost, match="written anew from 1 on") as lost:
        ingest(bench)
    assert len(bench.plans) == plans, "nothing was read"
    assert go_by(bench, lost.value) == Target(offsets={Partition(0): Offset(1)})
    ingest(bench)
    assert {row.waveform_id for _, row in bench.tables.rows} == set("abcde" + grown)
    assert not bench.tables.snapshots[-1].skipped


def overgrown(bench: Bench) -> None:
    """Read up to 10, cut off at 5, written anew; retention has passed the cut, and took q, r and s with it."""
    produce(bench, "abcdefghij")
    ingest(bench)
    bench.log.truncate(Partition(0), Offset(5))
    produce(bench, "qrstuvwxy")
    bench.log.retain_from(Partition(0), Offset(8))


def test_what_was_written_anew_and_is_gone_is_named_by_the_way_out_of_the_cut() -> None:
    bench = Bench(FakeLog())
    overgrown(bench)
    with pytest.raises(
        DataLost, match=r"perhaps never read, are partition 0 \[0, 8\).*--to 0:8 --accept-skip 0:0-8"
    ) as lost:
        ingest(bench)
    target = Target(offsets={Partition(0): Offset(8)})
    edges: dict[str, Any] = {"log": bench.log, "tables": bench.tables}
    for to in (target, Target("earliest"), Target("latest"), Target("start-over")):
        found = plan_rewind(STREAM, to, **edges, who="a test", why="to see")
        assert [(r.start, r.end >= 8) for r in found.skipped] == [(0, True)]
        with pytest.raises(Refused, match="would skip"):
            apply_rewind(STREAM, found, accept_skip=False, **edges)
    assert go_by(bench, lost.value) == target
    ingest(bench)
    assert {row.waveform_id for _, row in bench.tables.rows} == set("abcdefghijtuvwxy")
    assert bench.tables.snapshots[-1].skipped == (span(0, 0, 8),)


def test_a_reset_of_the_group_to_the_beginning_does_not_hide_it() -> None:
    bench = Bench(FakeLog())
    overgrown(bench)
    bench.log.reset_group(Partition(0), Offset(8))
    for _ in range(2):
        with pytest.raises(DataLost, match=r"--to 0:8 --accept-skip 0:0-8 --apply") as lost:
            ingest(bench)
    go_by(bench, lost.value)
    ingest(bench)
    assert bench.tables.snapshots[-1].skipped == (span(0, 0, 8),)


def test_nor_does_a_position_beyond_the_end_of_the_log() -> None:
    bench = Bench(FakeLog())
    produce(bench, "abcdefghij")
    ingest(bench)
    bench.log.truncate(Partition(0), Offset(5))
    produce(bench, "qrs")
    bench.log.retain_from(Partition(0), Offset(7))
    with pytest.raises(DataLost, match=r"--to 0:7 --accept-skip 0:0-7 --apply"):
        ingest(bench)


def test_a_head_that_is_rebuilt_behind_a_cut_does_not_hide_it() -> None:
    """The group keeps the leader epoch of what it shows."""
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    for _ in range(2):  # the second completes the history, so that the group's tag is believed
        ingest(bench)
    bench.tables.expire_head()
    bench.log.truncate(Partition(0), Offset(1))
    produce(bench, "stuvwxyz")
    rewind(bench, Target("rebuilt"))
    with pytest.raises(DataLost, match="written anew from 1 on"):
        ingest(bench)


@pytest.mark.parametrize(("to", "looks"), [("rebuilt", 0), ("0:3", 1)])
def test_nor_does_one_that_is_cut_off_while_a_rewind_is_worked_out(
    monkeypatch: pytest.MonkeyPatch, to: str, looks: int
) -> None:
    """After the look at where the log ends, and before that at what is in front of the position, the last of them."""
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    for _ in range(2):
        ingest(bench)
    if to == "rebuilt":
        bench.tables.expire_head()
    real, seen = bench.log.batches_at, list[dict[Partition, Offset]]()

    def cut_off_first(topic: str, offsets: Mapping[Partition, Offset]) -> dict[Partition, LastBatch | None]:
        seen.append(dict(offsets))
        if len(seen) == looks + 1:
            bench.log.truncate(Partition(0), Offset(1))
            produce(bench, "stuvwxyz")
        return real(topic, offsets)

    monkeypatch.setattr(bench.log, "batches_at", cut_off_first)
    rewind(bench, Target("rebuilt") if to == "rebuilt" else Target(offsets={Partition(0): Offset(3)}))
    assert len(seen) == looks + 1
    with pytest.raises(DataLost, match="written anew from"):
        ingest(bench)


def test_a_stream_that_begins_where_a_group_stood_behind_a_cut_is_told() -> None:
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    bench.log.commit_group(
        "waves-batches", "waves", {0: Position(Offset(5), leader_epoch=LeaderEpoch(0))}, "somebody's"
    )
    bench.log.truncate(Partition(0), Offset(1))
    produce(bench, "stuvwxyz")
    with pytest.raises(DataLost, match="written anew from 1 on"):
        ingest(bench)


def test_a_log_that_was_put_back_from_before_it_was_read_is_not_taken_for_the_one_that_was() -> None:
    bench = Bench(FakeLog())
    bench.log.truncate(Partition(0), Offset(0))
    produce(bench, "abcde")
    ingest(bench)
    at = bench.log.partitions[Partition(0)]
    at.epoch, at.cuts, at.epochs = 0, [], [0] * at.end  # the same offsets, of whoever wrote them
    with pytest.raises(DataLost, match="written anew from 0 on"):
        ingest(bench)


def test_where_nothing_else_is_known_the_log_is_asked_only_where_its_leader_changed_and_then_once() -> None:
    """An election that cut nothing off costs one question more, also where nothing new lies."""
    bench = Bench(FakeLog(partitions=2))
    asked: list[Any] = []
    real = bench.log.epoch_ends
    bench.log.epoch_ends = lambda topic, epochs: asked.append(dict(epochs)) or real(topic, epochs)  # type: ignore[method-assign,func-returns-value]
    for p, names in enumerate(("ab", "cd")):
        produce(bench, names, p)
    ingest(bench)
    produce(bench, "e")
    ingest(bench)
    assert not asked
    for p in (0, 1):
        bench.log.truncate(Partition(p), bench.log.partitions[Partition(p)].end)
    forget_batches(bench)
    for name in "fg":
        produce(bench, name)
        ingest(bench)
    assert asked == [{0: 0, 1: 0}]


def test_a_log_that_knows_nothing_of_the_epoch_of_a_position_is_proven_nowhere_not_even_where_it_begins() -> None:
    """It was put back from before that epoch: what retention has taken since may never have been read."""
    log = FakeLog()
    bench = Bench(log)
    produce(bench, "abcde")
    log.retain_from(Partition(0), Offset(2))
    stood = {Partition(0): Position(Offset(5), leader_epoch=LeaderEpoch(7))}
    assert find_cuts("waves", stood, log.ends("waves", [Partition(0)]), log) == {Partition(0): Offset(0)}


@pytest.mark.parametrize("to", [4, 5])
def test_what_lay_in_front_of_a_place_that_the_log_ends_before_now_stays_kept(to: int) -> None:
    """Whatever is written there tomorrow, it is told from that."""
    log = FakeLog()
    bench = Bench(log)
    produce(bench, "abcde")
    ingest(bench)
    was = bench.tables.snapshots[-1].positions
    log.truncate(Partition(0), Offset(3))
    ends = log.ends("waves", [Partition(0)])
    found = with_last_batches("waves", {Partition(0): Position(Offset(to))}, ends, log, was=was)
    assert found[Partition(0)].last_batch == was[Partition(0)].last_batch is not None
