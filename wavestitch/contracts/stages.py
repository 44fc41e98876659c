"""What an operation does, as a tuple of typed stages that stands before anything is done.

A batch, a rewind, a decision about what is held and a maintenance are such tuples. Preview, run, documentation and undo
walk the same one: what is shown is what is done, and a stage has the effects that it names and no others (a test keeps
account of them). A stage says nothing of how it is carried out. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.ports import Remains
from wavestitch.contracts.position import GroupOffset, Head

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
    """The opposite of a change of positions: these next offsets, by partition."""

    offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class DecideOn:
    """The opposite of a decision about what is held."""

    action: HeldAction
    ids: tuple[str, ...]


Opposite = RewindTo | DecideOn


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
            case RewindTo(offsets):
                to = _some([f"{p}:{o}" for p, o in sorted(offsets.items())])
                return Undo(Undoing.OPPOSITE, f"a rewind to {to} (`wavestitch undo`)")
            case DecideOn(action, ids):
                return Undo(Undoing.OPPOSITE, f"`held {action}` of {len(ids)} waveforms (`wavestitch undo`)")
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


_FOLLOWS = Undo(Undoing.NOT_NEEDED, "it follows the newest head, and is made again by whoever comes next")
_COUNTS_FOR_NOTHING = Undo(Undoing.NOT_NEEDED, "counts for nothing until a head names it, and goes with maintenance")


@dataclass(frozen=True, slots=True)
class RecordHistory(Stage):
    name = "record history"
    does = "writes the history rows that heads have not yet: of a first head, of a rewind, of what a crash prevented"
    effects = frozenset({Effect.HISTORY})
    undo = _FOLLOWS
    rows: tuple[BatchRow, ...]

    def shows(self) -> str:
        return f"writes the history rows of heads {_some([str(r.sequence) for r in self.rows])}"


@dataclass(frozen=True, slots=True)
class CommitHead(Stage):
    """A head of its own, which publishes nothing. `base` None: the first, or with `remains` one in place of a head that
    was expired. Positions of another topic are no place to go back to."""

    name = "commit head"
    does = "commits a head with these positions, which every run under way is fenced by; nothing published is touched"
    effects = frozenset({Effect.HEAD})
    undo = Undo(Undoing.OPPOSITE, "`rewind` to where the head before stood (forward, it names what it skips)")
    base: Head | None
    head: Head
    remains: Remains | None = None

    def shows(self) -> str:
        before = "none" if self.base is None else str(self.base.generation)
        return (
            f"commits a head of kind {self.head.kind}, generation {before} -> {self.head.generation}: {self._moves()}"
        )

    def opposite(self) -> Opposite | None:
        if self.base is None or self.base.topic_id != self.head.topic_id:
            return None
        to = self.head.positions
        back = {
            p: at.next_offset
            for p, at in self.base.positions.items()
            if p not in to or to[p].next_offset != at.next_offset
        }
        return RewindTo(back) if back else None

    def _moves(self) -> str:
        was = {} if self.base is None else self.base.positions
        moves = [
            f"{p}:{was[p].next_offset} -> {at.next_offset}" if p in was else f"{p}:{at.next_offset}"
            for p, at in sorted(self.head.positions.items())
            if p not in was or was[p].next_offset != at.next_offset
        ]
        return _some(moves) or "no position moves"


@dataclass(frozen=True, slots=True)
class ShowHead(Stage):
    """`head`: as it is known beforehand. `seen`: what the group showed when it was worked out. `moved`: partitions that
    it is an answer to, None: all; what somebody has reset since is left alone."""

    name = "show head"
    does = "writes the head's positions into the consumer group, tagged, for Kafka's own tools"
    effects = frozenset({Effect.GROUP})
    undo = _FOLLOWS
    head: Head
    seen: Mapping[int, GroupOffset | None]
    moved: Collection[int] | None = None


@dataclass(frozen=True, slots=True)
class OfPlan(Stage):
    """A stage of a batch: all that it is about stands in the plan."""

    plan: Plan


class KeepPlan(OfPlan):
    name = "keep plan"
    does = "keeps the plan, the exact inputs of the batch, in a folder of its own"
    effects = frozenset({Effect.FOLDER})
    undo = Undo(Undoing.NOT_NEEDED, "`abandon` gives a plan up; its folder goes with maintenance")

    def shows(self) -> str:
        return f"keeps plan {self.plan.plan_id[:16]} in a folder of its own"


class ReadUnits(OfPlan):
    name = "read"
    does = "reads the planned offsets, each exactly once, into the landing"
    effects = frozenset({Effect.FOLDER})
    undo = _COUNTS_FOR_NOTHING

    def shows(self) -> str:
        ranges = _some([str(r) for r in self.plan.ranges]) or "nothing"
        return f"reads {ranges} in {len(self.plan.units)} units, about {self.plan.estimated_bytes} bytes"


class Reassemble(OfPlan):
    name = "reassemble"
    does = "decides which waveforms are whole, and stitches those into files that count for nothing yet"
    effects = frozenset({Effect.FOLDER, Effect.STAGED})
    undo = _COUNTS_FOR_NOTHING

    def shows(self) -> str:
        choice = self.plan.choice
        return self.does if choice is None else f"takes up {len(choice.ids)} held waveforms and {self.does}"


class Validate(OfPlan):
    name = "validate"
    does = "asks the gate about every waveform that is whole; where it closes nothing is published"
    effects = frozenset({Effect.FOLDER, Effect.DOCS})
    undo = _COUNTS_FOR_NOTHING

    def shows(self) -> str:
        return f"{self.does} ({len(self.plan.stream.expectations)} expectations)"


class Publish(OfPlan):
    name = "publish"
    does = "decides on the newest head what is published, held or known, and commits that in one snapshot"
    effects = frozenset(
        {Effect.STAGED, Effect.FOLDER, Effect.HELD_STAGED, Effect.HEAD, Effect.HISTORY, Effect.HELD_MAIN}
    )
    undo = Undo(
        Undoing.OPPOSITE,
        "`rewind` to where the batch began; `held restore` of what was discarded, `held discard` of what was restored. "
        "What was published stays published, and is recognised when it is read again",
    )

    def shows(self) -> str:
        if self.plan.choice is not None:
            return f"{self.does}: {self.plan.choice.action} of {len(self.plan.choice.ids)} waveforms; positions stay"
        if not self.plan.moves_positions:
            return f"{self.does}; positions and what is held stay as they are"
        ends = [f"{r.partition}:{r.end}" for r in self.plan.ranges]
        return f"{self.does}; positions move to {_some(ends)}" if ends else f"{self.does}; no position moves"

    def opposite(self) -> Opposite | None:
        choice = self.plan.choice
        if choice is not None:
            found = _OPPOSITE.get(choice.action)
            return None if found is None else DecideOn(found, choice.ids)
        back = {r.partition: r.start for r in self.plan.ranges} if self.plan.moves_positions else {}
        return RewindTo(back) if back else None

    @property
    def irrevocable(self) -> Undo:
        return Undo(Undoing.NEVER, "positions stay, and what was published stays published")


class CommitOffsets(OfPlan):
    name = "commit offsets"
    does = "writes the newest head's positions into the consumer group, then lets the batch's landed payload go"
    effects = frozenset({Effect.GROUP, Effect.PAYLOAD_GONE})
    undo = _FOLLOWS


_OPPOSITE = {HeldAction.DISCARD: HeldAction.RESTORE, HeldAction.RESTORE: HeldAction.DISCARD}

PLANNING: tuple[type[Stage], ...] = (RecordHistory, CommitHead, ShowHead, KeepPlan)
"""What planning may find to do before a batch begins; a preview names what it found."""
REWIND: tuple[type[Stage], ...] = (CommitHead, ShowHead)
BATCH: tuple[type[OfPlan], ...] = (ReadUnits, Reassemble, Validate, Publish, CommitOffsets)
HELD: tuple[type[OfPlan], ...] = (Reassemble, Validate, Publish)
FINISHING: tuple[type[OfPlan], ...] = (CommitOffsets,)
"""What is left to do for a plan that was committed before."""


def kinds_of(kind: PlanKind) -> tuple[type[OfPlan], ...]:
    """What is done with a plan of this kind once it is kept."""
    return HELD if kind is PlanKind.HELD else BATCH


def stages_of(plan: Plan) -> tuple[OfPlan, ...]:
    """The same, with what the plan says."""
    return tuple(stage(plan) for stage in kinds_of(plan.kind))


def _some(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
