"""What the checker asks of a held row: that it is of what lies there, and that its reason is nobody's invention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.builders.records import Letter, cut, metadata
from tests.histories.anomaly import Kind
from tests.histories.by_hand import (
    NEW,
    NOW,
    OPEN,
    WAVE,
    T,
    a_decision,
    head,
    held,
    parked,
    planned,
    produced,
    sound,
    swap,
    then,
)
from tests.histories.checker import analyse
from tests.histories.events import Answered, Committed, Event, GateClosed, Held, Planned, Read
from tests.histories.history import History
from tests.histories.promotion_events import GateSays, Spoils

COPY = cut("w1", [b"\x09\x00", b"\x02\x00", b"\x03\x00"], meta=metadata(NOW))[0]
ROW_OF_W2 = held(5, OPEN[0], "d1")
OTHER_W2, LAST_W2 = cut("w2", [b"\x09\x00", b"\x08\x00"], meta=metadata(NOW))


READS = Read("run-1", "p1", T, 0, 6, 7, (6,))
BESIDE, MORE = (
    (produced(offset, one), held(offset, one, "d1", "parked"))
    for offset, one in ((6, NEW), (7, cut("w4", [b"\x05\x00"], meta=metadata(NOW))[0]))
)
STOPS = replace(next(e for e in sound() if isinstance(e, Planned)), parks=False)


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
        (before_held(produced(6, COPY), reason="conflict"), {"held as a conflict, and nothing contradicts it"}),
        (before_held(produced(6, COPY), READS, reason="conflict"), set()),
        (before_held(GateClosed("p1"), reason="parked"), {"parked, and no gate was closed"}),
        (before_held(Answered("p1"), reason="parked"), set()),
        (before_held(Spoils(("w1",)), reason="parked"), set()),
        (before_held(Spoils(("w2",)), reason="parked"), {"parked, and no gate was closed"}),
        (before_held(Spoils(("w1",)), *BESIDE, reason="parked"), set()),
        (before_held(Spoils(("w1",)), *BESIDE, *MORE, reason="parked"), {"parked, and no gate was closed"}),
        (before_held(Spoils(("w1",)), STOPS, reason="parked"), {"parked, and no gate was closed"}),
        (before_held(STOPS, Answered("p1"), reason="parked"), set()),
        (before_held(GateSays("w2"), reason="parked"), {"parked, and no gate was closed"}),
        (stands("open"), set()),
    ],
)
def test_a_reason_is_not_the_row_s_own_word(events: list[Event], what: set[str]) -> None:
    assert said(events) == what


@pytest.mark.parametrize(("spoils", "right"), [("w4", True), ("w5", False)])
def test_what_joins_what_was_parked_before_is_no_part_of_what_a_gate_closes_for(spoils: str, right: bool) -> None:
    sent = (NEW, cut("w4", [b"\x05\x00"], meta=metadata(NOW))[0], WAVE[0])
    rows = [replace(held(6 + n, one, "d3", "parked"), run="run-3", sequence=3) for n, one in enumerate(sent)]
    plan = planned("p3", run="run-3", ranges=((0, 6, 9),))
    made = replace(head(3, 9), run="run-3", kind="ingest", plan_id="p3", decision="d3")
    read = Read("run-3", "p3", T, 0, 6, 9, (6, 7, 8))
    before = before_held(Answered("p1"), Spoils((spoils,)), reason="parked")
    came = [produced(6 + n, one) for n, one in enumerate(sent)]
    more: list[Event] = [*came, plan, read, *rows, made]
    assert said(then(before, *more)) == (set() if right else {"parked, and no gate was closed"})


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


def comes_again(letter: Letter, reason: str, *, of: str = "discarded") -> list[Event]:
    """Beside a chunk of w2 that is held, at offset 5."""
    goes = replace(held(5, OPEN[0], "d2", of), run="run-2", sequence=3)
    plan = planned("p3", run="run-3", ranges=((0, 6, 7),))
    reads = Read("run-3", "p3", T, 0, 6, 7, (6,))
    row = replace(held(6, letter, "d3", reason), run="run-3", sequence=4)
    made = replace(head(4, 7), run="run-3", kind="ingest", plan_id="p3", decision="d3")
    decided = a_decision("discard" if of == "discarded" else "redrive", goes, ids=("w2",))
    return then(sound(), *decided, produced(6, letter), plan, reads, row, made)


@pytest.mark.parametrize(
    ("letter", "reason", "of", "what"),
    [
        (OPEN[0], "conflict", "discarded", {"held as a conflict, and an operator let that very copy go"}),
        (OPEN[0], "discarded", "discarded", set()),
        (OTHER_W2, "conflict", "discarded", {"held as a conflict, and nothing contradicts it"}),
        (OTHER_W2, "conflict", "open", set()),
        (OTHER_W2, "discarded", "discarded", set()),
        (OTHER_W2, "discarded", "open", {"discarded, and no operator let it go"}),
    ],
)
def test_what_an_operator_let_go_contradicts_nothing_when_it_comes_again(
    letter: Letter, reason: str, of: str, what: set[str]
) -> None:
    assert said(comes_again(letter, reason, of=of)) == what


def test_beside_what_was_let_go_nothing_else_is() -> None:
    """One of two copies of a chunk was picked; the other, and nothing but that, stays away."""
    sent: list[Event] = [produced(6, OTHER_W2), held(6, OTHER_W2, "d1")]
    picked = replace(held(6, OTHER_W2, "d2", "discarded"), run="run-2", sequence=3)

    def comes(letter: Letter) -> set[str]:
        plan, reads = planned("p3", run="run-3", ranges=((0, 7, 8),)), Read("run-3", "p3", T, 0, 7, 8, (7,))
        row = replace(held(7, letter, "d3", "discarded"), run="run-3", sequence=4)
        made = replace(head(4, 8), run="run-3", kind="ingest", plan_id="p3", decision="d3")
        events = swap(ROW_OF_W2, *sent, ROW_OF_W2)
        return said(then(events, *a_decision("pick", picked, ids=("w2",)), produced(7, letter), plan, reads, row, made))

    assert comes(OTHER_W2) == set()
    assert comes(LAST_W2) == {"discarded, and no operator let it go"}


@pytest.mark.parametrize(("reason", "what"), [("open", set()), ("parked", {"restored as parked, and it was open"})])
def test_what_is_restored_is_held_as_it_was(reason: str, what: set[str]) -> None:
    goes = replace(held(5, OPEN[0], "d2", "discarded"), run="run-2", sequence=3)
    back = [replace(goes, reason=reason, decision="d3", sequence=4)]
    plan = planned("p3", run="run-2", kind="held", action="restore", ids=("w2",))
    made = replace(head(4, 6), run="run-2", kind="held", plan_id="p3", decision="d3")
    assert said(then(sound(), *a_decision("discard", goes, ids=("w2",)), plan, *back, made)) == what


@pytest.mark.parametrize(("letter", "reason"), [(OPEN[0], "open"), (LAST_W2, "open"), (LAST_W2, "conflict")])
def test_what_came_while_it_was_let_go_is_restored_as_its_neighbours_were(letter: Letter, reason: str) -> None:
    events = comes_again(letter, "discarded")
    plan = planned("p4", run="run-4", kind="held", action="restore", ids=("w2",))
    rows = [replace(held(5, OPEN[0], "d4"), sequence=5), replace(held(6, letter, "d4", reason), sequence=5)]
    made = replace(head(5, 7), run="run-4", kind="held", plan_id="p4", decision="d4")
    what = {"restored as conflict, and it was open"} if reason == "conflict" else set()
    assert said(then(events, plan, *rows, made)) == what


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
