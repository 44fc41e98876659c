"""What a head that is made anew has to name, as the checker reads it: what the history knows, and the tables lack."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.histories.anomaly import Kind
from tests.histories.by_hand import (
    NEW,
    OPEN,
    T,
    a_decision,
    before_quiet,
    head,
    held,
    kinds,
    parked,
    produced,
    projected,
    then,
)
from tests.histories.checker import analyse
from tests.histories.events import Event, Held, Recorded, Rewound, TopicMade, Truncated
from tests.histories.history import History
from tests.histories.table_events import CatalogSetBack, Deleted, Forgotten, HistoryLost, TakenOut

DISCARDED = a_decision(
    "discard",
    *(replace(one, reason="discarded", sequence=3) for one in parked() if isinstance(one, Held)),
    ids=("w1", "w2"),
)
"""Of the sound history's waveform that is parked, and of the chunk that waits."""


def test_a_rebuilt_head_names_the_words_that_it_goes_back_on_as_far_as_the_history_knows_them() -> None:
    bare = [replace(e, decision="d2", payload=None, stored=False) if isinstance(e, Held) else e for e in DISCARDED]
    gone = tuple((*e.coordinate, e.piece, "d2") for e in bare if isinstance(e, Held))
    note = "head rebuilt; accepted as missing: the last word on {} held chunks"
    for recorded, said, found in ((True, 4, []), (True, 3, [Kind.STALE_WRITER]), (False, 0, [])):
        row: list[Event] = [Recorded("run-2", 3, "d2", {})] if recorded else []
        anew = replace(head(4, 6), run="run-3", kind="rebuilt", generation=2, note=note.format(said), held=("d1",))
        more: list[Event] = [Rewound("run-3", "rebuilt", True), TakenOut("run-3", 4, gone), anew]
        assert kinds([*then(parked(), *bare, *row, *more, projected(6, 4, 2, "run-3"))][:-1]) == found


def test_a_rebuilt_head_names_the_bytes_that_are_gone() -> None:
    """The row of the chunk that waits is taken out; a newer one, without its bytes, is left."""
    row = held(5, OPEN[0], "d1")
    newer = replace(row, decision="d2", reason="open", payload=None, stored=False, sequence=3)
    made: list[Event] = [*a_decision("redrive", newer, ids=("w2",)), Recorded("run-2", 3, "d2", {})]
    gone = TakenOut("run-3", 4, ((*row.coordinate, row.piece, "d1"),))
    for note, found in (("the bytes of 1 held chunks", []), ("", [Kind.LOST, Kind.LOST])):
        anew = replace(head(4, 6), run="run-3", kind="rebuilt", generation=2, note=note, held=("d1", "d2"))
        events = before_quiet(*made, Rewound("run-3", "rebuilt", True), gone, anew, projected(6, 4, 2, "run-3"))
        assert kinds(events[:-1]) == found


def test_a_rebuilt_head_names_the_published_rows_that_somebody_deleted_from_batches_that_the_history_knows() -> None:
    for note, found in (("accepted as missing: 1 published waveforms", []), ("", [Kind.LOST])):
        anew = replace(head(3, 6), run="run-3", kind="rebuilt", generation=2, note=note)
        more: list[Event] = [Deleted(("w1",)), Rewound("run-3", "rebuilt", True), anew, projected(6, 3, 2, "run-3")]
        assert kinds(before_quiet(*more)) == found
        unknown: list[Event] = [HistoryLost((2,)), *more]
        assert kinds(before_quiet(*unknown)[:-1]) == [], "then nobody can"


def test_a_head_rebuilt_without_a_rewind_that_nobody_wrote_down_has_its_cut_told_by_the_next_plan() -> None:
    back = replace(head(3, 0), run="run-2", kind="rewind", generation=2)
    anew = replace(head(4, 6), run="run-3", kind="rebuilt", generation=3)
    for row, found in (([], []), ([Recorded("run-2", 3, "", {})], [Kind.UNEXPLAINED_GAP])):
        cut: list[Event] = [Truncated(T, 0, 0), *(produced(n, NEW) for n in range(7))]
        rewinds: list[Event] = [Rewound("run-2", "earliest", True), back, *row, Rewound("run-3", "rebuilt", True), anew]
        assert kinds(before_quiet(*cut, *rewinds, projected(6, 4, 3, "run-3"))[:-1]) == found


def test_what_was_read_before_a_rewind_that_nobody_wrote_down_is_skipped_by_no_head_that_is_rebuilt() -> None:
    """Nor is what held nothing: an aborted record, and its marker."""
    back = replace(head(3, 0), run="run-2", kind="rewind", generation=2)
    anew = replace(head(4, 7), run="run-3", kind="rebuilt", generation=3)
    rewinds: list[Event] = [Rewound("run-2", "earliest", True), back, Rewound("run-3", "rebuilt", True)]
    for to, found in ((6, []), (7, [Kind.UNEXPLAINED_GAP])):
        made = replace(anew, positions={0: to}), projected(to, 4, 3, "run-3")
        assert kinds(before_quiet(produced(6, NEW), *rewinds, *made)[:-1]) == found


def test_what_was_held_where_no_main_shows_it_is_given_up_by_a_rebuilt_head_that_names_its_offsets() -> None:
    """The log has lost them meanwhile, so that nobody reads them again."""
    for skipped, found in ((((0, 5, 6),), []), ((), [Kind.LOST])):
        anew = replace(head(3, 6), run="run-3", kind="rebuilt", generation=2, held=(), skipped=skipped)
        more: list[Event] = [Rewound("run-3", "rebuilt", True), anew, projected(6, 3, 2, "run-3")]
        assert kinds(before_quiet(*more)) == found


def test_what_a_rewind_took_back_that_nobody_wrote_down_is_given_up_as_it_was() -> None:
    """By whoever went over it by name before that; the group shows the head of then."""
    over = replace(head(3, 7), run="run-2", kind="rewind", generation=2, skipped=((0, 6, 7),))
    back = replace(head(4, 6), run="run-3", kind="rewind", generation=3)
    anew = replace(head(5, 7), run="run-4", kind="rebuilt", generation=4)
    first: list[Event] = [produced(6, NEW), Rewound("run-2", "offsets", True), over, Recorded("run-2", 3, "", {})]
    then_back: list[Event] = [Rewound("run-3", "offsets", True), back]
    rebuilt: list[Event] = [Rewound("run-4", "rebuilt", True), anew, projected(7, 5, 4, "run-4")]
    assert kinds(before_quiet(*first, *then_back, *rebuilt)) == []
    written: list[Event] = [*then_back, Recorded("run-3", 4, "", {})]
    assert Kind.UNEXPLAINED_GAP in kinds(before_quiet(*first, *written, *rebuilt))
    never: list[Event] = [produced(6, NEW), *then_back]
    assert Kind.UNEXPLAINED_GAP in kinds(before_quiet(*never, *rebuilt))


def made_anew(note: str, *, topic: str = T, position: int = 6, skipped: Any = ()) -> list[Event]:
    """After it nothing of what was held counts."""
    anew = replace(head(4, position), run="run-2", kind="rebuilt", generation=2, topic_id=topic, skipped=skipped)
    return [Rewound("run-2", "rebuilt", True), replace(anew, held=(), note=note), projected(position, 4, 2, "run-2")]


def test_what_a_rebuilt_head_does_not_hold_is_lost_unless_it_is_read_again_or_named() -> None:
    assert kinds(before_quiet(*made_anew("head rebuilt"))) == [Kind.LOST]
    assert kinds(before_quiet(*made_anew("head rebuilt", position=5))[:-1]) == [], "it is read again"
    named = made_anew("head rebuilt", skipped=((0, 5, 6),))
    assert kinds(before_quiet(*named)[:-1]) == []


@pytest.mark.parametrize(
    ("note", "found"),
    [
        ("head rebuilt; accepted as missing: 1 held chunks, not known which", []),
        ("head rebuilt; not taken: 1 held chunks, staged", []),
        ("head rebuilt; accepted as missing: the last word on 1 held chunks, not known which", [Kind.LOST]),
        ("head rebuilt; accepted as missing: 1 published waveforms", [Kind.LOST]),
        ("head rebuilt", [Kind.LOST]),
    ],
)
def test_what_the_log_has_no_more_is_gone_with_a_head_only_as_many_as_the_next_one_says(
    note: str, found: list[Kind]
) -> None:
    events = before_quiet(TopicMade("topic-2"), *made_anew(note, topic="topic-2", position=0))
    assert kinds(events[:-1]) == found


DROPPED, LOST, FORGOTTEN = CatalogSetBack(0, dropped=True), HistoryLost((5,)), Forgotten(5, "")


@pytest.mark.parametrize(
    ("told", "right"),
    [
        ((DROPPED, LOST, FORGOTTEN), True),
        ((LOST, FORGOTTEN), False),
        ((DROPPED, FORGOTTEN), False),
        ((DROPPED, LOST), False),
    ],
    ids=["nobody knows it", "of the first table", "the history knows it", "the table knows it"],
)
def test_a_rebuilt_head_is_beyond_the_last_one_unless_nothing_says_its_number(
    told: tuple[Event, ...], right: bool
) -> None:
    first = replace(head(5, 6), run="run-3", kind="first", generation=2)
    anew = replace(head(4, 6), run="run-4", kind="rebuilt", generation=3)
    dropped, gone = [e for e in told if e is DROPPED], [e for e in told if e is not DROPPED]
    found = analyse(History(before_quiet(*dropped, first, *gone, anew)))
    assert any("follows head 5" in a.what for a in found) is not right
