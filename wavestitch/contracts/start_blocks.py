"""Blocks of offsets, and between which times the waveforms of each start: a batch's row in the history keeps them.

A block says so of all valid chunks that it has, and nothing where it has none. One with a record that was refused by
what the stream's definition or this version knew then (`MAY_BE_CHUNKS`) may hold anything: the definition may be put
right, or the version be a newer one. Pure, and loads no columns.
"""

from __future__ import annotations

from typing import NamedTuple

from wavestitch.contracts.chunk_metadata import MAX_TIME_NS
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.quantities import EpochMs, Offset, epoch_ms

BLOCK = 4096
"""Offsets of a block: few enough to pass over most of an archive, and so many that a row of the history stays small."""
MOST_BLOCKS = 4096
"""Of one batch. One that reads more, here and there, notes nothing: others have read what lies between."""

ANY_TIME = (-(MAX_TIME_NS // 1_000_000) - 1, MAX_TIME_NS // 1_000_000)
"""The least and the greatest start time, ms, of a block that may hold anything."""


class StartBlock(NamedTuple):
    """Offsets `[start, end)` of one partition, and the least and the greatest start time of its chunks."""

    start: Offset
    end: Offset
    first_ms: EpochMs | None = None
    last_ms: EpochMs | None = None

    def may_start_in(self, scope: Scope) -> bool:
        if self.first_ms is None or self.last_ms is None:
            return False
        return self.first_ms <= epoch_ms(scope.end_ns - 1) and epoch_ms(scope.start_ns) <= self.last_ms
