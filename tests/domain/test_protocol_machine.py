"""Any interleaving of producers, runs, operators and accidents keeps every invariant; see `protocol_machine`."""

from __future__ import annotations

import pytest

from tests.domain.effort import effort
from tests.domain.protocol_machine import ProtocolMachine

TestProtocolMachine = ProtocolMachine.TestCase
TestProtocolMachine.settings = effort(200, steps=40)


def bench_with_two_waveforms() -> ProtocolMachine:
    machine = ProtocolMachine()
    machine.begin(partitions=1, on_reset="adopt", first=[(0, 5), (3, 6)])
    return machine


@pytest.mark.parametrize("kind", ["ingest", "backfill"])
def test_a_plan_carried_through_by_two_runs_at_once_is_committed_once(kind: str) -> None:
    """A zombie and its retry: the first commits at every possible moment of the second, which then ends well."""
    for moment in range(40):
        machine = bench_with_two_waveforms()
        if kind == "ingest":
            machine.ingest(most=1000, park=0, until="tables.stage_held")
        else:
            machine.backfill(since=0, span=300, until="tables.stage_held")
        machine.carry_plan_again(which=0, until=str(moment))
        first, second = machine.runs if len(machine.runs) == 2 else (machine.runs[0], None)
        first.steps.finish()
        if second is not None:
            second.steps.finish()
            assert second.steps.error is None, f"at {moment}: {second.steps.error!r}"
        machine.all_guarantees_hold()
        machine.teardown()


def test_a_backfill_leaves_what_is_held_as_it_was_and_says_so() -> None:
    machine = ProtocolMachine()
    machine.begin(partitions=1, on_reset="adopt", first=[])
    machine.produce_scattered(order=[0, 1, 2], to=(0, 0, 0), withhold=1, odd=1)
    machine.ingest(most=1000, park=0, until="end")
    held = machine.sight().held
    machine.produce_oddly(what="late", which=0, to=0, how=0)
    machine.backfill(since=0, span=300, until="end")
    counts = machine.bench.tables.history[-1].counts
    assert (counts["carried_in"], counts["carried_out"], counts["reported"]) == (2, 2, 1), counts
    assert counts["replay"] == 2, "the two held chunks were read again"
    assert machine.sight().held == held
    machine.teardown()
