"""Courses of the state machine that show a wrong product at once which chance meets late, each step a rule and what it
draws: by mutant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.domain.protocol_machine import ProtocolMachine
from wavestitch.contracts.held_choice import HeldAction

Step = tuple[str, Mapping[str, Any]]


def _begin(held: str = "") -> Step:
    first = [(0, 0)]
    return "begin", {"partitions": 1, "on_reset": "adopt", "first": first, "held": held, "on_closed_gate": "stop"}


def _ingest(*, park: bool = False) -> Step:
    return "ingest", {"most": 1000, "park": 9 if park else 0, "until": "end"}


def _contradict(which: int) -> Step:
    return "produce_oddly", {"what": "contradict", "which": which, "to": 0, "how": 0}


_COPY: Step = ("another_catalog", {"what": "copied", "which": 0})
"""It is made, and put in place the next time."""

COURSES: Mapping[str, Sequence[Step]] = {
    "a copy of the table that goes on is not seen": (
        *(_begin(), _ingest(), _COPY),
        ("produce_sticky", {"chunks": 1, "to": 0, "odd": 0, "keyed": True}),
        # The copy is put in place before the group shows what is in the table; it goes on as far, and is put back.
        ("backfill", {"since": 0, "span": 300, "until": "log.commit_group"}),
        *(_COPY, _ingest(), _COPY, _ingest()),
    ),
    "what is approved of is about ids": (
        *(_begin("held"), ("show_a_decision", {"which": 1}), _contradict(2), _ingest()),
        ("answer_what_was_shown", {"which": 0, "approve": True, "until": "end"}),
    ),
    "undo of a decision is about all that is held of its waveforms": (
        _begin("held"),
        ("decide_held", {"action": HeldAction.DISCARD, "which": 0, "copy": "first", "until": "end"}),
        *(_contradict(1), _ingest(), ("undo", {"which": 1, "of_a_batch": True, "until": "end"})),
    ),
    "what is parked is not held": (_begin(), _ingest(park=True)),
}


def take(course: Sequence[Step]) -> None:
    """To its end, as the machine is played: what must hold is looked at after each step, and what is left repaired."""
    machine = ProtocolMachine()
    for rule, drawn in course:
        getattr(machine, rule)(**drawn)
        machine.all_guarantees_hold()
    machine.teardown()
