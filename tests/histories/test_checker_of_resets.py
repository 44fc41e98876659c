"""What the checker asks of a head that answers the group: the very first, one that takes a reset over, and who is
written over one that nobody has heard."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.histories.anomaly import Kind
from tests.histories.by_hand import T, head
from tests.histories.checker import analyse
from tests.histories.events import Committed, Event, Looked, Projected, Reset, Retained, Rewound, TopicMade
from tests.histories.group_events import OnReset
from tests.histories.history import History

LOOKS = Looked("run-1", "topic"), Looked("run-1", "group")


def begins(at: int, *before: Event, between: tuple[Event, ...] = (), looks: tuple[Event, ...] = LOOKS) -> set[Kind]:
    found = analyse(History([TopicMade(T), *before, *looks, *between, head(1, at)]))
    return {a.kind for a in found if "first head begins" in a.what}


def test_the_very_first_head_begins_where_the_log_does() -> None:
    assert begins(0) == set()
    assert begins(4) == {Kind.UNEXPLAINED_GAP}
    taken = Retained(T, 0, 3)
    assert begins(3, taken) == begins(0, between=(taken,)) == begins(2, between=(taken,)) == set()
    assert begins(0, taken) == {Kind.STALE_WRITER}, "where it did not begin any more when it looked"
    assert begins(4, taken) == {Kind.UNEXPLAINED_GAP}


def test_so_it_does_where_the_topic_was_made_anew_as_it_looked() -> None:
    """Asked by its name; the head is of the one that is gone."""
    taken, anew = Retained(T, 0, 3), TopicMade("topic-2")
    assert begins(0, taken, between=(anew,)) == begins(3, taken, between=(anew,)) == set()
    assert begins(1, taken, between=(anew,)) == {Kind.STALE_WRITER}
    assert begins(2, taken, between=(anew, Retained("topic-2", 0, 2))) == set()


def test_the_very_first_head_begins_where_the_group_stands() -> None:
    stands = Reset(T, 0, 5)
    assert begins(5, stands) == begins(5, between=(stands, *LOOKS)) == begins(0, between=(stands, *LOOKS)) == set()
    assert begins(0, stands) == begins(6, stands) == {Kind.STALE_WRITER}
    assert begins(5, Reset(T, 1, 5)) == begins(5, between=(stands,)) == {Kind.UNEXPLAINED_GAP}
    assert begins(0, stands, Reset(T, 0, None)) == set(), "it has expired"
    assert begins(5, looks=()) == set(), "nobody knows what it had seen"


BOTH = {0: 6, 1: 6}
FIRST = head(1, 0, positions=BOTH)


def moved(kind: str, positions: dict[int, int], **more: object) -> Committed:
    return replace(FIRST, run="run-2", sequence=2, generation=2, kind=kind, positions=positions, **more)  # type: ignore[arg-type]


def written_over(*answers: Event, reset: int = 4, positions: dict[int, int] = BOTH) -> bool:
    """Partition 1 was reset; then a run that saw it shows head 2."""
    looks: list[Event] = [Looked("run-2", "group"), *answers, Looked("run-2", "group")]
    shows = Projected("run-2", T, positions, 2, 2)
    found = analyse(History([TopicMade(T), FIRST, Reset(T, 1, reset), *looks, shows]))
    return any("written over and never taken over" in a.what for a in found)


BACK, AHEAD = {0: 6, 1: 4}, {0: 5, 1: 6}


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ((), True),
        ((moved("adopted", BACK),), False),
        ((moved("adopted", AHEAD),), True),
        ((moved("rewind", BOTH),), False),
        ((Rewound("run-2", "earliest", True), moved("rewind", BOTH)), False),
        ((Rewound("run-2", "offsets", True, (1,)), moved("rewind", BOTH)), False),
        ((Rewound("run-2", "offsets", True, (0,)), moved("rewind", AHEAD)), True),
        ((Rewound("run-3", "offsets", True, (0,)), moved("rewind", BOTH)), False),
        ((moved("rebuilt", BOTH),), False),
        ((moved("ingest", BOTH),), True),
    ],
    ids=[
        *("by nobody", "taken over", "another one is taken over", "undone", "all are rewound", "it is rewound"),
        *("another one is rewound", "somebody else rewinds another one", "the head is made anew", "a batch"),
    ],
)
def test_a_reset_is_heard_by_who_takes_it_over_or_names_its_partition(answers: tuple[Event, ...], told: bool) -> None:
    assert written_over(*answers) is told


@pytest.mark.parametrize(("adopts", "to", "told"), [(True, 4, False), (False, 4, True), (False, 6, False)])
def test_a_stream_that_refuses_resets_takes_none_over_that_moves_it(adopts: bool, to: int, told: bool) -> None:
    reset = Reset(T, 1, to), Looked("run-2", "group")
    found = analyse(History([OnReset(adopts), TopicMade(T), FIRST, *reset, moved("adopted", {0: 6, 1: to})]))
    assert any("refuses them" in a.what for a in found) is told


def test_a_partition_that_no_head_knows_stands_at_0() -> None:
    for to, told in ((0, False), (2, True)):
        reset = Reset(T, 2, to), Looked("run-2", "group")
        found = analyse(History([OnReset(False), TopicMade(T), FIRST, *reset, moved("adopted", {**BOTH, 2: to})]))
        assert any("refuses them" in a.what for a in found) is told


def test_where_nobody_says_so_resets_are_taken_over() -> None:
    found = analyse(History([TopicMade(T), FIRST, Reset(T, 1, 4), Looked("run-2", "group"), moved("adopted", BACK)]))
    assert not [a for a in found if "refuses them" in a.what]
