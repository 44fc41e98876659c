"""The stages of batches, rewinds and decisions about what is held, and the lists that these operations are.

What a stage says of itself comes from the plan, or from the heads before and after it: nothing is looked up. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.ports import Remains
from wavestitch.contracts.position import GroupOffset, Head
from wavestitch.contracts.promotion import Promotion
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stages import DecideOn, Effect, Opposite, RewindTo, Stage, TakeBack, Undo, Undoing, some_of

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
        return f"writes the history rows of heads {some_of([str(r.sequence) for r in self.rows])}"


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
        # A partition that the head before did not know yet stood at its beginning.
        stood = dict.fromkeys(to, Offset(0)) | {p: at.next_offset for p, at in self.base.positions.items()}
        back = {p: at for p, at in stood.items() if p not in to or to[p].next_offset != at}
        return RewindTo(back, self.base.topic_id) if back else None

    def _moves(self) -> str:
        was = {} if self.base is None else self.base.positions
        moves = [
            f"{p}:{was[p].next_offset} -> {at.next_offset}" if p in was else f"{p}:{at.next_offset}"
            for p, at in sorted(self.head.positions.items())
            if p not in was or was[p].next_offset != at.next_offset
        ]
        return some_of(moves) or "no position moves"


@dataclass(frozen=True, slots=True)
class ShowHead(Stage):
    """`head`: as it is known beforehand. `seen`: what the group showed when it was worked out. `moved`: partitions that
    it is an answer to, None: all; what somebody has reset since is left alone."""

    name = "show head"
    does = "writes the head's positions into the consumer group, tagged, for Kafka's own tools"
    effects = frozenset({Effect.GROUP})
    undo = _FOLLOWS
    head: Head
    seen: Mapping[Partition, GroupOffset | None]
    moved: Collection[Partition] | None = None


@dataclass(frozen=True, slots=True)
class OfPlan(Stage):
    """A stage of a batch: all that it is about stands in the plan."""

    plan: Plan


class KeepPlan(OfPlan):
    name = "keep plan"
    does = "keeps the plan, the exact inputs of the batch, in a folder of its own"
    effects = frozenset({Effect.FOLDER})
    undo = Undo(Undoing.NOT_NEEDED, "`abandon` gives a plan up; its folder goes with maintenance")


class ReadUnits(OfPlan):
    name = "read"
    does = "reads the planned offsets, each exactly once, into the landing"
    effects = frozenset({Effect.FOLDER})
    undo = _COUNTS_FOR_NOTHING

    def shows(self) -> str:
        ranges = some_of([str(r) for r in self.plan.ranges]) or "nothing"
        return f"reads {ranges} in {len(self.plan.units)} units, about {self.plan.estimated_bytes} bytes"


class Reassemble(OfPlan):
    name = "reassemble"
    does = "decides which waveforms are whole, and stitches those into files that count for nothing yet"
    effects = frozenset({Effect.FOLDER, Effect.STAGED})
    undo = _COUNTS_FOR_NOTHING

    def shows(self) -> str:
        choice = self.plan.held_choice
        return self.does if choice is None else f"takes up {len(choice.ids)} held waveforms and {self.does}"


class Validate(OfPlan):
    name = "validate"
    does = "asks the gate about every waveform that is whole; where it closes nothing is published"
    effects = frozenset({Effect.FOLDER, Effect.DOCS, Effect.HEAD})
    undo = Undo(
        Undoing.NOT_NEEDED,
        "where it closes, a head names the batch, past which no ingest goes: accept, park or `abandon` it. The rest "
        "counts for nothing, and goes with maintenance",
    )

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
        "`rewind` to where the batch began; `held restore` of what was discarded, `held discard` of what was restored, "
        "where that touches exactly what this decision changed; of a promotion the rows of before, put back. "
        "What else was published stays published, and is recognised when it is read again",
    )

    def shows(self) -> str:
        if (promotion := self.plan.promotion) is not None:
            return f"{self.does}: in the place of what is there, {promotion.says}; positions stay"
        if (choice := self.plan.held_choice) is not None:
            return f"{self.does}: {choice.action} of {len(choice.ids)} waveforms; positions stay"
        if not self.plan.moves_positions:
            return f"{self.does}; positions and what is held stay as they are"
        ends = [f"{r.partition}:{r.end}" for r in self.plan.ranges]
        return f"{self.does}; positions move to {some_of(ends)}" if ends else f"{self.does}; no position moves"

    def opposite(self) -> Opposite | None:
        if self.plan.promotion is not None:
            return TakeBack(self.plan.plan_id)
        choice = self.plan.held_choice
        if choice is not None:
            found = _OPPOSITE.get(choice.action)
            return None if found is None else DecideOn(found, choice.ids, self.plan.plan_id)
        back = {r.partition: r.start for r in self.plan.ranges} if self.plan.moves_positions else {}
        return RewindTo(back, self.plan.topic_id) if back else None

    @property
    def irrevocable(self) -> Undo:
        return Undo(Undoing.NEVER, "positions stay, and what was published stays published")


class CommitOffsets(OfPlan):
    name = "commit offsets"
    does = "lets the batch's landed payload go, then writes the newest head's positions into the consumer group"
    effects = frozenset({Effect.GROUP, Effect.PAYLOAD_GONE})
    undo = _FOLLOWS


@dataclass(frozen=True, slots=True)
class PutBack(Stage):
    """`snapshot_id`: of the published table, right before the promotion."""

    name = "put back"
    does = "puts the rows back that a promotion took out, in the place of those that it put in; positions stay"
    effects = frozenset({Effect.HEAD})
    undo = Undo(Undoing.NEVER, "the same range is compared and promoted again")
    base: Head
    head: Head
    snapshot_id: int
    promotion: Promotion

    def shows(self) -> str:
        back, gone = len(self.promotion.taken_out), len(self.promotion.put_in)
        return f"puts {back} rows back as they were, and takes {gone} out; positions stay"


_OPPOSITE = {HeldAction.DISCARD: HeldAction.RESTORE, HeldAction.RESTORE: HeldAction.DISCARD}

PLANNING: tuple[type[Stage], ...] = (RecordHistory, CommitHead, ShowHead, KeepPlan)
"""What planning may find to do before a batch begins; a preview names what it found."""
REWIND: tuple[type[Stage], ...] = (CommitHead, ShowHead)
BATCH: tuple[type[OfPlan], ...] = (ReadUnits, Reassemble, Validate, Publish, CommitOffsets)
HELD: tuple[type[OfPlan], ...] = (Reassemble, Validate, Publish)
TAKE_BACK: tuple[type[Stage], ...] = (PutBack,)
FINISHING: tuple[type[OfPlan], ...] = (CommitOffsets,)
"""What is left to do for a plan that was committed before."""


def kinds_of(kind: PlanKind) -> tuple[type[OfPlan], ...]:
    """What is done with a plan of this kind once it is kept."""
    return HELD if kind is PlanKind.HELD else BATCH


def stages_of(plan: Plan) -> tuple[OfPlan, ...]:
    """The same, with what the plan says."""
    return tuple(stage(plan) for stage in kinds_of(plan.kind))
