"""What is said of a log that was cut off, and of places of which nobody can prove that it is the one that was read."""

from __future__ import annotations

import pytest

from wavestitch.batch.cut_log import Positions, said_of_cuts, said_of_unproven
from wavestitch.contracts.ports import PartitionEnds
from wavestitch.contracts.position import LastBatch, Position
from wavestitch.contracts.quantities import LeaderEpoch, Offset, Partition

KEPT = LastBatch(LeaderEpoch(0), "ab")


def at(**offsets: int) -> Positions:
    """In the order in which they are named."""
    return {Partition(int(p[1:])): Position(Offset(offset)) for p, offset in offsets.items()}


def ends(partitions: int, end: int = 9) -> dict[Partition, PartitionEnds]:
    return {Partition(p): PartitionEnds(Offset(0), Offset(end), Offset(end), LeaderEpoch(0)) for p in range(partitions)}


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (3, []),
        (4, ["partition 0 [3, 4) holds other records"]),
        (7, ["partition 0 [3, 7) holds other records"]),
        (8, ["partition 0 [3, 7) holds other records"]),
    ],
)
def test_only_what_is_passed_over_of_what_was_written_anew_is_said(wanted: int, said: list[str]) -> None:
    found = said_of_cuts({Partition(0): Offset(3)}, at(p0=7), {Partition(0): Offset(wanted)})
    cut_off = "partition 0 was cut off at 3 after it had been read up to 7, and written anew"
    assert list(found) == [f"{cut_off}: {r}, which nobody has read" for r in said]


def test_partitions_of_which_nothing_is_proven_are_named_in_their_order_whatever_order_they_come_in() -> None:
    for stands in (at(p0=5, p1=6, p2=7), at(p2=7, p0=5, p1=6)):
        (said,) = said_of_unproven("waves", stands, {}, ends(3))
        assert said.startswith(
            "the record batch in front of partitions 0 (before 5), 1 (before 6), 2 (before 7) of waves was not kept"
        )


def test_of_a_place_whose_batch_was_kept_or_that_the_log_has_not_nothing_is_said() -> None:
    kept = {Partition(0): Position(Offset(5), last_batch=KEPT)}
    assert said_of_unproven("waves", kept, at(p0=10), ends(1)) == ()
    assert said_of_unproven("waves", at(p0=0), at(p0=0), ends(1)) == ()
    (said,) = said_of_unproven("waves", kept, at(p0=9), ends(1))
    assert said.startswith("the record batch in front of partitions 0 (before 9) of waves could not be read")
