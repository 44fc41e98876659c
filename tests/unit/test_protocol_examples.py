"""The rules between head, group and runs, as a table: what is seen, and what is done about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.builders.heads import at, make_head
from tests.builders.plans import make_plan
from tests.builders.ranges import span
from wavestitch.contracts.errors import Fenced, Refused
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.ports import PartitionEnds
from wavestitch.contracts.position import GroupOffset, Head, HeadKind, Position
from wavestitch.contracts.protocol import (
    check_fence,
    is_in_history,
    left_alone,
    may_project,
    moved_position,
    named,
    reconcile,
    still_skipped,
)
from wavestitch.contracts.quantities import LeaderEpoch, Offset, Partition

TABLE = "0f0f"
HEAD = make_head(
    sequence=5,
    generation=2,
    kind=HeadKind.INGEST,
    positions={0: at(10, seen_ms=7), 1: at(20)},
    snapshot_id=77,
)
Group = Mapping[Any, GroupOffset | None]
P0, P1, P2 = Partition(0), Partition(1), Partition(2)


def ours(offset: int, *, sequence: int = 5, generation: int = 2, table: str = TABLE) -> GroupOffset:
    return GroupOffset(Offset(offset), f"wavestitch/2 {table} g{generation} s{sequence}")


def reset(offset: int) -> GroupOffset:
    return GroupOffset(Offset(offset), "")


AS_IT_IS, AGAIN = "nothing", "written again"
EXPIRED, OLDER, RESET = "had expired or was never written", "was an older projection", "the group was reset to"

RECONCILED: dict[str, tuple[Group, str, dict[Any, str], dict[Any, int]]] = {
    "the group is what the head says": ({0: ours(10), 1: ours(20)}, AS_IT_IS, {}, {}),
    "an offset expired": ({0: ours(10), 1: None}, AGAIN, {1: EXPIRED}, {}),
    "the first one expired": ({0: None, 1: ours(20)}, AGAIN, {0: EXPIRED}, {}),
    "a partition is not told at all": ({0: ours(10)}, AGAIN, {1: EXPIRED}, {}),
    "an older head is projected": ({0: ours(8, sequence=4), 1: ours(20)}, AGAIN, {0: OLDER}, {}),
    "an older head at the same offset": ({0: ours(10, sequence=4), 1: ours(20)}, AGAIN, {0: OLDER}, {}),
    "our tag at another offset": ({0: ours(9), 1: ours(20)}, AGAIN, {0: OLDER}, {}),
    "a tag of an older version of ours": (
        {0: GroupOffset(Offset(10), "wavestitch/1 g2 s5"), 1: ours(20)},
        "adopted",
        {0: RESET},
        {0: 10},
    ),
    "set back": ({0: reset(3), 1: ours(20)}, "adopted", {0: RESET}, {0: 3}),
    "set where it stands": ({0: reset(10), 1: ours(20)}, "adopted", {0: RESET}, {0: 10}),
    "both set back": ({0: reset(3), 1: reset(0)}, "adopted", {0: RESET, 1: RESET}, {0: 3, 1: 0}),
    "a new partition without an offset": ({0: ours(10), 1: ours(20), 2: None}, AS_IT_IS, {}, {}),
    "a new partition with our tag": ({0: ours(10), 1: ours(20), 2: ours(0)}, AS_IT_IS, {}, {}),
    "a new partition is passed over, the next is looked at": (
        {0: None, 1: ours(20), 2: None, 3: reset(0)},
        "adopted",
        {0: EXPIRED, 3: RESET},
        {3: 0},
    ),
    "a new partition set to its beginning": ({0: ours(10), 1: ours(20), 2: reset(0)}, "adopted", {2: RESET}, {2: 0}),
}


@pytest.mark.parametrize("name", RECONCILED)
def test_what_a_plan_does_about_the_group(name: str) -> None:
    group, done, why, moved = RECONCILED[name]
    found = reconcile(HEAD, group, on_reset="adopt", stream="ecg")
    assert {p: word for p, word in why.items() if word not in found.why.get(p, "")} == {}
    assert found.why.keys() == why.keys()
    assert found.project == (done != AS_IT_IS)
    if not moved:
        assert found.adopt is None
        return
    head = found.adopt
    assert (head.kind, head.generation, head.sequence) == (HeadKind.ADOPTED, 3, 6)
    assert head.positions == {**HEAD.positions, **{p: at(to) for p, to in moved.items()}}
    assert head.note == "adopted a reset of the consumer group"


FORWARD = "the group was set forward to"
REFUSED: dict[str, tuple[Group, Any, str, Any]] = {
    "forward": ({0: reset(11), 1: ours(20)}, "adopt", f"{FORWARD} 11 on partition 0, the head stands at 10", 0),
    "one forward, one back": ({0: reset(9), 1: reset(21)}, "adopt", f"{FORWARD} 21 on partition 1", 1),
    "both forward": ({0: reset(12), 1: reset(30)}, "adopt", "10 to 12 would be skipped (and likewise on 1)", 0),
    "a new one forward": ({0: ours(10), 1: ours(20), 2: reset(1)}, "adopt", f"{FORWARD} 1 on partition 2", 2),
    "back, and the stream refuses": ({0: ours(10), 1: reset(4)}, "refuse", "reset the group to 4 on partition 1", 1),
    "both back, and it refuses": ({0: reset(4), 1: reset(4)}, "refuse", "stands at 10 (and likewise on 1)", 0),
    "forward, and it refuses": ({0: reset(11), 1: ours(20)}, "refuse", FORWARD, 0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_reset_that_somebody_has_to_accept_is_refused(name: str) -> None:
    group, on_reset, said, partition = REFUSED[name]
    with pytest.raises(Refused) as refused:
        reconcile(HEAD, group, on_reset=on_reset, stream="ecg")
    assert said in str(refused.value)
    facts = refused.value.facts
    assert facts["partition"] == partition
    assert (facts["seen"], facts["head"]) == (group[partition].offset, HEAD.positions.get(partition, at(0))[0])


def test_a_reset_to_where_the_head_stands_is_refused_to_nobody() -> None:
    group = {P0: reset(10), P1: ours(20)}
    assert reconcile(HEAD, group, on_reset="refuse", stream="ecg").adopt is not None


@pytest.mark.parametrize(
    ("to", "was", "epoch"),
    [
        (5, at(10, leader_epoch=1), 1),
        (10, at(10, leader_epoch=1), 1),
        (11, at(10, leader_epoch=1), 4),
        (2, at(10, leader_epoch=1), 4),
        (3, at(10, leader_epoch=1), 1),
        (5, at(10, leader_epoch=0), 0),
        (5, at(10), 4),
        (5, None, 4),
    ],
)
def test_a_position_that_somebody_set_has_the_epoch_by_which_a_cut_below_it_is_seen(
    to: int, was: Position | None, epoch: int
) -> None:
    here = PartitionEnds(Offset(2), Offset(50), Offset(50), LeaderEpoch(4))
    assert moved_position(Offset(to), was=was, here=here) == at(to, leader_epoch=epoch)


@pytest.mark.parametrize(
    ("moved", "left"),
    [
        ({}, (span(0, 3, 5), span(1, 0, 2))),
        ({0: 4}, (span(0, 3, 4), span(1, 0, 2))),
        ({0: 3}, (span(1, 0, 2),)),
        ({0: 0}, (span(1, 0, 2),)),
        ({0: 9}, (span(0, 3, 5), span(1, 0, 2))),
        ({1: 0}, (span(0, 3, 5),)),
    ],
)
def test_what_is_read_again_has_to_be_given_up_again(moved: dict[Any, Any], left: tuple[OffsetRange, ...]) -> None:
    assert still_skipped([span(0, 3, 5), span(1, 0, 2)], moved) == left


def test_a_target_of_some_partitions_names_them() -> None:
    assert named([P1, P0], "head", everything=[P0, P1]) == "head"
    assert named([P2, P0], "head", everything=[P0, P1, P2]) == "0:head,2:head"


FENCED: dict[str, tuple[Head, bool, str]] = {
    "its base is gone": (HEAD, False, "has left the table's history"),
    "somebody rewound": (HEAD.next(generation=3), True, "planned in generation 2, the head is in 3"),
    "another batch took the range": (
        HEAD.next(positions={0: at(10), 1: at(21)}),
        True,
        "partition 1 was planned from 20, the head now stands at 21",
    ),
    "a partition came": (
        HEAD.next(positions={**HEAD.positions, 2: at(4)}),
        True,
        "partition 2 was planned from its beginning, the head now stands at 4",
    ),
    "both moved": (HEAD.next(positions={0: at(11), 1: at(21)}), True, "partition 0 was planned from 10"),
}


@pytest.mark.parametrize("name", FENCED)
def test_a_run_that_was_overtaken_is_fenced(name: str) -> None:
    head, in_ancestry, said = FENCED[name]
    plan = make_plan(generation=2, positions=HEAD.positions)
    with pytest.raises(Fenced) as fenced:
        check_fence(plan, head, base_in_ancestry=in_ancestry)
    assert said in str(fenced.value)


def test_a_run_on_what_it_was_planned_on_may_commit_and_so_may_one_that_moves_nothing() -> None:
    check_fence(make_plan(generation=2, positions=HEAD.positions), HEAD.next(note="a note"), base_in_ancestry=True)
    moved = HEAD.next(positions={0: at(11), 1: at(21)})
    beside = make_plan(kind=PlanKind.MANUAL, generation=2, positions={}, ends={})
    check_fence(beside, moved, base_in_ancestry=True)
    with pytest.raises(Fenced):
        check_fence(beside, HEAD.next(generation=3), base_in_ancestry=True)


@pytest.mark.parametrize(("sequence", "snapshot", "is_there"), [(5, 77, True), (4, 77, False), (5, 76, False)])
def test_a_base_is_a_head_by_its_number_and_its_snapshot(sequence: int, snapshot: int, is_there: bool) -> None:
    plan = make_plan(base_sequence=sequence, base_snapshot=snapshot)
    assert is_in_history(plan, [make_head(sequence=1, snapshot_id=3), HEAD]) == is_there


PROJECTED: dict[str, tuple[Head, Group, bool]] = {
    "as it was": (HEAD, {0: ours(10), 1: ours(20)}, True),
    "an offset expired": (HEAD, {0: None, 1: ours(20)}, True),
    "an older head": (HEAD, {0: ours(3, sequence=4), 1: ours(20)}, True),
    "somebody's reset": (HEAD, {0: reset(10), 1: ours(20)}, False),
    "another table's": (HEAD, {0: ours(10, table="aaaa"), 1: ours(20)}, False),
    "a newer head's": (HEAD, {0: ours(12, sequence=6), 1: ours(20)}, False),
    "a head without positions": (make_head(positions={}), {0: None}, False),
}


@pytest.mark.parametrize("name", PROJECTED)
def test_whether_the_group_may_be_written(name: str) -> None:
    head, group, may = PROJECTED[name]
    assert may_project(head, group, table=TABLE) is may


LEFT: dict[str, tuple[Group, Group, set[int]]] = {
    "ours": ({0: ours(10), 1: ours(20)}, {}, set()),
    "expired": ({0: None, 1: ours(20)}, {}, set()),
    "a reset": ({0: reset(3), 1: ours(20)}, {}, {0}),
    "a reset that this head answers": ({0: reset(3), 1: ours(20)}, {0: reset(3)}, set()),
    "a reset after the one that it answers": ({0: reset(4), 1: ours(20)}, {0: reset(3)}, {0}),
    "another table's": ({0: ours(10, table="aaaa"), 1: ours(20)}, {}, {0}),
    "another table's, answered": ({0: ours(10, table="aaaa")}, {0: ours(10, table="aaaa")}, set()),
    "a newer head's": ({0: ours(12, sequence=6), 1: ours(20)}, {}, {0, 1}),
    "of another version of ours": ({0: GroupOffset(Offset(3), "wavestitch/1 g1 s1"), 1: ours(20)}, {}, set()),
    "of numbers that nobody counts to": ({0: ours(3, sequence=10**12), 1: ours(20)}, {}, set()),
}


@pytest.mark.parametrize("name", LEFT)
def test_the_partitions_that_a_head_is_not_written_over(name: str) -> None:
    group, answered, left = LEFT[name]
    assert left_alone(HEAD, group, table=TABLE, answered=answered) == left
