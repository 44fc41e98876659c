"""What an operation does, as a tuple of typed stages that stands before anything is done.

A batch, a rewind, a decision about what is held and a maintenance are such tuples. Preview, run, documentation and undo
walk the same one: what is shown is what is done, and a stage has the effects that it names and no others (a test keeps
account of them). A stage says nothing of how it is carried out. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.quantities import Offset, Partition

_SHOWN = 8


class Effect(StrEnum):
    """What a stage leaves that others can see. Caches of a host, which may be taken away at any time, are none."""

    HEAD = "a new head"
    GROUP = "the group's offsets"
    HELD_STAGED = "a snapshot of held beside main"
    HELD_MAIN = "main of held follows the head"
    HISTORY = "rows of the history"
    FOLDER = "files in the batch's folder"
    STAGED = "data files that no snapshot names"
    DOCS = "Data Docs"
    PAYLOAD_GONE = "landed payload goes"
    FOLDERS_GONE = "batches' folders go"
    DOCS_GONE = "Data Docs go"
    LEFTOVERS_GONE = "files of killed processes go"
    HELD_GONE = "held rows go"
    REPLACED = "data files are replaced by equal ones"
    SNAPSHOTS_GONE = "snapshots go"
    FILES_GONE = "files that nothing names go"
    SEEN = "a note of what nothing names"
    INDEX = "the host's index of ids"


class Undoing(StrEnum):
    OPPOSITE = "undone by"
    NOT_NEEDED = "needs no undoing"
    NEVER = "cannot be undone"


@dataclass(frozen=True, slots=True)
class Undo:
    """How a stage is undone, or why that is not needed, or what bounds what cannot be undone."""

    how: Undoing
    says: str

    def __str__(self) -> str:
        return f"{self.how}: {self.says}"


@dataclass(frozen=True, slots=True)
class RewindTo:
    """The opposite of a change of positions: these next offsets, by partition, of this topic and of no other."""

    offsets: Mapping[Partition, Offset]
    topic_id: str


@dataclass(frozen=True, slots=True)
class DecideOn:
    """The opposite of a decision about what is held: of these waveforms the rows that this plan's decision changed."""

    action: HeldAction
    ids: tuple[str, ...]
    plan_id: str


@dataclass(frozen=True, slots=True)
class TakeBack:
    """The opposite of the promotion that this plan made."""

    plan_id: str


Opposite = RewindTo | DecideOn | TakeBack


@dataclass(frozen=True, slots=True)
class Stage:
    """One thing that an operation does, after all that stands before it. `does` and `undo`: whatever the case; `shows`
    and `undone`: in this one. `opposite`: the operation that undoes it, where there is one in this case."""

    name: ClassVar[str]
    does: ClassVar[str]
    effects: ClassVar[frozenset[Effect]]
    undo: ClassVar[Undo]

    def shows(self) -> str:
        return self.does

    def opposite(self) -> Opposite | None:
        return None

    def undone(self) -> Undo:
        if self.undo.how is not Undoing.OPPOSITE:
            return self.undo
        match self.opposite():
            case RewindTo(offsets=offsets):
                to = some_of([f"{p}:{o}" for p, o in sorted(offsets.items())])
                return Undo(Undoing.OPPOSITE, f"a rewind to {to} (`wavestitch undo STREAM`)")
            case DecideOn(action=action, ids=ids):
                return Undo(Undoing.OPPOSITE, f"`held {action}` of {len(ids)} waveforms (`wavestitch undo STREAM`)")
            case TakeBack():
                return Undo(Undoing.OPPOSITE, "the rows of before, put back as they were (`wavestitch undo STREAM`)")
        return self.irrevocable

    @property
    def irrevocable(self) -> Undo:
        """Where what undoes it in other cases does not exist in this one."""
        return Undo(Undoing.NEVER, "nothing stood elsewhere before it")


@dataclass(frozen=True, slots=True)
class Told:
    """A stage, for people and scripts."""

    stage: str
    does: str
    undo: str


def explain(stages: Iterable[Stage]) -> tuple[Told, ...]:
    return tuple(Told(s.name, s.shows(), str(s.undone())) for s in stages)


def opposites(stages: Sequence[Stage]) -> tuple[Opposite, ...]:
    """What undoes an operation: the same list, walked backwards."""
    return tuple(found for s in reversed(stages) if (found := s.opposite()) is not None)


def some_of(texts: Sequence[str]) -> str:
    """A few of them, and how many more there are."""
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
