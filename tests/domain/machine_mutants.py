"""The register of the state machine's mutants: a function of the product replaced by a wrong one, each by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

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
        *("undo", "another_engine_expires_the_head", "a_late_effect_lands"),
        *("send_again_what_is_held", "decide_held", "decide_at_the_gate", "the_definition_is_put_right", "time_passes"),
    }
)
"""The other rules of the machine. Each mutant names those that show it: without the rest it is met sooner."""


class Mutant(NamedTuple):
    """A function of the product replaced by a wrong one, and the rules that show it."""

    plant: Plant
    needs: frozenset[str]

    @property
    def machine(self) -> type[ProtocolMachine]:
        return type("Machine", (ProtocolMachine,), dict.fromkeys(RULES - self.needs))


MUTANTS: dict[str, Mutant] = {}


def mutant(*needs: str) -> Callable[[Plant], Plant]:
    assert RULES.issuperset(needs), needs

    def named(plant: Plant) -> Plant:
        MUTANTS[plant.__name__.replace("_", " ")] = Mutant(plant, frozenset(needs))
        return plant

    return named
