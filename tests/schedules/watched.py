"""All that two actors can meet in a world, in parts, and which of them a step of either has touched.

What lies under a name that follows from its content (landings, receipts, reports, verdicts) is no part: nobody meets
what another one left there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.domain.protocol_machine import ProtocolMachine
from tests.fakes.batch import Bench
from tests.fakes.fake_log import FakeLog
from tests.fakes.fake_rows import FakeFiles
from tests.fakes.fake_tables import FakeTables

_ATTRIBUTES: dict[str, dict[type, tuple[str, ...]]] = {
    "group": {FakeLog: ("group",)},
    "heads": {
        FakeTables: ("snapshots", "expired", "headless", "left", "_snapshot_ids"),
        ProtocolMachine: ("ever", "named"),
    },
    "rows": {FakeTables: ("rows", "replaced")},
    "held": {FakeTables: ("held_snapshots", "held_of", "branches", "held_main", "taken_out", "_held_ids")},
    "history": {FakeTables: ("history",)},
    "plans": {Bench: ("plans",)},
    "gates": {Bench: ("gates", "at_gates", "abandoned")},
    "parts": {Bench: ("parts", "indexes", "stops")},
    "previews": {Bench: ("previews", "decisions", "rejections")},
    "kept": {FakeFiles: ("kept",)},
    "staged": {FakeFiles: ("staged",)},
    "wrong": {ProtocolMachine: ("wrong", "resets")},
    "at work": {ProtocolMachine: ("runs", "on_the_way")},
}
PARTS = tuple(_ATTRIBUTES)
AT_WORK = PARTS.index("at work")
"""Who is at work and has looked at the group, and what is on the way: an accident may meet that."""


class Touched:
    """Which parts were looked at or written since it was cleared; None: nobody is watched."""

    def __init__(self) -> None:
        self.parts: set[int] | None = None


class _Watched:
    """In place of an attribute: its value lies where it lay."""

    def __init__(self, name: str, part: int, touched: Touched) -> None:
        self._name, self._part, self._touched = name, part, touched

    def __get__(self, one: Any, _kind: type | None = None) -> Any:
        if one is None:
            return self
        if self._touched.parts is not None:
            self._touched.parts.add(self._part)
        return vars(one)[self._name]

    def __set__(self, one: Any, value: Any) -> None:
        if self._touched.parts is not None:
            self._touched.parts.add(self._part)
        vars(one)[self._name] = value


@contextmanager
def watched() -> Iterator[Touched]:
    """Of all worlds, as long as it lasts."""
    touched = Touched()
    names = [
        (kind, name, number)
        for number, part in enumerate(PARTS)
        for kind, several in _ATTRIBUTES[part].items()
        for name in several
    ]
    for kind, name, part in names:
        setattr(kind, name, _Watched(name, part, touched))
    try:
        yield touched
    finally:
        for kind, name, _ in names:
            delattr(kind, name)


def part_of(machine: ProtocolMachine, part: int) -> bytes:
    """A digest of what is in it."""
    return hashlib.blake2b(repr(_SAID[part](machine)).encode(), digest_size=12).digest()


def world_of(machine: ProtocolMachine) -> tuple[bytes, ...]:
    return tuple(part_of(machine, part) for part in range(len(PARTS)))


def _heads(machine: ProtocolMachine) -> object:
    tables = machine.bench.tables
    heads = [(h.sequence, h.generation, h.kind.value, h.plan_id, h.decision, h.held) for h in tables.snapshots]
    positions = [sorted(h.positions.items()) for h in tables.snapshots]
    return heads, positions, tables.expired, tables.headless, len(machine.ever), machine.named


def _held(machine: ProtocolMachine) -> object:
    tables = machine.bench.tables
    return sorted(tables.held_of.items()), sorted(tables.branches.items(), key=repr), tables.held_main


def _gates(machine: ProtocolMachine) -> object:
    bench = machine.bench
    # A report's name ends with where it lies in memory.
    closed = {i: [((r or "").rpartition("-")[0], v) for r, v in times] for i, times in bench.at_gates.items()}
    return sorted(bench.gates), sorted(closed.items()), sorted(bench.abandoned)


def _parts(machine: ProtocolMachine) -> object:
    bench = machine.bench
    return [(i, len(parts)) for i, parts in sorted(bench.parts.items())], sorted(bench.indexes), len(bench.stops)


def _previews(machine: ProtocolMachine) -> object:
    bench = machine.bench
    return sorted(bench.previews), sorted(bench.decisions), sorted(bench.rejections)


def _at_work(machine: ProtocolMachine) -> object:
    looked = [(run.what, machine.has_looked_at_the_group(run)) for run in machine.runs]
    return looked, [effect.name for effect in machine.on_the_way]


_SAY: dict[str, Callable[[ProtocolMachine], object]] = {
    "group": lambda machine: sorted(machine.bench.log.group.items()),
    "heads": _heads,
    "rows": lambda machine: [(s, row.waveform_id) for s, row in machine.bench.tables.rows],
    "held": _held,
    "history": lambda machine: [(b.sequence, b.decision) for b in machine.bench.tables.history],
    "plans": lambda machine: sorted(machine.bench.plans),
    "gates": _gates,
    "parts": _parts,
    "previews": _previews,
    "kept": lambda machine: sorted(machine.bench.files.kept),
    "staged": lambda machine: sorted(machine.bench.files.staged),
    "wrong": lambda machine: (machine.wrong, sorted(machine.resets.items())),
    "at work": _at_work,
}
_SAID = [_SAY[part] for part in PARTS]
