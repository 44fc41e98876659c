"""Where a stream stands: positions, the head, and the tag that makes a group offset recognisably ours.

The head is the one truth (docs/design.md). The consumer group's offsets are a projection of it, tagged so that a
reset by somebody else's tool can be told from our own write. Pure: reading and writing both is the edges' work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.held_mark import HELD_FORMAT, HeldMark
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan_id import is_plan_id
from wavestitch.contracts.quantities import (
    BEGINNING,
    EpochMs,
    Generation,
    LeaderEpoch,
    Milliseconds,
    Offset,
    Partition,
    before,
)
from wavestitch.contracts.versioned import Versioned, check_format

HEAD_FORMAT = 3
_PREFIX = "wavestitch."
_TAG_WORD = "wavestitch/"
_TAG_FORMAT = 2
# No other digits than these: a number that only looks like one must not become a generation.
_TAG = re.compile(rf"{_TAG_WORD}{_TAG_FORMAT} ([0-9a-f-]{{1,64}}) g([0-9]{{1,18}}) s([0-9]{{1,18}})")

_MOST = 10**18
"""Less than that a tag can say, a 64-bit column hold, and a head be."""
FURTHEST = 10**9


class HeadKind(StrEnum):
    """What wrote a head."""

    FIRST = "first"
    INGEST = "ingest"
    BACKFILL = "backfill"
    MANUAL = "manual"
    REWIND = "rewind"
    ADOPTED = "adopted"
    REBUILT = "rebuilt"
    HELD = "held"
    PROMOTE = "promote"
    MAINTENANCE = "maintenance"
    GATE = "gate"


class LastBatch(NamedTuple):
    """A record batch as it lies in the log: the leader epoch in which it was written, and a digest of all its bytes."""

    leader_epoch: LeaderEpoch
    digest: str


class Position(NamedTuple):
    """The next offset to read of one partition.

    `seen_ms`: record time of the last record before it, None where none was read. `leader_epoch`: as the log said
    when the position was planned, None where unknown. `last_batch`: the record batch that holds the offset
    before it, by which another log is known; None where it is not known, or there is none.
    """

    next_offset: Offset
    seen_ms: EpochMs | None = None
    leader_epoch: LeaderEpoch | None = None
    last_batch: LastBatch | None = None


def said_without_batches(positions: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Positions as JSON of a version that did not know their last batch, as this one says them: it is not known."""
    return {p: [*at, None] for p, at in positions.items()}


class AtGate(NamedTuple):
    """A batch that stands at a closed gate. `moves`: whether it moves positions; otherwise it is a decision about what
    is held."""

    plan_id: str
    moves: bool


@dataclass(frozen=True, slots=True)
class Head:
    """What the newest snapshot with our keys says. `sequence` counts our heads; `snapshot_id` is Iceberg's, and so is
    `committed_ms` (since the epoch, by the committer's clock).

    `watermark_ms`: how far the stream's data have come (record time, ms); lowered by `as_of` alone.
    `skipped`: ranges an operator gave up by name. `decision`: digest of the decision that this head committed.
    `mean_record_bytes`: of the last batch that read something, for sizing the next; None before the first.
    `held`: what is held, as the held table's snapshot that counts; None while nothing ever was. `at_gate`: the batches
    that nobody goes past until somebody has decided.
    """

    sequence: int
    generation: Generation
    kind: HeadKind
    topic_id: str
    positions: Mapping[Partition, Position]
    plan_id: str = ""
    decision: str = ""
    watermark_ms: EpochMs = BEGINNING
    skipped: tuple[OffsetRange, ...] = ()
    mean_record_bytes: float | None = None
    note: str = ""
    held: HeldMark | None = None
    at_gate: tuple[AtGate, ...] = ()
    snapshot_id: int | None = field(default=None, compare=False)
    committed_ms: EpochMs | None = field(default=None, compare=False)

    def next(self, **changes: Any) -> Head:
        """The head that follows this one; generation, positions and the rest stay unless given. Who stands at a gate
        goes on standing there, unless this is its own commit, or fences it."""
        fresh: dict[str, Any] = {
            "at_gate": self._still_at_gate(**changes),
            "sequence": self.sequence + 1,
            "plan_id": "",
            "decision": "",
            "note": "",
            "snapshot_id": None,
            "committed_ms": None,
        }
        return replace(self, **{**fresh, **changes})

    def as_of(self, clock_ms: EpochMs) -> Head:
        """As a batch that was planned at this time goes by it: a watermark that lies beyond the clock, and beyond all
        records that were read, was made by a clock that was ahead, and is lowered to what these say. A clock that is
        behind lowers it no further than to the newest record."""
        latest = max(clock_ms, *(at.seen_ms or BEGINNING for at in self.positions.values()), BEGINNING)
        return self if self.watermark_ms <= latest else replace(self, watermark_ms=latest)

    def _still_at_gate(
        self,
        *,
        plan_id: str = "",
        generation: Generation | None = None,
        positions: Mapping[Partition, Position] | None = None,
        **_: Any,
    ) -> tuple[AtGate, ...]:
        """By the very rule that fences plans (`check_fence`)."""
        if generation not in (None, self.generation):
            return ()
        stays = positions is None or _offsets(positions) == _offsets(self.positions)
        return tuple(b for b in self.at_gate if b.plan_id != plan_id and (stays or not b.moves))

    @property
    def version(self) -> tuple[Generation, int]:
        return self.generation, self.sequence

    def tag(self, table: str) -> Tag:
        """Its tag in the group; `table`: the UUID of the table that has it."""
        return Tag(table, self.generation, self.sequence)

    def to_properties(self) -> dict[str, str]:
        """Snapshot summary properties: texts as they are, everything else as JSON. Raises `BadInput` for a head that
        nobody could read back."""
        if (wrong := _impossible(self)) is not None:
            raise BadInput(f"a head that cannot be is not written: {wrong}; look at the stream's newest heads")
        content = {k: v for k, v in HEADS.content(self).items() if k not in _ICEBERGS}
        return {_PREFIX + k.replace("_", "-"): v if k in _TEXTS else json.dumps(v) for k, v in content.items()}


def _offsets(positions: Mapping[Partition, Position]) -> dict[Partition, Offset]:
    return {p: at.next_offset for p, at in positions.items()}


def _impossible(head: Head) -> str | None:
    if not (0 <= head.sequence < _MOST and 0 <= head.generation < _MOST):
        return f"it is number {head.sequence} of generation {head.generation}, below {_MOST} are allowed"
    if not all(is_plan_id(batch.plan_id) for batch in head.at_gate):
        return "a batch at a closed gate has no plan's id"
    before = next((p for p, at in head.positions.items() if at.next_offset < 0), None)
    return None if before is None else f"partition {before} stands before its beginning"


HEADS = Versioned(
    Head,
    "the head",
    "have the table's metadata put back as they were before that snapshot",
    format=HEAD_FORMAT,
    upgrades={
        1: lambda fields: {**fields, "at_gate": []},
        2: lambda fields: {**fields, "positions": said_without_batches(fields["positions"])},
    },
    wrong=_impossible,
)
_TEXTS = frozenset({"kind", "topic_id", "plan_id", "decision", "note"})
_ICEBERGS = frozenset({"snapshot_id", "committed_ms"})


def head_from_properties(
    properties: Mapping[str, str], snapshot_id: int | None, *, committed_ms: EpochMs | None = None
) -> Head | None:
    """The head in a snapshot's summary; None where it carries none of our keys (a maintenance snapshot).

    Raises `BadInput` where a key of ours is missing, unknown or not what we write.
    """
    ours = {k.removeprefix(_PREFIX).replace("-", "_"): v for k, v in properties.items() if k.startswith(_PREFIX)}
    if not ours:
        return None
    content = {k: v if k in _TEXTS else _plain(v) for k, v in ours.items() if k not in _ICEBERGS}
    about = {"snapshot_id": snapshot_id, "committed_ms": committed_ms}
    head = HEADS.of({**content, **about}, what=f"the head in snapshot {snapshot_id}")
    if head.held is not None:
        what = f"what the head in snapshot {snapshot_id} holds"
        check_format(head.held.format, known=HELD_FORMAT, what=what, way_out=HEADS.way_out)
    return head


def _plain(text: str) -> Any:
    """The value behind JSON; a text that is none stays one, and is refused as a value of another kind."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


class Tag(NamedTuple):
    """What we write into a committed offset's metadata: which table's projection it is, and of which head."""

    table: str
    generation: Generation
    sequence: int

    def encode(self) -> str:
        """Short: a broker takes `offset.metadata.max.bytes` (4096 by default), and some allow less."""
        return f"{_TAG_WORD}{_TAG_FORMAT} {self.table} g{self.generation} s{self.sequence}"

    @property
    def version(self) -> tuple[Generation, int]:
        return self.generation, self.sequence


def parse_tag(metadata: str | None) -> Tag | None:
    """Our own tag; None for an empty or foreign one, and for one of another version (see `is_ours`)."""
    found = _TAG.fullmatch(metadata or "")
    return Tag(found[1], Generation(int(found[2])), int(found[3])) if found else None


def is_believable(tag: Tag, head: Head | None, *, within: int = FURTHEST) -> bool:
    """Whether a head of the same table as `head` can have got there.

    Generations and sequences are counted one by one: what is further on than anybody counts was made up. It is never
    followed, so that no forged tag leads to numbers that a tag or a table cannot hold.
    """
    generation, sequence = (0, 0) if head is None else head.version
    return tag.generation - generation <= within and tag.sequence - sequence <= within


def is_ours(metadata: str | None) -> bool:
    """Whether wavestitch wrote this, in whatever version: such an offset is never taken for somebody's reset."""
    return (metadata or "").startswith(_TAG_WORD)


class GroupOffset(NamedTuple):
    """A committed offset of the group; `metadata` as stored. `leader_epoch`: of what lies before it, where it was
    committed with one."""

    offset: Offset
    metadata: str
    leader_epoch: LeaderEpoch | None = None


def advance_watermark(
    positions: Mapping[Partition, Position], *, previous_ms: EpochMs, clock_ms: EpochMs, idle: Milliseconds
) -> EpochMs:
    """How far the stream's data have come (record time, ms): the least record time at the positions.

    Partitions without a record within `idle` of the clock do not hold it back; where all are idle, it follows the
    clock at that distance. Capped by the clock (a record from the future must not expire others), never less than
    `previous_ms`, of the head `as_of` that clock.
    """
    seen = [p.seen_ms for p in positions.values() if p.seen_ms is not None]
    if not seen:
        return previous_ms
    asleep = before(clock_ms, idle)
    active = [s for s in seen if s >= asleep]
    reached = min(active) if active else asleep
    return max(previous_ms, min(reached, clock_ms))
