"""What the checker makes of brokers' disks that were put back: what nothing tells any more is excused, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.histories.anomaly import Kind
from tests.histories.by_hand import (
    NEW,
    NOW,
    OPEN,
    WAVE,
    T,
    a_rewind,
    before_quiet,
    head,
    kinds,
    planned,
    produced,
)
from tests.histories.checker import analyse
from tests.histories.events import (
    Event,
    Looked,
    LostOffset,
    Planned,
    Produced,
    Read,
    Retained,
    Rewound,
    Settled,
    Started,
    TopicMade,
    Truncated,
)
from tests.histories.history import History
from tests.histories.interval_events import Backfilled
from tests.histories.table_events import CatalogSetBack, HistoryLost


@pytest.mark.parametrize(("backup", "lost", "found"), [(True, 5, []), (True, 4, [Kind.LOST]), (False, 5, [Kind.LOST])])
def test_only_the_batch_in_front_of_a_position_tells_that_a_disk_was_put_back(
    backup: bool, lost: int, found: list[Kind]
) -> None:
    """Where a broker has lost that, too, nobody can know that what lies before it is unread (docs/guarantees.md)."""
    events = before_quiet(Truncated(T, 0, 5, backup), produced(5, NEW), LostOffset(T, 0, lost))
    assert kinds(events) == found


SAME = produced(5, OPEN[0])
GROWN = (
    *(produced(6, WAVE[0]), produced(7, WAVE[1]), planned("p3", ranges=((0, 6, 8),))),
    *(Read("run-1", "p3", T, 0, 6, 8, (6, 7)), replace(head(3, 8), kind="ingest", plan_id="p3")),
)


def back_to(position: int, unproven: tuple[tuple[int, int], ...] = ()) -> list[Event]:
    back = replace(head(4, position), run="run-2", kind="rewind", generation=2, unproven=unproven)
    plan = Planned("run-3", "p4", "ingest", 2, 4, T, {0: position}, ((0, position, 8),))
    read = Read("run-3", "p4", T, 0, position, 8, tuple(range(position, 8)))
    made = replace(head(5, 8), run="run-3", kind="ingest", generation=2, plan_id="p4")
    return [Rewound("run-2", "offsets", True), back, plan, read, made]


@pytest.mark.parametrize(
    ("disk", "same", "then", "unseen"),
    [
        (Truncated(T, 0, 4, True), SAME, back_to(6), set()),
        (Truncated(T, 0, 4, True), SAME, [], {4, 6, 7}),
        (Truncated(T, 0, 4, True), replace(SAME, epoch=1), back_to(6), {4}),
        (Truncated(T, 0, 4, True), replace(SAME, timestamp_ms=NOW + 1), back_to(6), {4, 5}),
        (Truncated(T, 0, 4, True), replace(SAME, seen="open"), [Settled(T, 0, (5,), "committed"), *back_to(6)], {4, 5}),
        (Truncated(T, 0, 4), SAME, back_to(6), {4}),
        (Truncated(T, 0, 5, True), SAME, back_to(7), {6}),
        (Truncated(T, 0, 4, True), SAME, back_to(5), set()),
        (Truncated(T, 0, 4, True), SAME, [*back_to(4), *back_to(6)], set()),
    ],
    ids=[
        *("gone back to there", "nobody went there", "of another epoch", "of another time", "in a transaction"),
        *("cut off by an election", "to behind it", "to before it", "all was read"),
    ],
)
def test_the_very_same_record_once_more_in_front_of_a_position_hides_what_lies_before_it(
    disk: Truncated, same: Produced, then: list[Event], unseen: set[int]
) -> None:
    """Back to where the disk was put back, and no further on (docs/guarantees.md)."""
    anew = [NEW, same, WAVE[1], WAVE[2]][disk.end - 4 :]
    written = [one if isinstance(one, Produced) else produced(n, one) for n, one in enumerate(anew, disk.end)]
    found = analyse(History(before_quiet(*GROWN, disk, *written, *then)))
    assert {o for a in found if a.what.startswith("never seen") for _, _, o in a.coordinates} == unseen


@pytest.mark.parametrize(
    ("disk", "unproven", "unseen"),
    [
        (Truncated(T, 0, 4, True), ((0, 6),), set()),
        (Truncated(T, 0, 4, True), ((0, 5),), {5}),
        (Truncated(T, 0, 4, True), (), {4, 5}),
        (Truncated(T, 0, 4), ((0, 6),), {4, 5}),
    ],
    ids=["nothing tells", "leader epochs tell", "something lies there", "cut off by an election"],
)
@pytest.mark.parametrize("set_back", [False, True])
def test_what_lay_in_front_of_a_position_may_be_lost_before_somebody_goes_back_to_there(
    disk: Truncated, unproven: tuple[tuple[int, int], ...], unseen: set[int], set_back: bool
) -> None:
    """Or before the catalog was set back to it, and somebody settles that."""
    anew = [produced(n, one) for n, one in enumerate([NEW, NEW, WAVE[1], WAVE[2]], 4)]
    lost = LostOffset(T, 0, 5), *((CatalogSetBack(2),) if set_back else ())
    found = analyse(History(before_quiet(*GROWN, disk, *anew, *lost, *back_to(6, unproven))))
    assert {o for a in found if a.what.startswith("never seen") for _, _, o in a.coordinates} == unseen


def test_an_ingest_that_goes_on_behind_the_very_same_record_once_more_cannot_know_either() -> None:
    """Nor can one that finds nothing to do. What comes behind it is owed."""

    def unseen(*events: Event) -> set[int]:
        found = analyse(History(before_quiet(Truncated(T, 0, 4, True), produced(4, NEW), *events)))
        return {o for a in found if a.what.startswith("never seen") for _, _, o in a.coordinates}

    plan, read = planned("p3", ranges=((0, 6, 7),)), Read("run-1", "p3", T, 0, 6, 7, (6,))
    goes_on: list[Event] = [produced(6, NEW), plan, read, replace(head(3, 7), kind="ingest", plan_id="p3")]
    assert unseen(SAME) == unseen(SAME, *goes_on) == set()
    assert unseen(SAME, produced(6, NEW)) == {6}
    assert unseen(replace(SAME, epoch=1)) == unseen(replace(SAME, epoch=1), *goes_on) == {4}


PUT_BACK = (Truncated(T, 0, 5, True), produced(5, NEW))
GONE = LostOffset(T, 0, 5)


MADE_ANEW = (
    Rewound("run-2", "rebuilt", True),
    replace(head(4, 6), run="run-2", kind="rebuilt", generation=2, unproven=((0, 6),)),
)


READ_ANEW = (
    Rewound("run-2", "offsets", True),
    replace(head(3, 5), run="run-2", kind="rewind", generation=2),
    Planned("run-3", "p3", "ingest", 2, 3, T, {0: 5}, ((0, 5, 6),)),
    Read("run-3", "p3", T, 0, 5, 6, (5,)),
    replace(head(4, 6), run="run-3", kind="ingest", generation=2, plan_id="p3"),
)


@pytest.mark.parametrize(
    ("events", "unseen"),
    [
        ([*PUT_BACK, replace(GONE, told=5)], {5}),
        ([Truncated(T, 0, 4, True), produced(4, NEW), produced(5, NEW), replace(GONE, told=5)], {5}),
        ([*PUT_BACK, GONE, Truncated(T, 0, 5), produced(5, NEW)], {5}),
        ([Truncated(T, 0, 4, True), produced(4, NEW), produced(5, NEW), GONE, *PUT_BACK], {4, 5}),
        ([Truncated(T, 0, 4, True), produced(4, NEW), produced(5, NEW), GONE, Truncated(T, 0, 5)], {4}),
        ([GONE, *PUT_BACK], {5}),
        ([*PUT_BACK, *READ_ANEW, Truncated(T, 0, 5), produced(5, WAVE[0]), GONE], {5}),
        ([*PUT_BACK, *READ_ANEW, Truncated(T, 0, 5), produced(5, NEW)], set()),
        ([*PUT_BACK, GONE, CatalogSetBack(2)], set()),
        ([*a_rewind(7, skipped=((0, 6, 7),)), *PUT_BACK, produced(6, NEW), replace(GONE, offset=6)], set()),
        (
            [
                *a_rewind(7, skipped=((0, 6, 7),)),
                *(*PUT_BACK, produced(6, NEW), replace(GONE, offset=6)),
                CatalogSetBack(2),
            ],
            {5, 6},
        ),
        ([TopicMade("topic-2"), *(replace(e, topic_id="topic-2") for e in (*PUT_BACK, GONE))], {5}),
        ([*PUT_BACK, *MADE_ANEW], set()),
        ([*PUT_BACK, MADE_ANEW[0], replace(MADE_ANEW[1], unproven=())], {5}),
        ([*PUT_BACK, MADE_ANEW[0], replace(MADE_ANEW[1], unproven=((0, 5),))], {5}),
        (
            [
                *(Truncated(T, 0, 4, True), produced(4, NEW), produced(5, NEW)),
                *(MADE_ANEW[0], replace(MADE_ANEW[1], unproven=((0, 5),))),
            ],
            {5},
        ),
        ([Truncated(T, 0, 5), produced(5, NEW), *MADE_ANEW], {5}),
        ([*MADE_ANEW, *PUT_BACK], {5}),
        ([MADE_ANEW[0], replace(MADE_ANEW[1], earlier=(0,)), *PUT_BACK], set()),
        ([MADE_ANEW[0], replace(MADE_ANEW[1], earlier=(1,)), *PUT_BACK], {5}),
        ([*PUT_BACK, *MADE_ANEW, Truncated(T, 0, 5), replace(produced(5, NEW), epoch=1)], {5}),
        ([*PUT_BACK, produced(6, NEW), *MADE_ANEW], {6}),
    ],
    ids=[
        *("leader epochs tell", "they tell a later place", "cut off since", "put back since"),
        "what of it was not cut off since is found with that",
        *(
            "lost before",
            "read anew, and cut off since",
            "and sent again as it was",
            "set back to where it stood",
            "further on",
        ),
        *("set back to before", "of another topic"),
        *(
            "a head made anew",
            "one that tells",
            "leader epochs tell of it",
            "and they tell a later place",
            "cut off, and not put back",
            "put back since",
            "behind a head made anew in an earlier epoch",
            "in another partition",
            "anew, and cut off since",
        ),
        "beyond the position",
    ],
)
def test_what_else_tells_that_a_disk_was_put_back_leaves_no_excuse(events: list[Event], unseen: set[int]) -> None:
    """Another batch in front of the position, the leader epoch, a head that stood before."""
    found = analyse(History(before_quiet(*events)))
    assert {o for a in found if a.what.startswith("never seen") for _, _, o in a.coordinates} == unseen


@pytest.mark.parametrize(
    ("backup", "unproven", "planned_after", "unseen"),
    [
        (True, ((0, 8),), False, set()),
        (True, ((0, 7),), False, {7}),
        (True, (), False, {6, 7}),
        (False, ((0, 8),), False, {6, 7}),
        (True, ((0, 8),), True, {6, 7}),
    ],
    ids=["nothing tells", "of a later place", "something does", "an election cut it off", "planned on what is there"],
)
def test_of_an_ingest_that_was_planned_before_the_disk_was_put_back_the_record_in_front_may_be_lost_when_it_commits(
    backup: bool, unproven: tuple[tuple[int, int], ...], planned_after: bool, unseen: set[int]
) -> None:
    plan = planned("p3", ranges=((0, 6, 8),))
    read = Read("run-1", "p3", T, 0, 6, 8, (6, 7), (6, 7))
    disk = Truncated(T, 0, 6, backup), produced(6, NEW), produced(7, NEW), LostOffset(T, 0, 7)
    made = replace(head(3, 8), kind="ingest", plan_id="p3", unproven=unproven)
    told: list[Event] = [*disk, plan, read] if planned_after else [plan, *disk, read]
    found = analyse(History(before_quiet(produced(6, WAVE[0]), produced(7, WAVE[1]), *told, made)))
    assert {o for a in found if a.what.startswith("never seen") for _, _, o in a.coordinates} == unseen


SCOPE = (NOW * 10**6, (NOW + 1) * 10**6)
FIRST = planned("p2", run="run-2", kind="backfill", ranges=((0, 6, 7),))
NEXT = planned("p3", run="run-3", kind="backfill", base_sequence=3, scope=SCOPE)
OF_EPOCH_1 = replace(NEXT, epoch_ends=((0, 1, 8),))
DISK = Truncated(T, 0, 6, True)


@pytest.mark.parametrize(
    ("first", "disk", "anew", "then", "owes"),
    [
        (FIRST, DISK, [NEW], NEXT, False),
        (FIRST, replace(DISK, end=4), [WAVE[0], WAVE[0], NEW], NEXT, True),
        (FIRST, replace(DISK, end=4), [WAVE[0], OPEN[0], NEW], NEXT, False),
        (FIRST, replace(DISK, backup=False), [NEW], NEXT, True),
        (FIRST, DISK, [NEW], replace(NEXT, generation=2), True),
        (FIRST, DISK, [NEW], replace(NEXT, positions={0: 7}), True),
        (FIRST, DISK, [WAVE[0], NEW], NEXT, True),
        (replace(FIRST, ranges=((0, 6, 9),)), DISK, [NEW], NEXT, True),
        (replace(FIRST, ranges=((0, 6, 9),)), DISK, [NEW, WAVE[0], WAVE[1]], NEXT, False),
        (replace(FIRST, kind="ingest"), DISK, [NEW], NEXT, True),
        (replace(FIRST, kind="promote"), DISK, [NEW], NEXT, True),
        (replace(FIRST, epochs={0: 1}), DISK, [NEW], replace(NEXT, epoch_ends=((0, 1, 7),)), False),
        (replace(FIRST, epochs={0: 1}), DISK, [NEW], replace(NEXT, epoch_ends=((0, 1, 6), (0, 2, 7))), True),
        (replace(FIRST, epochs={0: 1}, ranges=((0, 6, 7), (0, 8, 9))), *(DISK, [NEW, NEW, NEW]), OF_EPOCH_1, True),
    ],
    ids=[
        *("nothing tells", "the position is on another log", "and that seems to be the same"),
        *("an election cut it off", "somebody has rewound", "an ingest has read it"),
        *("behind what was read", "the log ends before that", "and behind it", "read by an ingest"),
        "a promotion notes nothing",
        *("in an epoch that covers it", "leader epochs tell", "of what lies behind"),
    ],
)
def test_what_a_backfill_had_read_on_a_disk_that_was_put_back_another_one_may_leave_out(
    first: Planned, disk: Truncated, anew: list[Any], then: Planned, owes: bool
) -> None:
    made = replace(head(3, 6), run="run-2", kind=first.kind, plan_id="p2")
    begins = Started("run-2", "backfill", 100), Looked("run-2", "topic"), first
    again = Started("run-3", "backfill", 100), Looked("run-3", "topic"), then
    written = [produced(n, one) for n, one in enumerate(anew, disk.end)]
    told: list[Event] = [*begins, made, disk, *written, *again, Backfilled("run-3", "p3", SCOPE)]
    found = analyse(History(before_quiet(produced(6, WAVE[0]), *told)))
    assert any(a.what.startswith("whole in the log") for a in found) is owes


FURTHER = (
    planned("p4", run="run-4", kind="backfill", base_sequence=3, ranges=((0, 6, 9),)),
    replace(head(4, 6), run="run-4", kind="backfill", plan_id="p4"),
)


@pytest.mark.parametrize(
    ("more", "since", "owes"),
    [
        ((), (), False),
        ((), (CatalogSetBack(2),), True),
        (FURTHER, (), True),
        (FURTHER, (CatalogSetBack(3),), False),
        (FURTHER, (HistoryLost((1,)),), True),
        (FURTHER, (HistoryLost((4,)),), False),
    ],
    ids=[
        *("it was noted", "by a head that is gone", "another had noted up to where the log does not go any more"),
        *("by a head that is gone, too", "and another row is lost", "and its row is lost"),
    ],
)
def test_what_a_backfill_had_noted_is_believed_as_far_as_its_head_and_its_row_are_there(
    more: tuple[Event, ...], since: tuple[Event, ...], owes: bool
) -> None:
    made = replace(head(3, 6), run="run-2", kind="backfill", plan_id="p2")
    begins = Started("run-2", "backfill", 100), Looked("run-2", "topic"), FIRST
    again = Started("run-3", "backfill", 100), Looked("run-3", "topic"), NEXT
    told: list[Event] = [*begins, made, *more, DISK, produced(6, NEW), *since, *again]
    found = analyse(History(before_quiet(produced(6, WAVE[0]), *told, Backfilled("run-3", "p3", SCOPE))))
    assert any(a.what.startswith("whole in the log") for a in found) is owes


BARE = replace(head(3, 7), run="run-2", kind="rewind", generation=2, skipped=((0, 6, 7),), unproven=((0, 7),))
OVER: list[Event] = [produced(6, WAVE[0]), LostOffset(T, 0, 6), Rewound("run-2", "offsets", True), BARE]
ANEW = [Truncated(T, 0, 6, True), produced(6, NEW)]
GOES_ON = Planned("run-3", "p3", "ingest", 2, 3, T, {0: 7}, ((0, 7, 8),), told=((0, 6),))


@pytest.mark.parametrize(
    ("events", "unseen"),
    [
        ([*OVER, *ANEW], set()),
        ([*OVER[:-1], replace(BARE, unproven=()), *ANEW], {6}),
        ([*OVER, Truncated(T, 0, 6), produced(6, NEW)], {6}),
        ([*OVER, *ANEW, produced(7, NEW)], {7}),
        ([*OVER, replace(BARE, sequence=4, kind="maintenance"), *ANEW], set()),
        ([*OVER, replace(BARE, sequence=4, kind="maintenance", unproven=()), *ANEW], {6}),
        ([*OVER[:-1], replace(BARE, unproven=()), replace(BARE, sequence=4, kind="maintenance"), *ANEW], {6}),
        ([*OVER, CatalogSetBack(2), *ANEW], {6}),
        ([*OVER, *ANEW, GOES_ON], {6}),
        ([*OVER, *ANEW, replace(GOES_ON, ranges=((1, 0, 1),))], set()),
        ([*OVER, *ANEW, replace(GOES_ON, kind="manual")], set()),
        ([*OVER, *ANEW, replace(GOES_ON, told=())], set()),
    ],
    ids=[
        *("nothing lay there", "something did", "an election cut it off", "beyond the position", "it stays there"),
        *("it was kept since", "lost when something was kept", "set back to before"),
        *("an ingest goes on though leader epochs tell", "in another partition", "no ingest", "they do not tell"),
    ],
)
def test_a_position_in_front_of_which_nothing_lay_when_somebody_went_there_tells_of_no_disk_that_is_put_back(
    events: list[Event], unseen: set[int]
) -> None:
    """Over a record that a broker has lost, by name."""
    found = analyse(History(before_quiet(*events)))
    assert {o for a in found if a.what.startswith("never seen") for _, _, o in a.coordinates} == unseen


@pytest.mark.parametrize(("log_start", "unseen"), [(6, {6}), (5, {0, 1, 2, 3, 4, 5, 6})])
def test_where_a_catalog_is_set_back_to_what_retention_has_passed_what_was_written_anew_before_is_not_named(
    log_start: int, unseen: set[int]
) -> None:
    """Though the position that is lost with it was none that retention had passed."""
    anew: list[Event] = [Truncated(T, 0, 0), *(produced(n, NEW) for n in range(7))]
    back = replace(head(3, 0), run="run-2", kind="rewind", generation=2)
    plan = Planned("run-3", "p3", "ingest", 2, 3, T, {0: 0}, ((0, 0, 7),))
    read = Read("run-3", "p3", T, 0, 0, 7, tuple(range(7)))
    made = replace(head(4, 7), run="run-3", kind="ingest", generation=2, plan_id="p3")
    gone = Retained(T, 0, log_start), CatalogSetBack(2)
    events = before_quiet(*anew, Rewound("run-2", "earliest", True), back, plan, read, made, *gone)
    found = analyse(History(events))
    assert {o for a in found if a.what.startswith("never seen") for _, _, o in a.coordinates} == unseen


@pytest.mark.parametrize(
    ("taken", "at_once", "unseen"),
    [(5, True, {5}), (5, False, {3, 4, 5}), (4, True, {3, 4, 5})],
    ids=["since it looked", "before it looked", "not up to there"],
)
def test_where_somebody_goes_back_to_what_retention_takes_meanwhile_what_was_written_anew_before_is_not_named(
    taken: int, at_once: bool, unseen: set[int]
) -> None:
    """As where it passes a position: nobody can ask any more."""
    anew: list[Event] = [Truncated(T, 0, 3), *(produced(n, NEW) for n in range(3, 6))]
    looked, gone = Looked("run-2", "topic"), Retained(T, 0, taken)
    back = replace(head(3, 5), run="run-2", kind="rewind", generation=2)
    told = (looked, gone) if at_once else (gone, looked)
    events = before_quiet(*anew, Rewound("run-2", "offsets", True), Started("run-2", "rewind", 9), *told, back)
    found = analyse(History(events))
    assert {o for a in found if a.what.startswith("never seen") for _, _, o in a.coordinates} == unseen
