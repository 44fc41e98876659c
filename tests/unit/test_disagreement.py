"""What the group's own tags say against the catalog, and beyond which generation whatever was set back is older."""

from __future__ import annotations

import pytest

from tests.builders.heads import at, make_head
from wavestitch.contracts.disagreement import Doubt, find_disagreement, next_generation
from wavestitch.contracts.position import FURTHEST, GroupOffset, Tag
from wavestitch.contracts.quantities import Generation, Offset, Partition

HEAD = make_head(sequence=7, generation=3, positions={0: at(20), 1: at(30)})
HERE, ELSEWHERE = "ab", "cd"


def tagged(offset: int, generation: int, sequence: int, table: str = HERE) -> GroupOffset:
    return GroupOffset(Offset(offset), Tag(table, Generation(generation), sequence).encode())


@pytest.mark.parametrize(
    ("further", "beyond"), [(0, 1), (1, 2), (FURTHEST, FURTHEST + 1), (FURTHEST + 1000, FURTHEST + 1001)]
)
def test_the_next_generation_is_beyond_every_tag_that_a_head_of_the_table_can_have(further: int, beyond: int) -> None:
    group = {Partition(0): tagged(20, 3 + further, 7), Partition(1): tagged(30, 2, 7), Partition(2): None}
    assert next_generation(HEAD, group, table=HERE) == 3 + beyond


@pytest.mark.parametrize(
    "found",
    [
        tagged(20, 3 + FURTHEST + 1001, 7),
        tagged(20, 9, 7 + FURTHEST + 1001),
        tagged(20, 9, 7, ELSEWHERE),
        GroupOffset(Offset(20), "of another tool"),
    ],
)
def test_a_tag_that_no_head_of_the_table_can_have_leads_nowhere(found: GroupOffset) -> None:
    assert next_generation(HEAD, {Partition(0): found}, table=HERE) == 4


def test_the_first_generation_is_beyond_what_a_lost_head_left_in_the_group() -> None:
    assert next_generation(None, {}, table=HERE) == 1
    assert next_generation(None, {Partition(0): tagged(20, 5, 7)}, table=HERE) == 6


@pytest.mark.parametrize(
    ("found", "doubt"),
    [
        (tagged(20, 3, 7), None),
        (tagged(19, 3, 6), None),
        (tagged(99, 2, 9), None),
        (tagged(19, 3, 7), Doubt.FORKED),
        (tagged(21, 3, 6), Doubt.FORKED),
        (tagged(20, 3, 8), Doubt.RESTORED),
        (tagged(20, 4, 1), Doubt.RESTORED),
        (tagged(20, 3, 7, ELSEWHERE), Doubt.ANOTHER),
        (tagged(20, 3 + FURTHEST, 7), Doubt.RESTORED),
        (tagged(20, 3 + FURTHEST + 1, 7), Doubt.UNREADABLE),
        (GroupOffset(Offset(5), "wavestitch/99 x"), Doubt.UNREADABLE),
        (GroupOffset(Offset(5), "of another tool"), None),
        (None, None),
    ],
)
def test_a_tag_contradicts_the_head_where_no_history_has_both(found: GroupOffset | None, doubt: Doubt | None) -> None:
    wrong = find_disagreement(HEAD, {Partition(1): tagged(30, 3, 7), Partition(0): found}, table=HERE)
    assert (None if wrong is None else wrong.doubt) is doubt
    if wrong is not None and found is not None:
        assert (wrong.partition, wrong.offset) == (0, found.offset)


def test_a_tag_of_a_partition_that_the_head_does_not_have_is_of_another_history_within_its_generation() -> None:
    wrong = find_disagreement(HEAD, {Partition(2): tagged(1, 3, 6), Partition(4): tagged(1, 4, 1)}, table=HERE)
    assert wrong is not None
    assert (wrong.doubt, wrong.partition) == (Doubt.FORKED, 2)
    assert find_disagreement(HEAD, {Partition(2): tagged(1, 2, 6)}, table=HERE) is None


def test_without_a_head_a_tag_is_of_one_that_was_expired_or_lost_with_its_table() -> None:
    group = {Partition(0): tagged(20, 3, 7)}
    for table, doubt in ((HERE, Doubt.EXPIRED), (ELSEWHERE, Doubt.LOST), (None, Doubt.LOST)):
        wrong = find_disagreement(None, group, table=table)
        assert wrong is not None
        assert wrong.doubt is doubt
