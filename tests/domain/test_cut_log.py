"""A log that an unclean election cut off and that was written anew: found out by the leader epoch that the head keeps.

Every head keeps one, whoever moved it, and the ways past what was lost lead out together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders.records import cut, metadata
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.way_out import GoTo, Take, way_out, ways_out
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Rewind, Target, apply_rewind, plan_rewind
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.contracts.errors import DataLost, Refused
from wavestitch.contracts.offset_range import OffsetRange

CLOCK_MS = 1_700_000_000_000
STREAM = make_stream("waves", group="waves-batches")


def ingest(bench: Bench, request: PlanRequest | None = None) -> Any:
    return run_batch(bench, STREAM, request or PlanRequest(), clock_ms=CLOCK_MS)


def produce(bench: Bench, names: str, partition: int = 0) -> None:
    for name in names:
        for one in cut(name, [name.encode() * 2], meta=metadata(CLOCK_MS)):
            bench.log.append(partition, CLOCK_MS, *one)


def rewind(bench: Bench, target: Target) -> Any:
    edges: dict[str, Any] = {"log": bench.log, "tables": bench.tables}
    return apply_rewind(
        STREAM, plan_rewind(STREAM, target, **edges, who="a test", why="to see"), accept_skip=True, **edges
    )


def undo(bench: Bench) -> None:
    edges = FakeEdges(bench, STREAM, CLOCK_MS, Carrying())
    found = plan_undo(edges, committed_stages(edges), who="a test", why="to see")
    assert isinstance(found, Rewind)
    apply_rewind(STREAM, found, accept_skip=False, log=bench.log, tables=bench.tables)


def reset(bench: Bench) -> None:
    ingest(bench)
    bench.log.reset_group(0, 4)
    ingest(bench, PlanRequest(until={0: 4}))


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
    "a rewind": lambda bench: (ingest(bench, PlanRequest(until={0: 1})), rewind(bench, Target("latest"))),
    "a rewind back": lambda bench: (ingest(bench), rewind(bench, Target(offsets={0: 4}))),
    "a reset of the group": reset,
    "a head that was rebuilt": rebuilt,
    "a first head at the end of the log": started_at_the_end,
}


@pytest.mark.parametrize("move", MOVES)
def test_whoever_put_the_head_there_a_log_cut_off_below_it_and_written_anew_is_found_out(move: str) -> None:
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    MOVES[move](bench)
    bench.log.truncate(0, 1)
    produce(bench, "vwxyz")
    with pytest.raises(DataLost, match="was cut off before") as lost:
        ingest(bench)
    target = way_out(str(lost.value))
    assert target is not None
    rewind(bench, target)
    ingest(bench)
    assert {"v", "w", "x", "y", "z"} <= {row.waveform_id for _, row in bench.tables.rows}


BACK: dict[str, Callable[[Bench], Any]] = {
    "a rewind": lambda bench: rewind(bench, Target(offsets={0: 3})),
    "a rewind to where the last batch began": lambda bench: rewind(bench, Target("previous")),
    "an undo": undo,
    "a reset of the group": lambda bench: bench.log.reset_group(0, 3),
    "a reset of the group to where it stood": lambda bench: bench.log.reset_group(0, 5),
}


@pytest.mark.parametrize("back", BACK)
def test_whoever_goes_back_to_a_place_behind_a_cut_does_not_hide_it(back: str) -> None:
    bench = Bench(FakeLog())
    produce(bench, "abc")
    ingest(bench)
    produce(bench, "de")
    ingest(bench)
    bench.log.truncate(0, 1)
    produce(bench, "stuvwxyz")
    BACK[back](bench)
    for _ in range(2):
        with pytest.raises(DataLost, match="was cut off before") as lost:
            ingest(bench)
    target = way_out(str(lost.value))
    assert target is not None
    rewind(bench, target)
    ingest(bench)
    assert set("stuvwxyz") <= {row.waveform_id for _, row in bench.tables.rows}


def test_who_goes_back_to_before_a_cut_or_to_the_beginning_reads_what_was_written_anew() -> None:
    for target in (Target(offsets={0: 1}), Target("earliest")):
        bench = Bench(FakeLog())
        produce(bench, "abcde")
        ingest(bench)
        bench.log.truncate(0, 1)
        produce(bench, "stuvwxyz")
        rewind(bench, target)
        ingest(bench)
        assert set("abcdestuvwxyz") == {row.waveform_id for _, row in bench.tables.rows}


@pytest.mark.parametrize("back", ["a rewind", "a reset of the group"])
def test_what_is_read_again_is_not_named_as_skipped_any_more(back: str) -> None:
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    ingest(bench, PlanRequest(until={0: 1}))
    rewind(bench, Target("latest"))
    assert bench.tables.snapshots[-1].skipped == (OffsetRange(0, 1, 5),)
    BACK[back](bench)
    ingest(bench)
    assert bench.tables.snapshots[-1].skipped == (OffsetRange(0, 1, 3),)
    rewind(bench, Target("earliest"))
    assert not bench.tables.snapshots[-1].skipped
    ingest(bench)
    assert {row.waveform_id for _, row in bench.tables.rows} == set("abcde")


def test_what_lay_there_before_and_what_lies_there_now_are_both_kept_with_their_own_bytes() -> None:
    bench = Bench(FakeLog())
    first, second = (cut(name, [name.encode() * 2, b"--"], meta=metadata(CLOCK_MS)) for name in "ab")
    bench.log.append(0, CLOCK_MS, *first[0])
    ingest(bench)
    bench.log.truncate(0, 0)
    bench.log.append(0, CLOCK_MS, *second[0])
    produce(bench, "c")
    with pytest.raises(DataLost) as lost:
        ingest(bench)
    target = way_out(str(lost.value))
    assert target is not None
    rewind(bench, target)
    for one in (first[1], second[1]):
        bench.log.append(0, CLOCK_MS, *one)
    ingest(bench)
    assert {row.waveform_id: row.samples for _, row in bench.tables.rows} == {"a": b"aa--", "b": b"bb--", "c": b"cc"}


def test_the_ways_past_two_bad_places_do_not_stand_in_each_others_way() -> None:
    bench = Bench(FakeLog(partitions=2))
    for p, names in enumerate(("abcd", "efgh")):
        produce(bench, names, p)
        bench.log.lose(p, 2)
    for _ in range(2):
        with pytest.raises(DataLost) as lost:
            ingest(bench)
        first, then = ways_out(str(lost.value))
        assert isinstance(first, Take)
        assert isinstance(then, GoTo)
        ingest(bench, first.request)
        rewind(bench, then.target)
    ingest(bench)
    assert {row.waveform_id for _, row in bench.tables.rows} == set("abdefh")


@pytest.mark.xfail(
    strict=True, reason="a rewind asks the log for its ends, not whether it still is the one that was read"
)
def test_a_rewind_forward_over_a_cut_is_told_what_was_written_anew_before_it() -> None:
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    ingest(bench)
    bench.log.truncate(0, 1)
    produce(bench, "stuvwxyz")
    with pytest.raises(Refused):
        rewind(bench, Target("latest"))


@pytest.mark.xfail(
    strict=True, reason="a log that was written anew exactly to the position is found out by the next record"
)
def test_a_log_that_was_written_anew_to_the_very_position_is_found_out_at_once() -> None:
    bench = Bench(FakeLog())
    produce(bench, "abcde")
    ingest(bench)
    bench.log.truncate(0, 1)
    produce(bench, "wxyz")
    with pytest.raises((DataLost, Refused)):
        ingest(bench)
