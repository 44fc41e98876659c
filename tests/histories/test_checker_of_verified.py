"""What the checker makes of what is told of a waveform that is held, and lies where it lay no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders.records import letter, metadata
from tests.histories.anomaly import Kind
from tests.histories.by_hand import CUT, NOW, OPEN, VERIFIED, T, before_quiet, head, held, produced
from tests.histories.checker import analyse
from tests.histories.events import Event, LostOffset, Produced, Retained, Truncated
from tests.histories.history import History
from tests.histories.table_events import TakenOut

WORDS = ("held", "held, gone from Kafka", "not found in Kafka", "lost", "discarded", "nothing")
LATER = replace(held(5, OPEN[0], "d2", "parked"), sequence=3, stored=False)
TAKEN: list[Event] = [Retained(T, 0, 6)]
NEWER: list[Event] = [LATER, replace(head(3, 6, kind="held", decision="d2"), held=("d1", "d2"))]
WITHOUT: list[Event] = [
    *NEWER,
    TakenOut("run-2", 4, ((T, 0, 5, LATER.piece, "d1"),)),
    replace(head(4, 6, kind="maintenance"), held=("d1", "d2")),
]
"""Its row with the bytes is gone."""


def right(*events: Event, asked: tuple[int, int] = (0, 6)) -> list[str]:
    """Of the words those that may be said of the waveform whose first chunk is held from offset 5."""
    ranges = ((0, *asked),)
    said = replace(VERIFIED, asked=ranges, read=ranges)

    def is_wrong(word: str) -> bool:
        found = (("w2", word),) if word != "nothing" else ()
        told = analyse(History(before_quiet(*events, replace(said, found=found))))
        return any(a.kind is Kind.UNTRUE and "w2" in a.ids for a in told)

    return [word for word in WORDS if not is_wrong(word)]


@pytest.mark.parametrize(
    ("events", "word"),
    [
        ([], "held"),
        (NEWER, "held"),
        (WITHOUT, "held"),
        (TAKEN, "held, gone from Kafka"),
        ([*NEWER, *TAKEN], "held, gone from Kafka"),
        ([*WITHOUT, *TAKEN], "lost"),
        (CUT, "not found in Kafka"),
        ([*WITHOUT, *CUT], "lost"),
        ([LostOffset(T, 0, 5)], "not found in Kafka"),
    ],
    ids=[
        "where it lies",
        "by a newer row without bytes",
        "without bytes",
        "taken",
        "taken, a newer row",
        "taken and without bytes",
        "cut off and written anew",
        "cut off and without bytes",
        "nothing lies there",
    ],
)
def test_of_what_is_held_one_word_is_right(events: list[Event], word: str) -> None:
    assert right(*events) == [word]


@pytest.mark.parametrize(("at_ms", "excused"), [(NOW, True), (NOW + 1, False)])
def test_what_is_no_chunk_may_be_taken_by_its_time_for_what_lay_there(at_ms: int, excused: bool) -> None:
    other = Produced(T, 0, 5, at_ms, None, (), b"{}", "committed")
    words = ["held", "held, gone from Kafka", "not found in Kafka", "lost", "nothing"]
    assert right(Truncated(T, 0, 5), other) == (words if excused else ["not found in Kafka"])


def test_where_nobody_asked_nothing_need_be_said() -> None:
    assert right(*TAKEN, asked=(0, 5)) == ["held", "nothing"]


@pytest.mark.parametrize(("count", "words"), [(1, ["outside", "differs"]), (3, ["outside"]), (None, ["outside"])])
def test_a_copy_that_says_another_number_than_the_row_has_may_be_called_a_difference(
    count: int | None, words: list[str]
) -> None:
    """It lies where another record was read, before the log was cut off."""
    copy = letter("w1", 0, b"\x01\x00", meta=metadata(NOW), count=count)
    ranges = ((0, 5, 6),)

    def is_wrong(word: str) -> bool:
        said = replace(VERIFIED, asked=ranges, read=ranges, found=(("w1", word), ("w2", "not found in Kafka")))
        told = analyse(History(before_quiet(Truncated(T, 0, 5), produced(5, copy), said)))
        return any(a.kind is Kind.UNTRUE and "w1" in a.ids for a in told)

    assert [word for word in ("outside", "differs", "same", "not found in Kafka") if not is_wrong(word)] == words
