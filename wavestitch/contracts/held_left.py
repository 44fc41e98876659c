"""What is left of the held table where no head says which of its snapshots counts, and which of them a new head names.

What main shows followed a head, so it was committed; so was what was staged for a decision that the history knows, and
what the newest head that is left anywhere names. Of these the newest counts. What is staged beside it and cannot be
proven never counts by itself: somebody may name it. Pure. Keeps I1.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from wavestitch.contracts.errors import Refused


class LeftSnapshot(NamedTuple):
    """A snapshot of the held table. `decision`, `generation`, `sequence`: of the decision and head that it was staged
    for; empty and 0 where somebody else's tool made it, or where it is the empty first one."""

    snapshot_id: int
    decision: str
    generation: int
    sequence: int
    rows: int

    @property
    def version(self) -> tuple[int, int]:
        return self.generation, self.sequence

    def __str__(self) -> str:
        whose = f"staged for head {self.sequence}" if self.decision else "made by another tool"
        return f"snapshot {self.snapshot_id} ({self.rows} rows, {whose})"


@dataclass(frozen=True, slots=True)
class HeldLeft:
    """`main`: its newest first, as far back as there are any. `beside`: what is staged on branches, and not on main.
    `all`: every snapshot that is there."""

    main: tuple[LeftSnapshot, ...] = ()
    beside: tuple[LeftSnapshot, ...] = ()
    all: tuple[LeftSnapshot, ...] = ()


class Choice(NamedTuple):
    """`taken`: what a new head is to name; None: nothing is held. `instead_of`: what it would name by itself, or what
    main had before somebody else's tool changed it; None where that is the one taken, or is not there any more.
    `unproven`: staged for a later head, of which nobody knows whether it was committed. `last_sequence`: of all."""

    taken: LeftSnapshot | None
    instead_of: LeftSnapshot | None
    unproven: tuple[LeftSnapshot, ...]
    last_sequence: int


def choose_held(
    left: HeldLeft, *, recorded: Collection[tuple[int, str]], named: int | None = None, wanted: int | None = None
) -> Choice:
    """`recorded`: sequence and decision of all that the history knows. `named`: the held snapshot of the newest head
    that is left. `wanted`: the snapshot that an operator names; raises `Refused` where it is not there."""
    known = max((s.version for s in left.main), default=(0, 0))
    proven = [s for s in left.beside if (s.sequence, s.decision) in recorded or s.snapshot_id == named]
    newest = max((s for s in proven if s.version > known), key=lambda s: s.version, default=None)
    taken = newest or (left.main[0] if left.main else None)
    # Somebody else's tool made what main shows: ours below it is what a head named last.
    ours = next((s for s in left.main if s.decision), None)
    before = ours if taken is not None and not taken.decision and ours is not taken else None
    reached = max(known, newest.version if newest is not None else known)
    unproven = tuple(s for s in left.beside if s.version > reached)
    if wanted is not None and (taken is None or wanted != taken.snapshot_id):
        by_itself, taken = before or taken, _named_by(left, wanted)
        before = None if by_itself == taken else by_itself
        unproven = tuple(s for s in unproven if s.version > taken.version)
    last = max((s.sequence for s in (*left.main, *left.beside, *left.all)), default=0)
    return Choice(taken, before, unproven, last)


def _named_by(left: HeldLeft, wanted: int) -> LeftSnapshot:
    found = next((s for s in left.all if s.snapshot_id == wanted), None)
    if found is None:
        there = ", ".join(str(s) for s in left.all) or "none"
        raise Refused(f"the held table has no snapshot {wanted}; it has {there}", snapshot=wanted)
    return found
