"""All schedules of two actors over the fake edges: the product's own code, stopped before each call others can see.

What a step does follows from all that its actor has seen and done before, and from what the step meets: so the product
runs it once for each of these that come together, and it is remembered. A way that was gone in pieces is known without
running it again. Whenever the product is run along what is known, to come to what is new, each step has to lead where
it is remembered to lead.

A schedule that comes to a state that was seen before, with as much left or more, ends there. Whose turn it is is part
of the state only as far as a switch costs one. Every world that is left is checked by the state machine's guarantees,
and repaired by undisturbed ingests.
"""

from __future__ import annotations

import pickle
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import NamedTuple

from tests.schedules.copied import copied
from tests.schedules.schedule import Met, Numbers, Scenario, Schedule
from tests.schedules.state import KILL, LANDINGS, SWITCH, Actor, Bounds, State, World
from tests.schedules.watched import Touched, watched, world_of


@dataclass
class Found:
    """`schedules`: gone to their end, or to a state that was seen; `played`: of these, from the beginning by the
    product's code. `states`: of actors and edges. `left`: the worlds that schedules left, each checked and repaired.
    `violation`: the first, with the `way` to it."""

    schedules: int = 0
    played: int = 0
    states: int = 0
    left: set[tuple[bytes, ...]] = field(default_factory=set)
    violation: str = ""
    way: list[str] = field(default_factory=list)

    @property
    def worlds(self) -> int:
        return len(self.left)


Who = tuple[object, ...]
"""What is done, and what the one who does it has seen before: or which request lands, and how often."""


class Step(NamedTuple):
    """Where a step led: what the actor has seen since, the call that it is before, what it left in the parts of the
    world that it met, and whether its request is on its way."""

    actor: Actor
    left: tuple[int, ...]
    sent: bool


class Remembered:
    """Every step that was played, by who did what and what it met."""

    def __init__(self) -> None:
        self._steps: dict[Who, dict[tuple[int, ...], dict[tuple[int, ...], Step]]] = defaultdict(dict)

    def after(self, state: State, word: str) -> State | None:
        """None where that is not known yet."""
        if word == SWITCH:
            return state.switch()
        for parts, known in self._steps[_who(state, word)].items():
            step = known.get(tuple([state.world[part] for part in parts]))
            if step is not None:
                world = list(state.world)
                for part, left in zip(parts, step.left, strict=True):
                    world[part] = left
                if word in LANDINGS:
                    return state.landed(tuple(world))
                return state.advanced(word, step.actor, tuple(world), sent=step.sent)
        return None

    def note(self, before: State, word: str, met: Met, after: State) -> None:
        """Raises `RuntimeError` where it is remembered otherwise: then what a step does follows from more than is
        known of it."""
        known = self.after(before, word)
        if known is None:
            left = tuple(after.world[part] for part in met.parts)
            step = Step(after.actors[before.turn], left, len(after.waiting) > len(before.waiting))
            self._steps[_who(before, word)].setdefault(met.parts, {})[met.values] = step
        elif known != after:
            raise RuntimeError(f"{word} leads to {after} from {before}, and led to {known}")


def _who(state: State, word: str) -> Who:
    if word in LANDINGS:
        return state.waiting[-1], word
    # Who dies does nothing any more, whatever it has seen.
    return ("", state.turn, word) if word == KILL else (state.actors[state.turn].saw, word)


class Seen:
    """By state, whose turn it was when it was seen, and what was left then."""

    def __init__(self) -> None:
        self._states: dict[tuple[object, ...], list[tuple[int, Bounds]]] = {}

    def __len__(self) -> int:
        return len(self._states)

    def is_new(self, state: State) -> bool:
        key = (state.actors[0].saw, state.actors[1].saw, *state.world, *state.waiting)
        seen = self._states.setdefault(key, [])
        for turn, left in seen:
            # Who came here by a switch is what the other one counts on: only who had the same turn stands for it.
            if (turn == state.turn or not state.switched) and left.covers(state.left, switches=int(turn != state.turn)):
                return False
        seen.append((state.turn, state.left))
        return True


class _Player:
    """Runs the product's code. `_words` lead to where `_playing` stands."""

    def __init__(self, scenario: Scenario, bounds: Bounds, touched: Touched, found: Found) -> None:
        self._scenario, self._bounds, self._touched, self._found = scenario, bounds, touched, found
        self._begun = scenario.begin()
        self._playing: Schedule | None = None
        self._words: list[str] = []

    @property
    def way(self) -> list[str]:
        return self._playing.way if self._playing is not None else []

    def play(self, words: Sequence[str], numbers: Numbers, remembered: Remembered) -> Schedule:
        """To where these words lead; from where it stands, if that is on the way."""
        if self._playing is None or list(words[: len(self._words)]) != self._words:
            self.stop()
            self._playing = Schedule(self._scenario, copied(self._begun), self._bounds, numbers, self._touched)
            self._found.played += 1
        playing = self._playing
        for word in words[len(self._words) :]:
            before = playing.state
            self._words.append(word)
            playing.go(word)
            remembered.note(before, word, playing.met, playing.state)
        playing.untouched_is_unchanged()
        return playing

    def stop(self) -> None:
        if self._playing is not None:
            self._playing.stop()
        self._playing, self._words = None, []


@dataclass
class _Way:
    """Where a schedule came to, and the ways that were not gone from there."""

    state: State
    left: list[str]


class _Explorer:
    """One of a scenario within bounds: goes deep first, and may be stopped, kept and gone on with."""

    def __init__(self) -> None:
        self.found = Found()
        self._numbers, self._remembered, self._seen = Numbers(), Remembered(), Seen()
        self._worlds: set[World] = set()
        self._is_begun = False
        self._under_way: list[_Way] = []
        self._words: list[str] = []

    def explore(self, player: _Player, *, most: float = inf, until: float = inf) -> bool:
        """Whether it was ended: all were gone, or `most`, or one breaks a guarantee."""
        try:
            if not self._is_begun:
                self._is_begun = True
                first = player.play([], self._numbers, self._remembered).state
                self._under_way = [_Way(first, list(first.ways))]
            while self._under_way and self.found.schedules < most:
                self._go_on(player)
                if time.monotonic() > until:
                    return False
        except AssertionError as broken:
            self.found.violation, self.found.way = str(broken), player.way
        finally:
            player.stop()
            self.found.states = len(self._seen)
        return True

    def _go_on(self, player: _Player) -> None:
        at = self._under_way[-1]
        del self._words[len(self._under_way) - 1 :]
        if not at.left:
            self._under_way.pop()
            return
        word = at.left.pop(0)
        self._words.append(word)
        after = self._remembered.after(at.state, word) or self._played(player).state
        if after.ways and self._seen.is_new(after):
            self._under_way.append(_Way(after, list(after.ways)))
            return
        self.found.schedules += 1
        if not after.ways and after.world not in self._worlds:
            self._worlds.add(after.world)
            schedule = self._played(player)
            self.found.left.add(world_of(schedule.machine))
            schedule.check()
            player.stop()

    def _played(self, player: _Player) -> Schedule:
        return player.play(self._words, self._numbers, self._remembered)


def explore(scenario: Scenario, bounds: Bounds, *, most: int = 1_000_000_000) -> Found:
    """Every schedule within the bounds; ends with the first that breaks a guarantee, or after `most`."""
    begun = _Explorer()
    with watched() as touched:
        begun.explore(_Player(scenario, bounds, touched, begun.found), most=most)
    return begun.found


def explore_in_pieces(scenario: Scenario, bounds: Bounds, *, kept: Path, until: float) -> Found | None:
    """None where it was `until` (`time.monotonic`) before all were gone: the next call goes on with what is `kept`,
    which has to be of the same code."""
    # Nobody but this has written there.
    begun: _Explorer = pickle.loads(kept.read_bytes()) if kept.exists() else _Explorer()
    with watched() as touched:
        is_ended = begun.explore(_Player(scenario, bounds, touched, begun.found), until=until)
    if is_ended:
        kept.unlink(missing_ok=True)
        return begun.found
    kept.parent.mkdir(parents=True, exist_ok=True)
    scratch = kept.with_suffix(".new")
    scratch.write_bytes(pickle.dumps(begun))
    scratch.replace(kept)
    return None
