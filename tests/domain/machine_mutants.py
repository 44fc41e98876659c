"""The register of the state machine's mutants: a function of the product replaced by a wrong one, each by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import INITIALIZE_RULE_MARKER, RULE_MARKER, initialize, precondition, rule

from tests.domain.protocol_machine import ProtocolMachine

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]
ALWAYS = frozenset({"produce_sticky", "ingest", "advance"})
RULES = frozenset(
    {
        *(
            "produce_scattered",
            "produce_oddly",
            "ingest_a_part",
            "backfill",
            "carry_plan_again",
            "interleave",
            "disturb",
        ),
        *("carry_finished_plan_again", "start_rewind", "accident", "another_catalog", "follow_advice"),
        *("show_a_rewind", "show_a_decision", "answer_what_was_shown"),
        *("undo", "another_engine_expires_the_head", "a_late_effect_lands"),
        *("send_again_what_is_held", "decide_held", "decide_at_the_gate", "the_definition_is_put_right", "time_passes"),
    }
)
"""The other rules of the machine. Each mutant names those that show it: without the rest it is met sooner."""


class Mutant(NamedTuple):
    """A function of the product replaced by a wrong one, the rules that show it, and what some of them draw, where not
    whatever they can: by rule, values by argument."""

    plant: Plant
    needs: frozenset[str]
    draws: Mapping[str, Mapping[str, Any]]

    @property
    def machine(self) -> type[ProtocolMachine]:
        left_out = dict.fromkeys(RULES - self.needs)
        narrowed = {name: _narrowed(name, values) for name, values in self.draws.items()}
        return type("Machine", (ProtocolMachine,), left_out | narrowed)


MUTANTS: dict[str, Mutant] = {}


def mutant(*needs: str, **draws: Mapping[str, Any]) -> Callable[[Plant], Plant]:
    assert RULES.issuperset(needs), needs
    assert (RULES | ALWAYS | {"begin"}).issuperset(draws), draws

    def named(plant: Plant) -> Plant:
        MUTANTS[plant.__name__.replace("_", " ")] = Mutant(plant, frozenset(needs), draws)
        return plant

    return named


def _narrowed(name: str, values: Mapping[str, Any]) -> Any:
    """This rule of the machine, where these arguments have these values alone: one, or one of a tuple."""
    of_the_machine = getattr(ProtocolMachine, name)
    mark, make = (INITIALIZE_RULE_MARKER, initialize) if name == "begin" else (RULE_MARKER, rule)
    found = getattr(of_the_machine, mark)
    assert found.arguments.keys() >= values.keys(), f"{name} draws {found.arguments.keys()}"
    given = {n: st.sampled_from(v if isinstance(v, tuple) else (v,)) for n, v in values.items()}
    made: Any = make(**found.arguments | given)(found.function)
    for condition in found.preconditions:
        made = precondition(condition)(made)
    return made
