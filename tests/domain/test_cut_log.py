"""A log that an unclean election cut off and that was written anew: found out by the leader epoch that the head keeps.

Every head keeps one, whoever moved it, and the ways past what was lost lead out together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.builders.records import cut, metadata
from tests.builders.streams import make_stream
from tests.memory.batch import Bench, run_batch
from tests.memory.memory_log import MemoryLog
from tests.memory.way_out import GoTo, Take, way_out, ways_out
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target, apply_rewind, plan_rewind
from wavestitch.contracts.errors import DataLost, Refused

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
    "a reset of the group": reset,
    "a head that was rebuilt": rebuilt,
    "a first head at the end of the log": started_at_the_end,
}


@pytest.mark.parametrize("move", MOVES)
def test_whoever_put_the_head_there_a_log_cut_off_below_it_and_written_anew_is_found_out(move: str) -> None:
    bench = Bench(MemoryLog())
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


def test_what_lay_there_before_and_what_lies_there_now_are_both_kept_with_their_own_bytes() -> None:
    bench = Bench(MemoryLog())
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
    bench = Bench(MemoryLog(partitions=2))
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
    bench = Bench(MemoryLog())
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
    bench = Bench(MemoryLog())
    produce(bench, "abcde")
    ingest(bench)
    bench.log.truncate(0, 1)
    produce(bench, "wxyz")
    with pytest.raises((DataLost, Refused)):
        ingest(bench)
