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
from wavestitch.contracts.held_mark import HeldMark, mark_from_text
from wavestitch.contracts.offset_range import OffsetRange

HEAD_FORMAT = 1
_PREFIX = "wavestitch."
_TAG_WORD = "wavestitch/"
_TAG_FORMAT = 2
# No other digits than these: a number that only looks like one must not become a generation.
_TAG = re.compile(rf"{_TAG_WORD}{_TAG_FORMAT} ([0-9a-f-]{{1,64}}) g([0-9]{{1,18}}) s([0-9]{{1,18}})")


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
    MAINTENANCE = "maintenance"


class Position(NamedTuple):
    """The next offset to read of one partition.

    `seen_ms`: record time of the last record before it, None where none was read. `leader_epoch`: as the log said
    when the position was planned, None where unknown.
    """

    next_offset: int
    seen_ms: int | None = None
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """What the newest snapshot with our keys says. `sequence` counts our heads, `snapshot_id` is Iceberg's.

    `watermark_ms`: how far the stream's data have come (record time, ms); never lowered within a generation chain.
    `skipped`: ranges an operator gave up by name. `decision`: digest of the decision that this head committed.
    `mean_record_bytes`: of the last batch that read something, for sizing the next; None before the first.
    `held`: what is held, as the held table's snapshot that counts; None while nothing ever was.
    """

    sequence: int
    generation: int
    kind: HeadKind
    topic_id: str
    positions: Mapping[int, Position]
    plan_id: str = ""
    decision: str = ""
    watermark_ms: int = 0
    skipped: tuple[OffsetRange, ...] = ()
    mean_record_bytes: float | None = None
    note: str = ""
    held: HeldMark | None = None
    snapshot_id: int | None = field(default=None, compare=False)

    def next(self, **changes: Any) -> Head:
        """The head that follows this one; generation, positions and the rest stay unless given."""
        fresh: dict[str, Any] = {
            "sequence": self.sequence + 1,
            "plan_id": "",
            "decision": "",
            "note": "",
            "snapshot_id": None,
        }
        return replace(self, **{**fresh, **changes})

    @property
    def version(self) -> tuple[int, int]:
        return self.generation, self.sequence

    def tag(self, table: str) -> Tag:
        """Its tag in the group; `table`: the UUID of the table that has it."""
        return Tag(table, self.generation, self.sequence)

    def to_properties(self) -> dict[str, str]:
        """Snapshot summary properties; text only."""
        return {
            _PREFIX + "format": str(HEAD_FORMAT),
            _PREFIX + "sequence": str(self.sequence),
            _PREFIX + "generation": str(self.generation),
            _PREFIX + "kind": self.kind.value,
            _PREFIX + "topic-id": self.topic_id,
            _PREFIX + "plan-id": self.plan_id,
            _PREFIX + "decision": self.decision,
            _PREFIX + "watermark-ms": str(self.watermark_ms),
            _PREFIX + "note": self.note,
            _PREFIX + "mean-record-bytes": "" if self.mean_record_bytes is None else repr(self.mean_record_bytes),
            _PREFIX + "positions": json.dumps({str(p): list(v) for p, v in sorted(self.positions.items())}),
            _PREFIX + "skipped": json.dumps([list(r) for r in self.skipped]),
            _PREFIX + "held": "" if self.held is None else self.held.to_text(),
        }


def head_from_properties(properties: Mapping[str, str], snapshot_id: int | None) -> Head | None:
    """The head in a snapshot's summary; None where it carries none of our keys (a maintenance snapshot)."""
    found = properties.get(_PREFIX + "format")
    if found is None:
        return None
    if found != str(HEAD_FORMAT):
        raise BadInput(
            f"snapshot {snapshot_id} carries head format {found}; this version reads {HEAD_FORMAT}: "
            "use the version of wavestitch that wrote it, or a newer one"
        )
    mean = properties[_PREFIX + "mean-record-bytes"]
    return Head(
        sequence=int(properties[_PREFIX + "sequence"]),
        generation=int(properties[_PREFIX + "generation"]),
        kind=HeadKind(properties[_PREFIX + "kind"]),
        topic_id=properties[_PREFIX + "topic-id"],
        positions={int(p): Position(*v) for p, v in json.loads(properties[_PREFIX + "positions"]).items()},
        plan_id=properties[_PREFIX + "plan-id"],
        decision=properties[_PREFIX + "decision"],
        watermark_ms=int(properties[_PREFIX + "watermark-ms"]),
        skipped=tuple(OffsetRange(*r) for r in json.loads(properties[_PREFIX + "skipped"])),
        mean_record_bytes=float(mean) if mean else None,
        note=properties[_PREFIX + "note"],
        held=mark_from_text(properties.get(_PREFIX + "held", "")),
        snapshot_id=snapshot_id,
    )


class Tag(NamedTuple):
    """What we write into a committed offset's metadata: which table's projection it is, and of which head."""

    table: str
    generation: int
    sequence: int

    def encode(self) -> str:
        """Short: a broker takes `offset.metadata.max.bytes` (4096 by default), and some allow less."""
        return f"{_TAG_WORD}{_TAG_FORMAT} {self.table} g{self.generation} s{self.sequence}"

    @property
    def version(self) -> tuple[int, int]:
        return self.generation, self.sequence


def parse_tag(metadata: str | None) -> Tag | None:
    """Our own tag; None for an empty or foreign one, and for one of another version (see `is_ours`)."""
    found = _TAG.fullmatch(metadata or "")
    return Tag(found[1], int(found[2]), int(found[3])) if found else None


def is_ours(metadata: str | None) -> bool:
    """Whether wavestitch wrote this, in whatever version: such an offset is never taken for somebody's reset."""
    return (metadata or "").startswith(_TAG_WORD)


class GroupOffset(NamedTuple):
    """A committed offset of the group; `metadata` as stored."""

    offset: int
    metadata: str


def advance_watermark(positions: Mapping[int, Position], *, previous_ms: int, clock_ms: int, idle_ms: int) -> int:
    """How far the stream's data have come (record time, ms): the least record time at the positions.

    Partitions without a record within `idle_ms` of the clock do not hold it back; where all are idle, it follows the
    clock at that distance. Capped by the clock (a record from the future must not expire others), never lowered.
    """
    seen = [p.seen_ms for p in positions.values() if p.seen_ms is not None]
    if not seen:
        return previous_ms
    active = [s for s in seen if s >= clock_ms - idle_ms]
    reached = min(active) if active else clock_ms - idle_ms
    return max(previous_ms, min(reached, clock_ms))
