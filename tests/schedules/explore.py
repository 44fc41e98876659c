"""All schedules of two actors over the fake edges: the product's own code, stopped before each call others can see.

At each such call the one whose turn it is goes on, or it is the other one's turn (at most `switches` times), or the
call meets a fault (at most `faults`), or fails and is on its way still (at most `late`), and lands before a later call,
once, twice or never. Who has ended makes way for the other. A schedule that comes to a state that was seen before, with
as much left or more, ends there: what each actor that has not ended has seen and done, and all that the edges have, is
the state. Whose turn it is is part of it only as far as a switch costs one. Every world that is left is checked by the
state machine's guarantees, and repaired by undisturbed ingests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.domain.protocol_machine import ProtocolMachine
from tests.domain.running_machine import Run
from tests.fakes.faults import Fault, Steps
from tests.schedules.copied import copied
from tests.schedules.odometer import Odometer

SEEN_BY_NOBODY = frozenset(
    {"start", "log.topic", "log.ends", "log.epoch_ends", "log.offsets_at", "log.probe", "log.read"}
)
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


@dataclass(frozen=True)
class Bounds:
    switches: int = 2
    faults: int = 1
    late: int = 1

    def covers(self, other: Bounds, *, switches: int = 0) -> bool:
        """Whether it is as much or more, after so many switches."""
        left = self.switches - switches, self.faults, self.late
        return all(a >= b for a, b in zip(left, (other.switches, other.faults, other.late), strict=True))


@dataclass(frozen=True)
class Scenario:
    """`begin` makes the world; `actors`: what is under way in it, by name."""

    name: str
    begin: Callable[[], ProtocolMachine]
    actors: tuple[tuple[str, Callable[[ProtocolMachine], Any]], ...]


@dataclass
class Found:
    """`schedules`: played to their end, or to a state that was seen. `states`: of actors and edges. `worlds`: that were
    left by schedules, each checked and repaired. `violation`: the first, with the `way` to it."""

    schedules: int = 0
    states: int = 0
    worlds: int = 0
    violation: str = ""
    way: list[str] = field(default_factory=list)


States = dict[bytes, list[tuple[int, Bounds]]]
"""By state, whose turn it was when it was seen, and what was left then."""


class Pruned(Exception):
    """This state was seen before."""


def explore(scenario: Scenario, bounds: Bounds, *, most: int = 1_000_000_000) -> Found:
    """Every schedule within the bounds; ends with the first that breaks a guarantee, or after `most`."""
    found, odometer = Found(), Odometer()
    states: States = {}
    worlds: set[bytes] = set()
    begun = scenario.begin()
    while found.schedules < most and odometer.turn():
        found.schedules += 1
        schedule = Schedule(scenario, copied(begun), bounds, odometer, states)
        try:
            schedule.play()
            world = schedule.world()
            if world not in worlds:
                worlds.add(world)
                schedule.check()
        except Pruned:
            pass
        except AssertionError as broken:
            found.violation, found.way = str(broken), schedule.way
            break
        finally:
            schedule.stop()
    found.states, found.worlds = len(states), len(worlds)
    return found


class Schedule:
    """One of them, as the odometer's answers say."""

    def __init__(
        self, scenario: Scenario, machine: ProtocolMachine, bounds: Bounds, odometer: Odometer, states: States
    ) -> None:
        self.machine, self.odometer, self.states, self.left = machine, odometer, states, bounds
        self.way: list[str] = []
        self.said: dict[tuple[int, ...], str] = {}
        """By the snapshots' numbers, what they are: most calls find the same ones."""
        self.saw = [b"", b""]
        """Of each actor, all that it did and found so far, as a digest."""
        self.runs = []
        for name, act in scenario.actors:
            call = _bound(act, self.machine)
            self.runs.append(Run(name, Steps(call, name), plans_again=True, carries=name.startswith("carried")))
        self.machine.runs = list(self.runs)
        self.turn = 0
        self.switched = False
        """Whether that was the last that was chosen: the state is the one that the other one was in."""

    def play(self) -> None:
        while any(not run.steps.done for run in self.runs) or self._may_land():
            if self.runs[self.turn].steps.done:
                self.turn = 1 - self.turn
            if all(run.steps.done for run in self.runs):
                if not self._choose(["never", "land", "land twice"][: 1 + 2 * self._may_land()]):
                    return
                continue
            self._until_it_is_seen(self.runs[self.turn])
            if not self.runs[self.turn].steps.done:
                self._one(self.runs[self.turn])

    def _until_it_is_seen(self, run: Run) -> None:
        while not run.steps.done and run.steps.at in SEEN_BY_NOBODY:
            run.steps.advance()
        self._ended(run)

    def _one(self, run: Run) -> None:
        """One call that others can see, and what befalls it."""
        self._prune()
        other = self.runs[1 - self.turn]
        at = run.steps.at
        ways = ["goes on"]
        if self.left.switches and not other.steps.done:
            ways.append("switch")
        if self.left.faults:
            ways += _faults(at)
        if self.left.late and at in EFFECTS:
            ways.append(Fault.LATE.value)
        if self._may_land() and _meet(self.machine.on_the_way[-1].name, at):
            ways += ["land", "land twice"]
        word = self._choose(ways)
        self.switched = word == "switch"
        if self.switched:
            self.left = Bounds(self.left.switches - 1, self.left.faults, self.left.late)
            self.turn = 1 - self.turn
        elif word == "goes on":
            self._advance(run, None)
        elif word in FAULTS:
            fault = Fault(word)
            late, faults = (1, 0) if fault is Fault.LATE else (0, 1)
            self.left = Bounds(self.left.switches, self.left.faults - faults, self.left.late - late)
            self._advance(run, fault)

    def _choose(self, ways: list[str]) -> str:
        word = self._pick(ways) if len(ways) > 1 else ways[0]
        run = self.runs[self.turn]
        self.way.append(f"{run.what} at {run.steps.at}: {word}")
        if word == "never":
            return ""
        if word.startswith("land"):
            effect = self.machine.on_the_way.pop()
            for _ in range(2 if word == "land twice" else 1):
                effect.land()
        return word

    def _pick(self, ways: list[str]) -> str:
        return ways[self.odometer.choose(len(ways))]

    def _may_land(self) -> bool:
        return bool(self.machine.on_the_way)

    def _advance(self, run: Run, fault: Fault | None) -> None:
        at = run.steps.at
        mine = self.runs.index(run)
        heard = f"{at} {fault} {self._part(at)}".encode()
        self.saw[mine] = hashlib.blake2b(self.saw[mine] + heard, digest_size=12).digest()
        run.steps.advance(fault)
        self.machine.on_the_way += run.steps.late
        run.steps.late = []
        self._ended(run)

    def _ended(self, run: Run) -> None:
        if run.steps.done and run in self.machine.runs:
            self.machine.settle_run(run)

    def _prune(self) -> None:
        """Only where the way is new: what was seen on it is its own beginning."""
        if not self.odometer.at_the_end:
            return
        waiting = [effect.name for effect in self.machine.on_the_way]
        # How somebody ended changes nothing any more but what is in the world.
        under_way = [
            ("", b"") if r.steps.done else (r.steps.at, saw) for r, saw in zip(self.runs, self.saw, strict=True)
        ]
        state = hashlib.blake2b(f"{waiting} {under_way}".encode() + self.world(), digest_size=12).digest()
        seen = self.states.setdefault(state, [])
        # Who came here by a switch is what the other one counts on: only who had the same turn stands for it.
        others = [(turn, left) for turn, left in seen if turn == self.turn or not self.switched]
        if any(left.covers(self.left, switches=int(turn != self.turn)) for turn, left in others):
            raise Pruned
        seen.append((self.turn, self.left))

    # the world, as it can be told from another

    def _part(self, at: str) -> str:
        """What this call can see, beside what is looked at without a call: plans, gates and kept rows."""
        bench = self.machine.bench
        kept = sorted(bench.plans), sorted(bench.gates), sorted(bench.abandoned), sorted(bench.files.kept)
        if at.startswith("log."):
            return f"{sorted(bench.log.group.items())} {kept}"
        if at in HISTORY:
            return f"{[(b.sequence, b.decision) for b in bench.tables.history]} {kept}"
        if at in ("tables.head", "tables.heads", "tables.table_uuid"):
            return f"{self._heads()} {kept}"
        return f"{self._tables()} {kept}"

    def _heads(self) -> str:
        tables = self.machine.bench.tables
        numbers = tuple(h.snapshot_id for h in tables.snapshots)
        if numbers not in self.said:
            heads = [(h.sequence, h.generation, h.kind.value, h.plan_id, h.decision, h.held) for h in tables.snapshots]
            self.said[numbers] = f"{heads} {[sorted(h.positions.items()) for h in tables.snapshots]}"
        return f"{self.said[numbers]} {tables.expired} {tables.headless}"

    def _tables(self) -> str:
        tables = self.machine.bench.tables
        rows = [(s, row.waveform_id) for s, row in tables.rows]
        held = sorted(tables.held_of.items()), sorted(tables.branches.items(), key=repr), tables.held_main
        return f"{self._heads()} {rows} {held}"

    def world(self) -> bytes:
        bench = self.machine.bench
        history = [(b.sequence, b.decision) for b in bench.tables.history]
        files = sorted(bench.plans), sorted(bench.gates), sorted(bench.abandoned), sorted(bench.files.kept)
        reports = sorted(name.rpartition("-")[0] for name in bench.reports)
        staged = sorted(bench.files.staged), sorted(bench.receipts), reports, sorted(bench.verdicts)
        said = f"{sorted(bench.log.group.items())} {self._tables()} {history} {files} {staged} {self.machine.wrong}"
        return hashlib.blake2b(said.encode(), digest_size=12).digest()

    def check(self) -> None:
        """As the state machine does it after every step, and at its end."""
        self.machine.all_guarantees_hold()
        self.machine.teardown()

    def stop(self) -> None:
        for run in self.runs:
            if not run.steps.done:
                run.steps.kill()


FAULTS = frozenset(fault.value for fault in Fault)


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


def _bound(act: Callable[[ProtocolMachine], Any], machine: ProtocolMachine) -> Callable[[], Any]:
    return lambda: act(machine)
