"""What kind of batch is wanted, of which offsets, and what a plan says beside that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wavestitch.contracts.batch_size import ReaderStop
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.quantities import EpochMs, Offset, Partition


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What kind of batch is wanted. `scope` for a backfill (start times, ns UTC); `ranges` for a manual run that
    names its offsets. Neither: from the head's positions; `only` of these partitions (None: all), and of those that
    `until` names no further than there. `together`: of a backfill that reads across its cuts again, the offsets of each
    waveform, which one batch has to read, on the topic `topic_id`; `after`: its batches so far."""

    kind: PlanKind = PlanKind.INGEST
    scope: Scope | None = None
    ranges: tuple[OffsetRange, ...] = ()
    only: frozenset[Partition] | None = None
    until: Mapping[Partition, Offset] = field(default_factory=dict)
    together: tuple[tuple[OffsetRange, ...], ...] = ()
    after: tuple[str, ...] = ()
    topic_id: str = ""

    def wants(self, partition: Partition) -> bool:
        return self.only is None or partition in self.only

    def unbounded(self, partition: Partition) -> bool:
        """Whether it goes to the end of the log there."""
        return self.wants(partition) and partition not in self.until


@dataclass(frozen=True, slots=True)
class Planning:
    """One planning: its only clock, and whose code it is. `nonce` makes a plan a new one at every execution; `stops`:
    what readers of this stream had seen that stopped at their budget."""

    clock_ms: EpochMs
    nonce: str
    code_version: str
    stops: Sequence[ReaderStop] = ()
