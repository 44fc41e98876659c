"""Seeded bugs. What operators are held to: closed gates, and what undo puts back."""

from __future__ import annotations

from typing import Any

from tests.histories.anomaly import Kind
from tests.histories.seeded_bugs.registry import Patch, shows
from wavestitch.batch import closed_gate, steps


@shows(Kind.INVENTED)
def an_ingest_goes_past_a_closed_gate(patch: Patch) -> None:
    patch.setattr(steps, "refuse_past_closed_gate", lambda edges, **_: edges.closed_gates() and None)


@shows(Kind.INVENTED)
def a_closed_gate_lapses_when_the_head_under_it_is_expired(patch: Patch) -> None:
    real = closed_gate._standing

    def wrong(closed: Any, heads: Any, tables: Any) -> Any:
        return [plan for plan in real(closed, heads, tables) if closed_gate.is_in_history(plan, heads)]

    patch.setattr(closed_gate, "_standing", wrong)
