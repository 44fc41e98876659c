"""What must not be mixed is refused by the checker of types: each `type: ignore` here is one that it would miss.

(pyproject.toml has unused ones of this file reported.)
"""

from __future__ import annotations

from collections.abc import Mapping

from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stop_rule import StopRule

PARTITION, OFFSET, COUNT = Partition(3), Offset(7), 2


def test_a_range_takes_a_partition_and_two_offsets_and_nothing_else() -> None:
    ranges = [
        OffsetRange(PARTITION, OFFSET, Offset(OFFSET + COUNT)),
        OffsetRange(OFFSET, OFFSET, OFFSET),  # type: ignore[arg-type]
        OffsetRange(PARTITION, PARTITION, OFFSET),  # type: ignore[arg-type]
        OffsetRange(PARTITION, OFFSET, OFFSET + COUNT),  # type: ignore[arg-type]
        OffsetRange(PARTITION, OFFSET, OFFSET)._replace(end=COUNT),  # type: ignore[arg-type]
    ]
    # At run time they are whole numbers, whatever the checker says.
    assert [r.size for r in ranges] == [2, 0, 4, 2, -5]


def test_what_is_built_on_ranges_tells_them_apart_too() -> None:
    known: Mapping[Partition, Position] = {PARTITION: Position(OFFSET)}
    assert Position(PARTITION).next_offset == 3  # type: ignore[arg-type]
    assert known[PARTITION].next_offset != PARTITION  # type: ignore[comparison-overlap]
    assert known.get(OFFSET) is None  # type: ignore[call-overload]
    rule = StopRule(OffsetRange(PARTITION, OFFSET, Offset(9)), idle_seconds=1.0, now=0.0)
    assert not rule.admit(PARTITION)  # type: ignore[arg-type]
