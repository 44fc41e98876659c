"""Seeded bugs. What operators are held to: closed gates, and what undo puts back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import closed_gate, steps, undo
from wavestitch.contracts.plan import PlanKind


@shows(Kind.INVENTED)
def an_ingest_goes_past_a_closed_gate(patch: Patch) -> None:
    patch.setattr(steps, "refuse_past_closed_gate", lambda edges, **_: edges.closed_gates() and None)


@shows(Kind.INVENTED)
def a_gate_that_closed_once_opens_every_other(patch: Patch) -> None:
    real = steps.refuse_past_closed_gate
    patch.setattr(steps, "refuse_past_closed_gate", lambda edges, **more: real(edges, **{**more, "answered": True}))


@shows(Kind.INVENTED)
def a_closed_gate_lapses_when_the_head_under_it_is_expired(patch: Patch) -> None:
    real = closed_gate._standing

    def wrong(closed: Any, heads: Any, tables: Any) -> Any:
        return [plan for plan in real(closed, heads, tables) if closed_gate.is_in_history(plan, heads)]

    patch.setattr(closed_gate, "_standing", wrong)


@shows(Kind.INVENTED)
def a_decision_asks_at_no_gate_once_it_is_planned(patch: Patch) -> None:
    real = steps.asks_the_gate
    patch.setattr(steps, "asks_the_gate", lambda plan: plan.kind is not PlanKind.HELD and real(plan))


@shows(Kind.INVENTED)
def a_backfill_asks_at_no_gate(patch: Patch) -> None:
    real = steps.asks_the_gate
    patch.setattr(steps, "asks_the_gate", lambda plan: plan.kind is PlanKind.HELD and real(plan))


@shows(Kind.STALE_WRITER)
def undo_of_a_decision_is_about_all_that_is_held_of_its_waveforms(patch: Patch) -> None:
    patch.setattr(undo, "not_undone_by", lambda *_, **__: [])


@shows(Kind.STALE_WRITER)
def undo_of_a_decision_does_not_look_again_whether_it_still_is_its_opposite(patch: Patch) -> None:
    real = undo._plan_opposite

    def wrong(*args: Any, **kwargs: Any) -> Any:
        shown = real(*args, **kwargs)
        return replace(shown, plan=replace(shown.plan, choice=replace(shown.plan.choice, among=())).sealed())

    patch.setattr(undo, "_plan_opposite", wrong)


@shows(Kind.STALE_WRITER, since=50)
def undo_moves_all_partitions_back(patch: Patch) -> None:
    """To where the batch was planned: those that it did not read, too."""
    real = undo._plan_back

    def wrong(edges: Any, found: Any, **about: Any) -> Any:
        plans = [p for p in edges.bench.plans.values() if found.offsets.items() <= _stood(p).items()]
        return real(edges, replace(found, offsets=_stood(plans[-1])) if plans else found, **about)

    def _stood(plan: Any) -> dict[int, int]:
        return {p: at.next_offset for p, at in plan.positions.items()}

    patch.setattr(undo, "_plan_back", wrong)
