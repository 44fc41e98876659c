"""A plan: the exact inputs of one batch, fixed before anything is read. Its id is the digest of all of it.

A plan is JSON in a write-once file; later steps are handed it and never look at YAML, clock or head for its inputs.
Carried through twice, or half and then again, it leaves the same table (I6).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from wavestitch.contracts.batch_size import unit_budget
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.held_choice import HeldAction, HeldChoice
from wavestitch.contracts.offset_range import OffsetRange, Unit
from wavestitch.contracts.position import Position, said_without_batches
from wavestitch.contracts.promotion import Promotion
from wavestitch.contracts.quantities import EpochMs, Generation, Offset, Partition
from wavestitch.contracts.stream import Stream
from wavestitch.contracts.versioned import Versioned

PLAN_FORMAT = 3
_POSITIONS = ("positions", "ends")


class PlanKind(StrEnum):
    """`ingest` starts at the head's positions and moves them; backfills leave positions and held alone. `held` reads
    nothing: it carries an operator's choice out on what is held. `promote` reads again what was compared, and puts that
    in the place of what is published."""

    INGEST = "ingest"
    BACKFILL = "backfill"
    MANUAL = "manual"
    HELD = "held"
    PROMOTE = "promote"

    @property
    def holds(self) -> bool:
        """Backfills leave what is held as it is: what they do not publish they leave to the log, and none is parked."""
        return self in (PlanKind.INGEST, PlanKind.HELD, PlanKind.PROMOTE)

    @property
    def keeps_all(self) -> bool:
        """Whether it publishes or holds all that it reads. A promotion holds, but knows only what it was shown."""
        return self in (PlanKind.INGEST, PlanKind.HELD)


class Scope(NamedTuple):
    """The waveforms that a backfill owns: start time (header, ns UTC) in `[start_ns, end_ns)`."""

    start_ns: int
    end_ns: int

    def owns(self, start_time_ns: int) -> bool:
        return self.start_ns <= start_time_ns < self.end_ns


@dataclass(frozen=True, slots=True)
class Plan:
    """What one batch reads and on what it stands.

    `ranges`: offsets to read, in order; several of a partition where what lies between is not wanted. `units`: the same
    ranges, cut and packed. `positions`: all partitions of the topic, where the head stands; `ends`: where an ingest
    leaves them (next offset and epoch; the record time is known after reading). `base_sequence`, `base_snapshot`: the
    pinned head. `why`: per partition, why it starts there. `clock_ms`: the plan's only clock, ms since the epoch.
    `left`: offsets that an ingest's limits make it leave for the batches after it. `choice`: of a `held` one and of a
    promotion, what the operator decided. `remarks`: sentences for people, which stop nothing. `after`: the batches of
    its backfill that come before it, in order: what they read and left it has to know.
    """

    plan_id: str
    kind: PlanKind
    stream: Stream
    topic_id: str
    partitions: int
    ranges: tuple[OffsetRange, ...]
    units: tuple[Unit, ...]
    positions: dict[Partition, Position]
    ends: dict[Partition, Position]
    generation: Generation
    base_sequence: int
    base_snapshot: int
    held_snapshot: int | None
    watermark_ms: EpochMs
    clock_ms: EpochMs
    scope: Scope | None
    why: dict[Partition, str]
    mean_record_bytes: float
    code_version: str
    nonce: str
    left: int = 0
    choice: HeldChoice | Promotion | None = None
    remarks: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def moves_positions(self) -> bool:
        return self.kind is PlanKind.INGEST

    @property
    def leaves_positions(self) -> bool:
        """Whether its head stands where the one before it stood: such heads differ by their number alone."""
        return not (self.moves_positions and self.ranges)

    @property
    def begins(self) -> dict[Partition, Offset]:
        """The first offset that it reads of each partition."""
        return {r.partition: r.start for r in reversed(self.ranges)}

    @property
    def holds(self) -> bool:
        return self.kind.holds

    @property
    def expires(self) -> bool:
        """Whether it takes up every waveform that waits, read or not."""
        return self.kind is PlanKind.INGEST

    @property
    def promotion(self) -> Promotion | None:
        return self.choice if isinstance(self.choice, Promotion) else None

    @property
    def held_choice(self) -> HeldChoice | None:
        return self.choice if isinstance(self.choice, HeldChoice) else None

    @property
    def accepts(self) -> bool:
        """Whether an operator vouches for what the stream's definition would not let pass."""
        return self.held_choice is not None and self.held_choice.action is HeldAction.ACCEPT

    @property
    def vouched(self) -> bool:
        """Whether somebody answered beforehand for what the gate says of the whole."""
        return self.accepts or self.promotion is not None

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
        content = _as_first_said(PLANS.content(self))
        del content["plan_id"]
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return replace(self, plan_id=hashlib.sha256(canonical.encode()).hexdigest()[:32])

    def to_json(self) -> str:
        return PLANS.text(self)


def plan_from_json(text: str) -> Plan:
    """The plan as it was sealed; refused where its id is not the digest of its content."""
    plan = PLANS.read(text)
    if plan.sealed().plan_id != plan.plan_id:
        raise BadInput(f"plan {ascii(plan.plan_id)[1:17]} was changed after it was made; plan again")
    return plan


PLANS = Versioned(
    Plan,
    "the plan",
    "plan again",
    format=PLAN_FORMAT,
    upgrades={
        1: lambda fields: {**fields, **{k: said_without_batches(fields[k]) for k in _POSITIONS}},
        2: lambda fields: {**fields, "stream": {**fields["stream"], "freshness": None}},
    },
)


def _as_first_said(content: dict[str, Any]) -> dict[str, Any]:
    """In the oldest format that has words for all of it: so a plan of an earlier version keeps its id."""
    if content["stream"]["freshness"] is not None:
        return content
    content = {**content, "format": 2, "stream": {k: v for k, v in content["stream"].items() if k != "freshness"}}
    said = [at for k in _POSITIONS for at in content[k].values()]
    if any(last_batch is not None for *_, last_batch in said):
        return content
    return {**content, "format": 1, **{k: {p: at[:-1] for p, at in content[k].items()} for k in _POSITIONS}}
