"""Whoever plans while somebody else commits looks at head and group again, and stops only where that never ends."""

from __future__ import annotations

from tests.builders.sending import send_chunk
from tests.builders.streams import make_stream
from tests.fakes.batch import Bench, Carrying, FakeEdges, run_batch
from tests.fakes.fake_log import FakeLog
from tests.fakes.faults import Fault, Steps
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import Offset, Partition

T = 1_767_614_400_000
STREAM = make_stream()


def begun() -> Bench:
    """Two waveforms are published."""
    bench = Bench(FakeLog("waves", 1))
    for name in ("a", "b"):
        send_chunk(bench.log, name, at_ms=T)
    ingest(bench)
    return bench


def ingest(bench: Bench) -> None:
    run_batch(bench, STREAM, PlanRequest(), clock_ms=T)


def planning(bench: Bench) -> Steps:
    return Steps(lambda: step_plan(FakeEdges(bench, STREAM, T, Carrying()), PlanRequest()))


def newest_plan(bench: Bench) -> Plan:
    return list(bench.plans.values())[-1]


def test_a_batch_that_commits_between_the_looks_at_head_and_group_makes_nobody_doubt_the_catalog() -> None:
    bench = begun()
    send_chunk(bench.log, "c", at_ms=T)
    run = planning(bench)
    while run.at != "log.group_offsets":
        assert run.advance()
    ingest(bench)
    send_chunk(bench.log, "d", at_ms=T)
    run.finish()
    assert run.error is None
    head = bench.tables.head()
    assert head is not None
    plan = newest_plan(bench)
    assert (plan.base_sequence, plan.positions[Partition(0)].next_offset) == (head.sequence, 3)


def test_a_reset_is_taken_over_at_the_next_look_where_another_head_came_first() -> None:
    bench = begun()
    bench.log.reset_group(Partition(0), Offset(1))
    run = planning(bench)
    while run.at != "tables.commit":
        assert run.advance()
    run.advance(Fault.CONFLICT)
    run.finish()
    assert run.error is None
    assert run.trace.count("tables.commit") == 2
    assert newest_plan(bench).positions[Partition(0)].next_offset == 1
