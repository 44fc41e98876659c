"""What the checker asks of an operator's decision: that what is told as done is done, and as it was asked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.builders.records import Letter, cut, metadata
from tests.histories.by_hand import (
    CHUNKS,
    LATER,
    NOW,
    WAVE,
    T,
    a_decision,
    held,
    parked,
    planned,
    produced,
    proof_of,
    sound,
    then,
)
from tests.histories.checker import analyse
from tests.histories.events import Abandoned, Answered, Ended, Event, Held, Planned, Unhindered
from tests.histories.history import History
from tests.histories.promotion_events import GateSays

LEFT = "an operator's redrive is told as done, and is not"
ANOTHER = "an operator picked one copy, and head 3 takes another"
OTHER = cut("w1", [b"\x09\x00", b"\x02\x00", b"\x03\x00"], meta=metadata(NOW))[0]
MADE_OF_IT = replace(LATER, samples=b"\x09\x00\x02\x00\x03\x00", chunks=((T, 0, 6, 2, proof_of(OTHER)), *CHUNKS[1:]))


def what(events: list[Event]) -> set[str]:
    return {a.what for a in analyse(History(events))}


def redriven(*more: Event, parks: bool = False, rows: tuple[Event, ...] = (), first: str = "parked") -> list[Event]:
    decision = [replace(e, parks=parks) if isinstance(e, Planned) else e for e in a_decision("redrive", *rows)]
    return then(parked(first), *more, *decision)


@pytest.mark.parametrize(
    ("events", "told"),
    [
        (redriven(), True),
        (redriven(rows=(LATER,)), False),
        (redriven(parks=True), False),
        (redriven(first="open", parks=True), True),
        (redriven(Answered("p2")), False),
        (redriven(GateSays("w1")), False),
        ([e for e in redriven() if not (isinstance(e, Held) and e.offset == 1)], False),
        ([replace(e, stored=e.offset != 1) if isinstance(e, Held) else e for e in redriven()], False),
    ],
)
def test_who_redrives_what_is_whole_and_sound_publishes_it(events: list[Event], told: bool) -> None:
    assert (LEFT in what(events)) is told


def contradicted() -> list[Event]:
    """A whole waveform is held, and another first chunk of it, that came later."""
    first = parked("conflict")
    at = next(n for n, e in enumerate(first) if isinstance(e, Held))
    return [*first[:at], produced(6, OTHER), held(6, OTHER, "d1", "conflict"), *first[at:]]


def picked(pick: str, *rows: Event) -> set[str]:
    decision = [replace(e, pick=pick) if isinstance(e, Planned) else e for e in a_decision("pick", *rows)]
    return what(then(contradicted(), *decision)) & {ANOTHER}


def goes(offset: int, letter: Letter) -> Held:
    return replace(held(offset, letter, "d2", "discarded"), run="run-2", sequence=3)


@pytest.mark.parametrize(
    ("pick", "rows", "told"),
    [
        ("first", (LATER,), False),
        ("last", (LATER,), True),
        ("last", (MADE_OF_IT,), False),
        ("0:6", (MADE_OF_IT,), False),
        (f"{T}:0:6", (LATER,), True),
        ("0:1", (LATER,), False),
        ("0:0", (MADE_OF_IT,), True),
        ("first", (goes(6, OTHER),), False),
        ("last", (goes(6, OTHER),), True),
        ("last", (goes(0, WAVE[0]),), False),
        ("0:9", (LATER,), False),
    ],
)
def test_of_copies_the_one_is_taken_that_was_named(pick: str, rows: tuple[Event, ...], told: bool) -> None:
    assert picked(pick, *rows) == ({ANOTHER} if told else set())


def test_what_was_picked_and_is_whole_is_owed() -> None:
    """What is left of it holds together; what was let go says nothing to that."""
    events, dropped = contradicted(), goes(6, OTHER)
    rows = [replace(held(n, one, "d2"), run="run-2", sequence=3) for n, one in enumerate(WAVE)]
    owed = "whole and sound, and never published"
    assert owed in what(then(events, *a_decision("pick", dropped, *rows)))
    assert owed not in what(then(events, *a_decision("pick", dropped))), "it is in conflict still"
    given_up = planned("p9", run="run-2", kind="held", action="redrive", ids=("w1",))
    assert owed not in what(then(events, *a_decision("pick", dropped, *rows), given_up, Abandoned("p9")))


@pytest.mark.parametrize(
    ("free", "reason", "told"),
    [
        ("run-2", "Refused", True),
        ("run-2", "nothing to do", True),
        ("run-2", "done", False),
        ("run-9", "Refused", False),
    ],
)
def test_what_nothing_speaks_against_is_done(free: str, reason: str, told: bool) -> None:
    ends = [replace(e, reason=reason, text="no") if isinstance(e, Ended) else e for e in a_decision("discard", ids=())]
    said = f"run-2 (held) ended though nothing speaks against it: {reason}, no"
    assert (said in what(then(sound(), Unhindered(free), *ends))) is told
