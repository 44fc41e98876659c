"""What must not be mixed is refused by the checker of types: each `type: ignore` here is one that it would miss.

(pyproject.toml has unused ones of this file reported.)
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.position import Position
from wavestitch.contracts.quantities import Offset, Partition, clock
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


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (1_767_614_400_003, "2026-01-05 12:00:00Z"),
        (-1, "1969-12-31 23:59:59Z"),
        (253_402_300_799_999, "9999-12-31 23:59:59Z"),
        *((far, f"{far} ms") for far in (253_402_300_800_000, 1_767_614_400_000_000, (1 << 63) - 1, -(1 << 63))),
    ],
)
def test_a_record_time_is_a_clock_s_or_where_no_calendar_has_it_that_number(at: int, said: str) -> None:
    assert clock(at) == said


def test_a_clock_says_as_much_as_is_wanted() -> None:
    found = [clock(1_767_614_400_003, to) for to in ("minutes", "milliseconds")]
    assert found == ["2026-01-05 12:00Z", "2026-01-05 12:00:00.003Z"]
