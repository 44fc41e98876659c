"""Which two are at work, and on what: small worlds in which each pair meets all that it shares."""

from __future__ import annotations

from typing import Any

from tests.builders.ranges import span
from tests.domain.protocol_machine import ProtocolMachine
from tests.fakes.faults import under_way
from tests.schedules.schedule import Scenario
from wavestitch.batch.held_decision import plan_held
from wavestitch.batch.held_waveforms import Selection
from wavestitch.batch.plan import PlanRequest
from wavestitch.batch.rewind import Target
from wavestitch.batch.rewind_preview import apply_preview, preview_rewind
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.quantities import Partition


def begun(*, held: str = "held") -> ProtocolMachine:
    """A batch has been there; something is held, and something new lies in the log."""
    machine = ProtocolMachine()
    machine.begin(partitions=1, on_reset="adopt", first=[], held=held)
    machine.produce_sticky(1, 0, 0, keyed=True)
    machine.produce_scattered([0, 1, 2], (0, 0, 0), 1, 0)
    return machine


def with_a_plan() -> ProtocolMachine:
    machine = begun()
    machine.ingest(most=1000, park=0, until="tables.batches")
    for _ in range(60):
        if not machine.runs or len(machine.bench.plans) > 1:
            break
        machine.runs[0].steps.advance()
    machine.kill_all()
    assert len(machine.bench.plans) > 1, "a plan is kept, and nobody is at work on it"
    return machine


def at_a_gate() -> ProtocolMachine:
    """Whoever reads what lies there comes to a closed gate."""
    machine = ProtocolMachine()
    machine.begin(partitions=1, on_reset="adopt", first=[], held="spoiled")
    return machine


def with_a_decision() -> ProtocolMachine:
    """A decision about what is held was planned, and nobody is at work on it."""
    machine = begun()
    wanted = Selection(ids=tuple(machine.held_ids()[:1]))
    found = plan_held(machine.edges(), HeldAction.DISCARD, wanted, who="test", why="to see")
    machine.edges().begin(found.plan)
    return machine


def with_named_offsets() -> ProtocolMachine:
    """Offsets were named to be published; no position stands in the way of publishing them twice."""
    machine = begun()
    step_plan(
        machine.edges(),
        PlanRequest(PlanKind.MANUAL, ranges=(span(0, 0, machine.bench.log.partitions[Partition(0)].end),)),
    )
    return machine


def with_a_preview() -> ProtocolMachine:
    """A rewind was shown, and waits for its approval. Where it leads depends on where the stream stands."""
    machine = begun()
    preview_rewind(machine.edges(), "shift:-1", None, who="test", why="to see")
    return machine


def ingest(machine: ProtocolMachine) -> Any:
    return machine.batch(machine.stream, PlanRequest(), machine.how(), machine.clock_ms)


def rewind(machine: ProtocolMachine) -> Any:
    return machine.rewind(Target("earliest"), True)


def leave_out(machine: ProtocolMachine) -> Any:
    return machine.rewind(Target("latest"), True)


def approve(machine: ProtocolMachine) -> Any:
    """Exactly what was shown, in the generation after the one that it was shown in."""
    (shown,) = machine.bench.previews.values()
    machine.rewinding[under_way()] = frozenset(shown.targets)
    head = apply_preview(machine.edges(), shown, by="another", accept_skip=True)
    reached = {p: head.positions[p].next_offset for p in shown.targets}
    if reached != shown.targets or head.generation != shown.generation + 1:
        machine.wrong = f"preview: head {head.sequence} goes to {reached}, shown were {shown.targets}"
    return head


def undo(machine: ProtocolMachine) -> Any:
    return machine.take_back(None)


def discard(machine: ProtocolMachine) -> Any:
    wanted = Selection(ids=tuple(machine.held_ids()[:1]))
    return machine.decide(machine.edges(), HeldAction.DISCARD, wanted, "")


def carry_on(machine: ProtocolMachine) -> Any:
    return machine.carry(list(machine.bench.plans.values())[-1], machine.how())


def reset(machine: ProtocolMachine) -> Any:
    """By Kafka's own tool, between two calls of the other one; which is told as everybody's accidents are."""
    with machine.bench.log.act("log.commit_group", error=Transient):
        machine.accident("reset", 0, 1)


def park(machine: ProtocolMachine) -> Any:
    return machine.batch(machine.stream, PlanRequest(), machine.how(park=True), machine.clock_ms)


SCENARIOS = {
    one.name: one
    for one in (
        Scenario("two ingests", begun, (("ingest 1", ingest), ("ingest 2", ingest))),
        Scenario("a plan carried by two", with_a_plan, (("carried 1", carry_on), ("carried 2", carry_on))),
        Scenario("a decision carried by two", with_a_decision, (("carried 1", carry_on), ("carried 2", carry_on))),
        Scenario(
            "named offsets carried by two", with_named_offsets, (("carried 1", carry_on), ("carried 2", carry_on))
        ),
        Scenario("two at a closed gate", at_a_gate, (("park 1", park), ("ingest 2", ingest))),
        Scenario("an ingest and a rewind", begun, (("ingest 1", ingest), ("rewind 2", rewind))),
        Scenario("an ingest and an approval", with_a_preview, (("ingest 1", ingest), ("approval 2", approve))),
        Scenario("a rewind and an approval", with_a_preview, (("rewind 1", leave_out), ("approval 2", approve))),
        Scenario("an ingest and an undo", begun, (("ingest 1", ingest), ("undo 2", undo))),
        Scenario("an ingest and a held decision", begun, (("ingest 1", ingest), ("held 2", discard))),
        Scenario("an ingest and a reset", begun, (("ingest 1", ingest), ("reset 2", reset))),
        Scenario("a rewind and a held decision", begun, (("rewind 1", rewind), ("held 2", discard))),
    )
}
