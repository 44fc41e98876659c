"""What kind of batch is wanted, and of which offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import PlanKind, Scope


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What kind of batch is wanted. `scope` for a backfill (start times, ns UTC); `ranges` for a manual run that
    names its offsets. Neither: from the head's positions; `only` of these partitions (None: all), and of those that
    `until` names no further than there. `together`: of a backfill that reads across its cuts again, the offsets of each
    waveform, which one batch has to read."""

    kind: PlanKind = PlanKind.INGEST
    scope: Scope | None = None
    ranges: tuple[OffsetRange, ...] = ()
    only: frozenset[int] | None = None
    until: Mapping[int, int] = field(default_factory=dict)
    together: tuple[tuple[OffsetRange, ...], ...] = ()

    def wants(self, partition: int) -> bool:
        return self.only is None or partition in self.only

    def unbounded(self, partition: int) -> bool:
        """Whether it goes to the end of the log there."""
        return self.wants(partition) and partition not in self.until
