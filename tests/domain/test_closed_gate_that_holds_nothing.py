"""A batch that holds nothing, of named offsets or an interval, at a closed gate: it stops, and is not parked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.ranges import span
from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, carry_through, run_batch, run_interval
from tests.fakes.fake_log import FakeLog
from tests.fakes.way_out import Decide, ways_out
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.request import check_gate
from wavestitch.contracts.errors import BadInput, GateClosed, Refused
from wavestitch.contracts.plan import Plan, PlanKind, Scope
from wavestitch.contracts.stream import Stream

START_MS = 1_767_614_400_000
STREAM = make_stream()
SPOILED = Carrying(spoiled={"bad"})
ALL_OF_IT = Scope(START_MS * 1_000_000, (START_MS + 1) * 1_000_000)
NAMED = PlanRequest(PlanKind.MANUAL, ranges=(span(0, 0, 1),))
INTERVAL = PlanRequest(PlanKind.BACKFILL, ALL_OF_IT)
BY_KIND = pytest.mark.parametrize("request_", [NAMED, INTERVAL], ids=["named offsets", "backfill"])


def send(bench: Bench, waveform_id: str, partition: int = 0) -> None:
    send_chunk(bench.log, waveform_id, at_ms=START_MS, partition=partition)


def ingest(bench: Bench, request: PlanRequest | None = None, stream: Stream = STREAM) -> Any:
    return run_batch(bench, stream, request or PlanRequest(), clock_ms=START_MS, how=SPOILED)


def published(bench: Bench) -> set[str]:
    return {row.waveform_id for _, row in bench.tables.rows}


def plan_of(bench: Bench) -> Plan:
    return next(iter(bench.gates.values()))


def stopped_batch(stream: Stream, request: PlanRequest) -> tuple[Bench, str]:
    """A batch of one spoiled waveform, and the sentence that it stops with."""
    bench = Bench(FakeLog("waves", 1))
    send(bench, "bad")
    with pytest.raises(GateClosed) as closed:
        ingest(bench, request, stream)
    return bench, closed.value.message


@BY_KIND
@pytest.mark.parametrize("says", ["stop", "park"])
def test_what_holds_nothing_stops_at_its_gate_and_is_not_told_to_be_parked(request_: PlanRequest, says: str) -> None:
    """Parked it would be neither published nor held, and the log's retention would take it."""
    bench, told = stopped_batch(STREAM.model_copy(update={"on_closed_gate": says}), request_)
    assert {(way.how, way.plan_id) for way in ways_out(told) if isinstance(way, Decide)} == {
        (how, plan_of(bench).plan_id) for how in ("accept", "abandon")
    }
    assert "cannot be parked" in told
    assert bench.tables.batches() == []


@BY_KIND
def test_to_park_what_holds_nothing_is_refused_and_what_the_refusal_names_works(request_: PlanRequest) -> None:
    bench, _ = stopped_batch(STREAM, request_)
    plan = plan_of(bench)
    with pytest.raises(Refused, match=rf"a {plan.kind} batch is not parked.*holds nothing") as refused:
        carry_through(bench, plan, Carrying(spoiled={"bad"}, park=True))
    assert bench.tables.batches() == []
    assert {way.how for way in ways_out(refused.value.message) if isinstance(way, Decide)} == {"accept", "abandon"}
    carry_through(bench, plan, Carrying(spoiled={"bad"}, gate="accept"))
    assert published(bench) == {"bad"}


@BY_KIND
def test_what_is_asked_for_with_park_and_holds_nothing_is_refused_before_it_is_planned(request_: PlanRequest) -> None:
    with pytest.raises(BadInput, match=r"gate park is not for this batch.*holds nothing.*stop and accept"):
        check_gate("park", "later", request_)
    assert check_gate("accept", "later", request_) == ("accept", "later")
    assert check_gate("park", "later", PlanRequest()) == ("park", "later")


def test_a_backfill_of_a_stream_that_parks_does_not_end_well_at_a_closed_gate() -> None:
    bench = Bench(FakeLog("waves", 1))
    send(bench, "bad")
    stream = STREAM.model_copy(update={"on_closed_gate": "park"})
    with pytest.raises(GateClosed, match="cannot be parked"):
        run_interval(bench, stream, ALL_OF_IT, clock_ms=START_MS, how=SPOILED)
    assert bench.tables.batches() == []
    ingest(bench, stream=stream)
    assert {r.held.reason.value for r in bench.tables.held_rows()} == {"parked"}, "an ingest over these offsets holds"
