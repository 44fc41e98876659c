"""What the checker asks of a held row: that it is of what lies there, and that its reason is nobody's invention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders.records import cut, metadata
from tests.histories.anomaly import Kind
from tests.histories.by_hand import NOW, OPEN, WAVE, a_decision, held, parked, produced, sound, swap, then
from tests.histories.checker import analyse
from tests.histories.events import Answered, Committed, Event, GateClosed, Held
from tests.histories.history import History
from tests.histories.promotion_events import GateSays, Spoils

COPY = cut("w1", [b"\x09\x00", b"\x02\x00", b"\x03\x00"], meta=metadata(NOW))[0]
ROW_OF_W2 = held(5, OPEN[0], "d1")


def said(events: list[Event]) -> set[str]:
    return {a.what for a in analyse(History(events)) if a.kind is Kind.INVENTED}


def stands(reason: str) -> list[Event]:
    """Nobody spoils anything."""
    return [e for e in parked(reason) if not isinstance(e, Spoils)]


def before_held(*more: Event, reason: str) -> list[Event]:
    events = stands(reason)
    at = next(n for n, e in enumerate(events) if isinstance(e, Held))
    return [*events[:at], *more, *events[at:]]


@pytest.mark.parametrize(
    ("events", "what"),
    [
        (stands("discarded"), {"discarded, and no operator let it go"}),
        (stands("parked"), {"parked, and no gate was closed"}),
        (stands("conflict"), {"held as a conflict, and nothing contradicts it"}),
        (before_held(produced(6, WAVE[0]), reason="conflict"), {"held as a conflict, and nothing contradicts it"}),
        (before_held(produced(6, COPY), reason="conflict"), set()),
        (before_held(GateClosed("p1"), reason="parked"), set()),
        (before_held(Answered("p1"), reason="parked"), set()),
        (before_held(Spoils(("w2",)), reason="parked"), set()),
        (before_held(Spoils(("w9",)), reason="parked"), {"parked, and no gate was closed"}),
        (before_held(GateSays("w2"), reason="parked"), set()),
        (stands("open"), set()),
    ],
)
def test_a_reason_is_not_the_row_s_own_word(events: list[Event], what: set[str]) -> None:
    assert said(events) == what


@pytest.mark.parametrize(
    ("action", "ids", "what"),
    [
        ("discard", ("w1", "w2"), set()),
        ("pick", ("w1", "w2"), set()),
        ("discard", ("w1",), {"discarded, and no operator let it go"}),
        ("redrive", ("w1", "w2"), {"discarded, and no operator let it go"}),
    ],
)
def test_what_is_discarded_somebody_let_go(action: str, ids: tuple[str, ...], what: set[str]) -> None:
    goes = replace(held(5, OPEN[0], "d2", "discarded"), run="run-2", sequence=3)
    assert said(then(sound(), *a_decision(action, goes, ids=ids))) == what


def test_what_comes_where_somebody_let_it_go_before_is_let_go_too() -> None:
    goes = replace(held(5, OPEN[0], "d2", "discarded"), run="run-2", sequence=3)
    again = [replace(e, decision="d3", sequence=4) for e in a_decision("redrive", goes) if isinstance(e, Held)]
    later = [replace(e, sequence=4, decision="d3") for e in a_decision("redrive") if isinstance(e, Committed)]
    assert said(then(sound(), *a_decision("discard", goes, ids=("w2",)), *again, *later)) == set()


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"id": "zz"}, {"held as a chunk that does not lie there"}),
        ({"seq": 9}, {"held as a chunk that does not lie there"}),
        ({"piece": "00" * 32}, {"held as a chunk that does not lie there"}),
        ({"valid": False, "reason": "corrupt"}, {"held as no chunk, and it is one"}),
        ({}, set()),
    ],
)
def test_a_held_row_is_of_what_lies_there(changes: dict[str, Any], what: set[str]) -> None:
    assert said(swap(ROW_OF_W2, replace(ROW_OF_W2, **changes))) == what


def decided(action: str, *rows: Held, ids: tuple[str, ...] = ("w2",), first: str = "open") -> list[str]:
    waits = replace(ROW_OF_W2, reason=first)
    events = then(swap(ROW_OF_W2, waits), *a_decision(action, *rows, ids=ids))
    return [a.what for a in analyse(History(events)) if a.kind is Kind.UNTRUE and "operator" in a.what]


def test_a_decision_that_changes_nothing_is_not_told_as_done() -> None:
    goes = replace(held(5, OPEN[0], "d2", "discarded"), run="run-2", sequence=3)
    stays = replace(goes, reason="conflict")
    for action in ("accept", "discard"):
        assert decided(action) == [f"an operator's {action} is told as done, and is not"]
    assert decided("discard", goes) == decided("redrive") == []
    assert decided("accept", ids=("w1",)) == [], "it is published"
    assert (
        decided("pick", first="conflict")
        == decided("pick", stays)
        == ["an operator's pick is told as done, and is not"]
    )
    assert decided("pick", replace(goes, reason="open"), first="conflict") == []
    assert decided("restore", first="discarded") == ["an operator's restore is told as done, and is not"]
    assert decided("restore", replace(goes, reason="open"), first="discarded") == []
