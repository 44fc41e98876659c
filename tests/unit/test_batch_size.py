"""How many offsets a batch covers: the estimate, and what a reader that stopped at its budget teaches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.fake_log import FakeLog
from tests.fakes.fake_rows import FakeFiles
from tests.fakes.fake_tables import FakeTables
from tests.fakes.kept_partition import stored_size
from wavestitch.batch.plan import Planning, PlanRequest, plan_batch
from wavestitch.batch.walk import Walk
from wavestitch.contracts.batch_size import (
    READER_STOP,
    ReaderStop,
    batch_offsets,
    needed_bytes,
    stops_of,
    unit_budget,
)
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.stream import Limits

START_MS = 1_767_614_400_000
LIMITS = Limits(max_waveform_bytes=1 << 20, max_batch_bytes=1 << 20)
STREAM = make_stream(limits=LIMITS)


def stop(
    *, records: int = 10, size: int = 1 << 20, planned: int = 100, at: int = 0, kind: str = "ingest"
) -> ReaderStop:
    ranges = (span(0, at, at + planned),)
    return ReaderStop(
        "plan", kind, ranges, LIMITS.max_batch_bytes, 0, records, planned, size, planned, {Partition(0): Offset(at)}
    )


def test_a_stop_under_a_smaller_limit_does_not_halve_what_a_larger_one_allows() -> None:
    larger = LIMITS.model_copy(update={"max_batch_bytes": 64 << 20})
    assert batch_offsets(larger, mean=1.0, stops=[stop(records=1000, planned=100)]) > 100


@pytest.mark.parametrize("kind", ["backfill", "manual"])
def test_a_plan_that_names_what_it_reads_is_not_halved_and_its_stop_is_nobody_elses(kind: str) -> None:
    seen = stop(records=1000, planned=100, kind=kind)
    same, more = [span(0, 0, 100)], [span(0, 0, 101)]
    assert stops_of([seen], kind=kind, wanted=same) == [seen]
    # A backfill is a chain of batches: what one of them met says something of all that it has to read.
    assert stops_of([seen], kind=kind, wanted=more) == ([seen] if kind == "backfill" else [])
    assert stops_of([seen], kind=kind, wanted=[span(0, 0, 99)]) == stops_of([seen], kind="ingest", wanted=same) == []
    assert stops_of([stop()], kind=kind, wanted=same) == []
    assert batch_offsets(LIMITS, mean=1.0, stops=[seen]) > 100


@given(st.integers(1, 10**6), st.floats(0.1, 1e7))
def test_the_bytes_that_a_refusal_names_are_enough(offsets: int, mean: float) -> None:
    needed = needed_bytes(offsets, mean=mean)
    enough = LIMITS.model_copy(update={"max_batch_bytes": needed, "max_batch_records": 10**9})
    assert batch_offsets(enough, mean=mean, stops=[]) >= offsets


def test_it_leaves_room_for_records_that_are_larger_than_most() -> None:
    assert batch_offsets(LIMITS, mean=1024.0, stops=[]) == 819


def test_a_stop_allows_half_of_what_was_planned_and_no_more_than_it_saw_would_fill() -> None:
    assert batch_offsets(LIMITS, mean=1.0, stops=[stop(records=100_000, planned=100)]) == 50
    assert batch_offsets(LIMITS, mean=1.0, stops=[stop(records=10, planned=100)]) == 8


@given(st.integers(1, 10**6), st.integers(1, 10**9), st.integers(1, 1 << 40))
def test_after_enough_stops_one_offset_is_planned_never_none(planned: int, records: int, size: int) -> None:
    stops: list[ReaderStop] = []
    for _ in range(64):
        most = min(planned, batch_offsets(LIMITS, mean=1.0, stops=stops))
        assert most >= 1
        assert not stops or most <= max(1, stops[-1].planned // 2)
        if most == 1:
            return
        stops.append(stop(records=records, size=size, planned=most))
    raise AssertionError("the stream does not get on")


@given(st.lists(st.lists(st.integers(1, 1000), min_size=1, max_size=3), min_size=1, max_size=6))
def test_the_units_of_a_plan_share_its_budget(sizes: list[list[int]]) -> None:
    units = [tuple(span(0, 0, n) for n in unit) for unit in sizes]
    planned = sum(map(sum, sizes))
    shares = [unit_budget(LIMITS, unit, planned=planned) for unit in units]
    assert sum(shares) <= LIMITS.max_batch_bytes + len(units)
    assert min(shares) >= 1


def test_what_records_have_each_is_told_of_one_and_of_none_too() -> None:
    assert [stop(records=n, size=10).mean for n in (0, 1, 2)] == [10, 10, 5]


def test_a_unit_too_small_for_a_byte_of_the_budget_has_one() -> None:
    assert unit_budget(LIMITS, (span(0, 0, 1),), planned=LIMITS.max_batch_bytes + 1) == 1


def test_a_stop_survives_its_file() -> None:
    assert READER_STOP.read(READER_STOP.text(stop())) == stop()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "plan_id": "x"}'])
def test_what_is_no_stop_is_said_so(text: str) -> None:
    with pytest.raises(BadInput, match="remove that file"):
        READER_STOP.read(text)


def planned(log: FakeLog, tables: FakeTables, *, stops: list[ReaderStop] | None = None) -> Plan:
    found = plan_batch(
        STREAM,
        PlanRequest(),
        walk=Walk(STREAM, log, tables),
        by=Planning(EpochMs(START_MS), "n", "test", stops or ()),
    )
    assert isinstance(found, Plan)
    return found


def filled(count: int, size: int) -> FakeLog:
    log = FakeLog("waves", 1)
    for n in range(count):
        send_chunk(log, f"w{n}", 0, b"\1\0" * (size // 2), at_ms=START_MS)
    return log


def test_the_first_estimate_comes_from_the_log_not_from_its_largest_message() -> None:
    log = filled(600, 1000)
    plan = planned(log, FakeTables(FakeFiles()))
    assert plan.mean_record_bytes == stored_size(log.partitions[Partition(0)].records[0])
    assert plan.records == 600, "a broker's largest message is 1 MiB, so one record was planned"


def test_what_a_stopped_reader_saw_teaches_the_next_plan_from_the_same_place_only() -> None:
    log, tables = filled(600, 1000), FakeTables(FakeFiles())
    assert planned(log, tables, stops=[stop(records=10, planned=600)]).records == 8
    assert planned(log, tables, stops=[stop(records=10, planned=600, at=5)]).records == 600


def test_a_plan_whose_reader_never_gets_through_is_halved_until_it_does() -> None:
    log, tables = filled(600, 1000), FakeTables(FakeFiles())
    stops: list[ReaderStop] = []
    sizes: list[int] = []
    while not sizes or sizes[-1] > 1:
        plan = planned(log, tables, stops=stops)
        sizes.append(plan.records)
        stops.append(stop(records=plan.records, size=1, planned=plan.records))
    assert sizes == [600, 300, 150, 75, 37, 18, 9, 4, 2, 1]
