"""One schedule of two actors, played by the product's own code over the fake edges."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.domain.protocol_machine import ProtocolMachine
from tests.domain.running_machine import Run
from tests.fakes.faults import Fault, Steps
from tests.schedules.state import (
    ENDED,
    FAIL,
    GOES_ON,
    LANDINGS,
    LATE,
    SEEN_BY_NOBODY,
    SWITCH,
    Actor,
    Bounds,
    State,
    World,
)
from tests.schedules.watched import AT_WORK, PARTS, Touched, part_of, world_of

_TELL = frozenset({"log.group_offsets", "log.commit_group", "tables.commit"})


@dataclass(frozen=True)
class Scenario:
    """`begin` makes the world; `actors`: what is under way in it, by name."""

    name: str
    begin: Callable[[], ProtocolMachine]
    actors: tuple[tuple[str, Callable[[ProtocolMachine], Any]], ...]


class Numbers:
    """A number for each thing that was met, the same in all schedules of a scenario."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def of(self, what: Hashable) -> int:
        return self._numbers.setdefault(what, len(self._numbers))


class Met(NamedTuple):
    """What a step touched of the world: the parts, and what was in them."""

    parts: tuple[int, ...]
    values: tuple[int, ...]


class Schedule:
    """`state`: where it stands; `way`: what was chosen up to there; `met`: by the last step."""

    def __init__(
        self, scenario: Scenario, machine: ProtocolMachine, bounds: Bounds, numbers: Numbers, touched: Touched
    ) -> None:
        self.machine, self._numbers, self._touched = machine, numbers, touched
        self.way: list[str] = []
        self.met = Met((), ())
        self._runs = [
            Run(name, Steps(_bound(act, machine), name), plans_again=True, carries=name.startswith("carried"))
            for name, act in scenario.actors
        ]
        machine.runs = list(self._runs)
        self._on_the_way = machine.on_the_way
        first, second = (Actor(numbers.of(run.what), run.steps.at) for run in self._runs)
        self.state = State(0, bounds, (first, second), self._world())

    def go(self, word: str) -> None:
        """One of the `ways` of its state. Raises `AssertionError` where a run ends as none may."""
        before = self.state
        run = self._runs[before.turn]
        self.way.append(f"{run.what} at {run.steps.at}: {word}")
        # Whether somebody has looked at the group, or sent what comes late, an accident may meet.
        tells = word in LANDINGS or word == LATE or run.steps.at in _TELL
        self._touched.parts = {AT_WORK} if tells else set()
        try:
            if word == SWITCH:
                self.state = before.switch()
            elif word in LANDINGS:
                effect = self._on_the_way.pop()
                for _ in range(LANDINGS[word]):
                    effect.land()
                self.state = before.landed(self._changed())
            else:
                sent = self._advance(run, None if word == GOES_ON else Fault(word))
                world = self._changed()
                # Who hears that a request failed cannot tell whether it is on its way.
                heard = FAIL if word == LATE else word
                saw = self._numbers.of((before.actors[before.turn].saw, heard, self.met))
                actor = ENDED if run.steps.done else Actor(saw, run.steps.at)
                self.state = before.advanced(word, actor, world, sent=sent)
        finally:
            self._touched.parts = None

    def _advance(self, run: Run, fault: Fault | None) -> bool:
        """Whether a request of it is on its way."""
        run.steps.advance(fault)
        while not run.steps.done and run.steps.at in SEEN_BY_NOBODY:
            run.steps.advance()
        late, run.steps.late = run.steps.late, []
        self._on_the_way += late
        if run.steps.done:
            self.machine.settle_run(run)
        return bool(late)

    def _changed(self) -> World:
        """The world after a step, and what the step met."""
        parts = tuple(sorted(self._touched.parts or ()))
        self._touched.parts = None
        before = self.state.world
        self.met = Met(parts, tuple([before[part] for part in parts]))
        world = list(before)
        for part in parts:
            world[part] = self._numbers.of(part_of(self.machine, part))
        return tuple(world)

    def _world(self) -> World:
        return tuple(map(self._numbers.of, world_of(self.machine)))

    def untouched_is_unchanged(self) -> None:
        """Raises `RuntimeError` where a part of the world has changed that no step has touched."""
        changed = [name for name, was, now in zip(PARTS, self.state.world, self._world(), strict=True) if was != now]
        if changed:
            raise RuntimeError(f"{changed} of the world have changed, and nobody has touched them: {self.way}")

    def check(self) -> None:
        """As the state machine does it after every step, and at its end."""
        self.machine.all_guarantees_hold()
        self.machine.teardown()

    def stop(self) -> None:
        for run in self._runs:
            if not run.steps.done:
                run.steps.kill()


def _bound(act: Callable[[ProtocolMachine], Any], machine: ProtocolMachine) -> Callable[[], Any]:
    return lambda: act(machine)
