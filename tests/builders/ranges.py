"""Ranges as tests write them down: three numbers."""

from __future__ import annotations

from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import Offset, Partition


def span(partition: int, start: int, end: int) -> OffsetRange:
    """`[start, end)` of a partition."""
    return OffsetRange(Partition(partition), Offset(start), Offset(end))
