"""A plan: the exact inputs of one batch, fixed before anything is read. Its id is the digest of all of it.

A plan is JSON in a write-once file; later steps are handed it and never look at YAML, clock or head for its inputs.
Carried through twice, or half and then again, it leaves the same table (I6).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from wavestitch.contracts.batch_size import unit_budget
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.held_choice import HeldAction, HeldChoice
from wavestitch.contracts.offset_range import OffsetRange, Unit
from wavestitch.contracts.position import Position
from wavestitch.contracts.stream import Stream

PLAN_FORMAT = 1


class PlanKind(StrEnum):
    """`ingest` starts at the head's positions and moves them; backfills leave positions and held alone. `held` reads
    nothing: it carries an operator's choice out on what is held."""

    INGEST = "ingest"
    BACKFILL = "backfill"
    MANUAL = "manual"
    HELD = "held"


class Scope(NamedTuple):
    """The waveforms that a backfill owns: start time (header, ns UTC) in `[start_ns, end_ns)`."""

    start_ns: int
    end_ns: int

    def owns(self, start_time_ns: int) -> bool:
        return self.start_ns <= start_time_ns < self.end_ns


@dataclass(frozen=True, slots=True)
class Plan:
    """What one batch reads and on what it stands.

    `ranges`: one per partition with something to read. `units`: the same ranges, cut and packed. `positions`: all
    partitions of the topic, where the head stands; `ends`: where an ingest leaves them (next offset and epoch; the
    record time is known after reading). `base_sequence`, `base_snapshot`: the pinned head. `why`: per partition, why
    it starts there. `clock_ms`: the plan's only clock, ms since the epoch. `left`: offsets that an ingest's limits make
    it leave for the batches after it. `choice`: of a `held` one, what the operator decided.
    """

    plan_id: str
    kind: PlanKind
    stream: Stream
    topic_id: str
    partitions: int
    ranges: tuple[OffsetRange, ...]
    units: tuple[Unit, ...]
    positions: dict[int, Position]
    ends: dict[int, Position]
    generation: int
    base_sequence: int
    base_snapshot: int
    held_snapshot: int | None
    watermark_ms: int
    clock_ms: int
    scope: Scope | None
    why: dict[int, str]
    mean_record_bytes: float
    code_version: str
    nonce: str
    left: int = 0
    choice: HeldChoice | None = None

    @property
    def moves_positions(self) -> bool:
        return self.kind is PlanKind.INGEST

    @property
    def holds(self) -> bool:
        """Backfills leave what is held as it is."""
        return self.kind in (PlanKind.INGEST, PlanKind.HELD)

    @property
    def expires(self) -> bool:
        """Whether it takes up every waveform that waits, read or not."""
        return self.kind is PlanKind.INGEST

    @property
    def accepts(self) -> bool:
        """Whether an operator vouches for what the stream's definition would not let pass."""
        return self.choice is not None and self.choice.action is HeldAction.ACCEPT

    @property
    def records(self) -> int:
        """Offsets to read; at most as many records are there."""
        return sum(r.size for r in self.ranges)

    def budget(self, unit: int) -> int:
        """Bytes that the reader of this unit may store before it stops."""
        return unit_budget(self.stream.limits, self.units[unit], planned=self.records)

    @property
    def estimated_bytes(self) -> int:
        return round(self.records * self.mean_record_bytes)

    def sealed(self) -> Plan:
        """This plan under the id that its content gives."""
        return replace(self, plan_id=hashlib.sha256(_canonical(self).encode()).hexdigest()[:32])

    def to_json(self) -> str:
        return json.dumps({"plan_id": self.plan_id, **_content(self)}, indent=1, sort_keys=True)


def plan_from_json(text: str) -> Plan:
    """The plan as it was sealed; refused where its id is not the digest of its content."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput("the plan is not JSON; plan again") from None
    version = found.get("format") if isinstance(found, dict) else None
    if version != PLAN_FORMAT:
        raise BadInput(f"the plan has format {ascii(version)[:80]}; this version reads {PLAN_FORMAT}: plan again")
    try:
        plan = _plan_of(found)
        intact = plan.sealed().plan_id == plan.plan_id
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise BadInput("the plan lacks a field, or has one of another kind; plan again") from None
    if not intact:
        raise BadInput(f"plan {str(plan.plan_id)[:16]} was changed after it was made; plan again")
    return plan


def _plan_of(found: dict[str, Any]) -> Plan:
    ranges = [tuple(OffsetRange(*r) for r in unit) for unit in found["units"]]
    return Plan(
        plan_id=found["plan_id"],
        kind=PlanKind(found["kind"]),
        stream=Stream.model_validate(found["stream"]),
        topic_id=found["topic_id"],
        partitions=found["partitions"],
        ranges=tuple(OffsetRange(*r) for r in found["ranges"]),
        units=tuple(ranges),
        positions={int(p): Position(*v) for p, v in found["positions"].items()},
        ends={int(p): Position(*v) for p, v in found["ends"].items()},
        generation=found["generation"],
        base_sequence=found["base_sequence"],
        base_snapshot=found["base_snapshot"],
        held_snapshot=found["held_snapshot"],
        watermark_ms=found["watermark_ms"],
        clock_ms=found["clock_ms"],
        scope=Scope(*found["scope"]) if found["scope"] else None,
        why={int(p): w for p, w in found["why"].items()},
        mean_record_bytes=found["mean_record_bytes"],
        code_version=found["code_version"],
        nonce=found["nonce"],
        left=found["left"],
        choice=_choice_of(found["choice"]) if found.get("choice") else None,
    )


def _choice_of(found: dict[str, Any]) -> HeldChoice:
    return HeldChoice(**{**found, "action": HeldAction(found["action"]), "ids": tuple(found["ids"])})


def _content(plan: Plan) -> dict[str, Any]:
    return {
        "format": PLAN_FORMAT,
        "kind": plan.kind.value,
        "stream": plan.stream.model_dump(mode="json"),
        "topic_id": plan.topic_id,
        "partitions": plan.partitions,
        "ranges": [list(r) for r in plan.ranges],
        "units": [[list(r) for r in unit] for unit in plan.units],
        "positions": {str(p): list(v) for p, v in plan.positions.items()},
        "ends": {str(p): list(v) for p, v in plan.ends.items()},
        "generation": plan.generation,
        "base_sequence": plan.base_sequence,
        "base_snapshot": plan.base_snapshot,
        "held_snapshot": plan.held_snapshot,
        "watermark_ms": plan.watermark_ms,
        "clock_ms": plan.clock_ms,
        "scope": list(plan.scope) if plan.scope else None,
        "why": {str(p): w for p, w in plan.why.items()},
        "mean_record_bytes": plan.mean_record_bytes,
        "code_version": plan.code_version,
        "nonce": plan.nonce,
        "left": plan.left,
        "choice": None if plan.choice is None else asdict(plan.choice),
    }


def _canonical(plan: Plan) -> str:
    return json.dumps(_content(plan), sort_keys=True, separators=(",", ":"))
