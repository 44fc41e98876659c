"""A batch at a closed gate whose landing is lost: the head names it, and no ingest goes past it all the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.domain.test_closed_gate import SPOILED, START_MS, STREAM, ingest, plan_of, published, rewind, send
from tests.fakes.batch import Bench, Carrying, FakeEdges, carry_through
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Fault, Steps
from tests.fakes.way_out import Decide, ways_out
from wavestitch.batch.closed_gate import given_up_by_a_rewind
from wavestitch.batch.gate_in_head import leave_gate
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.results import Planned
from wavestitch.batch.rewind import Target
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.errors import GateClosed, Refused, StateUnknown, Transient
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import AtGate, HeadKind


@pytest.fixture
def bench() -> Bench:
    """A batch of one spoiled waveform stands at the gate; since then ten good ones have come."""
    made = Bench(FakeLog("waves", 2))
    send(made, "bad")
    with pytest.raises(GateClosed):
        ingest(made)
    for n in range(10):
        send(made, f"good-{n}", partition=n % 2)
    return made


@pytest.fixture
def lost(bench: Bench) -> Plan:
    plan = plan_of(bench)
    for left in (bench.gates, bench.at_gates, bench.plans, bench.receipts):
        left.clear()
    return plan


def test_the_next_ingest_is_refused_and_names_the_way_out(bench: Bench, lost: Plan) -> None:
    with pytest.raises(Refused, match=r"as the head says; its plan is not in the landing.*no ingest goes past") as it:
        ingest(bench)
    assert ways_out(str(it.value)) == [Decide(lost.plan_id, "abandon")]
    assert published(bench) == set()


def test_given_up_by_name_the_stream_goes_on(bench: Bench, lost: Plan) -> None:
    where: dict[str, Any] = {"log": lambda: bench.log, "tables": bench.tables, "note": "given up"}
    assert leave_gate(STREAM, lost.plan_id, **where)
    assert not leave_gate(STREAM, lost.plan_id, **where), "no head names it any more"
    ingest(bench)
    assert len(published(bench)) == 11


@pytest.mark.parametrize(
    ("fault", "times", "told", "said"),
    [
        (Fault.FAIL_BEFORE, 3, StateUnknown, r"^tables\.commit: injected"),
        (Fault.CONFLICT, 10, Transient, "10 times the head of stream ecg changed"),
    ],
)
def test_where_no_head_can_be_made_that_gives_it_up_the_reason_is_said(
    bench: Bench, lost: Plan, fault: Fault, times: int, told: type[Exception], said: str
) -> None:
    where: dict[str, Any] = {"log": lambda: bench.log, "tables": bench.tables, "note": "given up"}
    run = Steps(lambda: leave_gate(STREAM, lost.plan_id, **where))
    while run.advance(fault if run.at == "tables.commit" else None):
        pass
    assert run.trace.count("tables.commit") == times
    with pytest.raises(told, match=said):
        raise run.error or AssertionError("it was given up")


def test_a_rewind_gives_it_up_and_says_so(bench: Bench, lost: Plan) -> None:
    edges = FakeEdges(bench, STREAM, START_MS, SPOILED)
    (said,) = given_up_by_a_rewind(edges, bench.tables.head())
    assert lost.plan_id[:16] in said
    rewind(bench, Target("latest"))
    head = bench.tables.head()
    assert head is not None
    assert head.at_gate == ()


def test_maintenance_and_backfills_leave_it_standing(bench: Bench, lost: Plan) -> None:
    head = bench.tables.head()
    assert head is not None
    for kind in (HeadKind.MAINTENANCE, HeadKind.BACKFILL):
        head = bench.tables.commit(head, head.next(kind=kind), [])
    with pytest.raises(Refused, match="stands at a closed gate"):
        ingest(bench)


def test_the_head_names_who_stands_at_a_gate_once_and_until_its_commit(bench: Bench) -> None:
    plan = plan_of(bench)
    with pytest.raises(GateClosed):
        carry_through(bench, plan, SPOILED)
    assert [h.kind for h in bench.tables.heads()] == [HeadKind.GATE, HeadKind.FIRST]
    assert bench.tables.heads()[0].at_gate == (AtGate(plan.plan_id, moves=True),)
    carry_through(bench, plan, Carrying(spoiled={"bad"}, gate="accept"))
    assert bench.tables.heads()[0].at_gate == ()


def test_a_head_says_which_batch_the_gate_closed_on_and_why_it_was_given_up(bench: Bench) -> None:
    plan_id = plan_of(bench).plan_id
    assert bench.tables.heads()[0].note == f"the gate closed on batch {plan_id[:16]}"
    leave_gate(STREAM, plan_id, log=lambda: bench.log, tables=bench.tables, note="the sensor was off")
    assert bench.tables.heads()[0].note == "the sensor was off"


@pytest.fixture
def both() -> tuple[Bench, Plan, Plan]:
    """Two runs have planned at the same place, and the gate has closed on both."""
    made = Bench(FakeLog("waves", 1))
    send(made, "bad")
    plans = [step_plan(FakeEdges(made, STREAM, START_MS, SPOILED), PlanRequest()) for _ in range(2)]
    for planned in plans:
        assert isinstance(planned, Planned)
        with pytest.raises(GateClosed):
            carry_through(made, made.plans[planned.plan_id], SPOILED)
    first, second = (made.plans[batch.plan_id] for batch in made.tables.heads()[0].at_gate)
    assert [first.plan_id, second.plan_id] == [one.plan_id for one in plans if isinstance(one, Planned)]
    return made, first, second


@pytest.mark.parametrize("given_up", [False, True])
def test_one_that_the_head_alone_knows_stands_there_whatever_becomes_of_the_one_named_before_it(
    both: tuple[Bench, Plan, Plan], *, given_up: bool
) -> None:
    bench, first, second = both
    for left in (bench.gates, bench.at_gates, bench.plans):
        left.pop(second.plan_id)
    if given_up:
        bench.abandoned.add(first.plan_id)
    edges = FakeEdges(bench, STREAM, START_MS, SPOILED)
    said = given_up_by_a_rewind(edges, bench.tables.head())
    standing = sorted(one.plan_id[:16] for one in (() if given_up else (first,)) + (second,))
    assert [one.split()[1].rstrip(",") for one in said] == standing
    with pytest.raises(Refused, match="stands at a closed gate"):
        ingest(bench)


def test_an_answer_to_one_that_stands_at_the_gate_counts_although_another_one_stands_there_too(
    both: tuple[Bench, Plan, Plan],
) -> None:
    bench, _, second = both
    carry_through(bench, second, Carrying(spoiled={"bad"}, gate="accept"))
    assert published(bench) == {"bad"}
