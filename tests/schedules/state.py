"""Where a schedule stands, and what may come next: pure.

At each call that others can see, the one whose turn it is goes on, or it is the other one's turn (at most `switches`
times), or the call meets a fault (at most `faults`), or fails and is on its way still (at most `late`), and lands
before a later call, once, twice or never. Who has ended makes way for the other.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.fakes.faults import Fault

START = "start"
SEEN_BY_NOBODY = frozenset({"log.topic", "log.ends", "log.epoch_ends", "log.offsets_at", "log.probe", "log.read"})
SEEN_BY_NOBODY |= {"log.raw", "log.members"}
"""Calls about what no actor here changes: a switch before one of them is a switch before the next."""
COMMITS = frozenset({"tables.commit", "tables.commit_rebuilt"})
HISTORY = frozenset({"tables.batches", "tables.recorded", "tables.append_batches"})
EFFECTS = frozenset(
    {
        *("tables.commit", "tables.commit_rebuilt", "tables.stage_held", "tables.settle_held", "tables.append_batches"),
        *("log.commit_group", "folder.begin", "folder.close_gate", "staging.keep", "staging.files_for"),
    }
)
GOES_ON, SWITCH, NEVER, LAND, LAND_TWICE = "goes on", "switch", "never", "land", "land twice"
LATE, FAIL, KILL = Fault.LATE.value, Fault.FAIL_BEFORE.value, Fault.KILL_BEFORE.value
LANDINGS = {NEVER: 0, LAND: 1, LAND_TWICE: 2}
"""How often a request that is on its way takes effect."""


class Bounds(NamedTuple):
    switches: int = 2
    faults: int = 1
    late: int = 1

    def covers(self, other: Bounds, *, switches: int = 0) -> bool:
        """Whether it is as much or more, after so many switches."""
        return self[0] - switches >= other[0] and self[1] >= other[1] and self[2] >= other[2]

    def after(self, word: str) -> Bounds:
        if word == SWITCH:
            return Bounds(self.switches - 1, self.faults, self.late)
        if word == LATE:
            return Bounds(self.switches, self.faults, self.late - 1)
        return self if word == GOES_ON or word in LANDINGS else Bounds(self.switches, self.faults - 1, self.late)


World = tuple[int, ...]


class Actor(NamedTuple):
    """`saw`: the number of all that it did and found so far. `at`: the call that it is before."""

    saw: int
    at: str


ENDED = Actor(-1, "")
"""How somebody ended changes nothing any more but what is in the world."""


class Waiting(NamedTuple):
    """A request that is on its way: whose, which, and what its sender had seen."""

    actor: int
    at: str
    saw: int


class State(NamedTuple):
    """`world`: of each part of it (`watched.PARTS`), the number of what is in it. `switched`: whether nothing came
    after the last switch."""

    turn: int
    left: Bounds
    actors: tuple[Actor, Actor]
    world: World
    waiting: tuple[Waiting, ...] = ()
    switched: bool = False

    @property
    def ways(self) -> tuple[str, ...]:
        """What may come next; nothing where both have ended, and no request is on its way."""
        at = self.actors[self.turn].at
        if not at:
            return (NEVER, LAND, LAND_TWICE) if self.waiting else ()
        if at == START:
            return (GOES_ON,)
        found = [GOES_ON]
        if self.left.switches and self.actors[1 - self.turn].at:
            found.append(SWITCH)
        if self.left.faults:
            found += _faults(at)
        if self.left.late and at in EFFECTS:
            found.append(LATE)
        if self.waiting and _meet(self.waiting[-1].at, at):
            found += [LAND, LAND_TWICE]
        return tuple(found)

    def switch(self) -> State:
        return State(1 - self.turn, self.left.after(SWITCH), self.actors, self.world, self.waiting, switched=True)

    def landed(self, world: World) -> State:
        return State(self.turn, self.left, self.actors, world, self.waiting[:-1])

    def advanced(self, word: str, actor: Actor, world: World, *, sent: bool) -> State:
        """The one whose turn it was is `actor` now. `sent`: whether its request is on its way still. Who has ended
        makes way for the other."""
        before, other = self.actors[self.turn], self.actors[1 - self.turn]
        waiting = (*self.waiting, Waiting(self.turn, before.at, before.saw)) if sent else self.waiting
        turn = self.turn if actor.at or not other.at else 1 - self.turn
        actors = (actor, other) if self.turn == 0 else (other, actor)
        return State(turn, self.left.after(word), actors, world, waiting)


def _meet(late: str, at: str) -> bool:
    """Whether it makes a difference if the request lands before this call or after it."""
    if late in HISTORY or late.startswith("log."):
        return at in HISTORY if late in HISTORY else at.startswith("log.")
    return at.startswith(("tables.", "folder.", "staging.")) and at not in HISTORY


def _faults(at: str) -> list[str]:
    """Dying before a call is dying after the one before it: nobody can tell them apart."""
    found = [Fault.KILL_BEFORE, Fault.FAIL_BEFORE]
    if at in EFFECTS:
        found.append(Fault.FAIL_AFTER)
    if at in COMMITS:
        found += [Fault.CONFLICT, Fault.RESENT]
    return [fault.value for fault in found]
