"""What a step of a batch did, in a sentence of its log."""

from __future__ import annotations

import pytest

from wavestitch.batch.plan import NothingToDo
from wavestitch.batch.results import (
    Finished,
    OffsetsCommitted,
    Planned,
    Published,
    Read,
    Reassembled,
    Result,
    Validated,
    together,
)
from wavestitch.batch.results_told import said_of_result
from wavestitch.contracts.quantities import Partition

PLAN = "a" * 32
DONE = Published(PLAN, 3, {"published": 2, "open": 0}, {"read": 6, "carried_in": 1}, {}, identity_balances=True)
PLANNED = Planned(PLAN, "ingest", "ecg", 1, (("x",), ("y",)), 6, 99, ((0, 0, 4), (1, 0, 2)), {Partition(0): ""}, left=7)


def validated(**how: object) -> Validated:
    said: dict[str, object] = {"park": False, "answered": False, "note": "two sites", "failed": 0, "reported": ()}
    return Validated(verdict="v", seconds=1.0, **{**said, **how})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (NothingToDo("the end is reached"), "nothing is to be done: the end is reached"),
        (PLANNED, f"batch {PLAN[:16]} reads 6 offsets of 2 partitions, about 99 bytes, in 2 units; 7 more are left to"),
        (Read(("r",), 6, 99, 1.0), "read 6 records, 99 bytes of payload; nothing counts before the commit"),
        (Reassembled(None, (), 3, 1.0), "3 waveforms are whole and stitched; nothing counts before the commit"),
        (validated(), "the gate is open"),
        (validated(failed=2), "the gate is open; 2 waveforms fail an expectation about them, and are held"),
        (validated(answered=True), "the gate is passed by somebody's word: two sites"),
        (validated(answered=True, park=True), "the whole batch is held, by somebody's word: two sites"),
        (
            DONE,
            "committed as head 3; waveforms: 2 published; chunks: 6 read, 1 carried in; every chunk is accounted for",
        ),
        (Finished(PLAN, DONE), f"batch {PLAN[:16]} was committed before, and nothing is done twice"),
        (OffsetsCommitted("0:6 written", 99), "0:6 written; 99 bytes of the landing were given back"),
    ],
)
def test_a_step_says_what_it_did(result: Result, said: str) -> None:
    assert said in said_of_result(result)


@pytest.mark.parametrize(
    ("reported", "said"),
    [((), "the gate is open"), (("a", "b"), "the gate is open; reported, which holds nothing: a, b")],
)
def test_what_is_only_reported_is_said_where_there_is_any(reported: tuple[str, ...], said: str) -> None:
    assert said_of_result(validated(reported=reported)) == said


def test_what_several_executions_have_read_is_one_result_and_one_that_found_it_done_counts_for_all() -> None:
    parts = [Read(("r1", "r2"), 6, 99, 1.0), Read(("r3",), 3, 50, 2.5)]
    assert together(parts) == Read(("r1", "r2", "r3"), 9, 149, 2.5)
    assert together([]) == Read((), 0, 0, 0.0)
    done = Finished(PLAN, DONE)
    assert together([*parts, done]) == done
