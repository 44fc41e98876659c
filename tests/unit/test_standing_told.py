"""What keeps a stream from being started by its lag is told as a level: once, after a day again, and when it ends."""

from __future__ import annotations

from wavestitch.contracts.failures_told import AGAIN
from wavestitch.contracts.headroom import Room
from wavestitch.contracts.headroom_told import Told
from wavestitch.contracts.quantities import EpochMs

LOOK = 300_000
GATE = "batch 0123456789abcdef stands at a closed gate"


def told_at(looks: list[str]) -> list[int]:
    """At which of these looks something is told; each is five minutes after the one before."""
    kept, found = Told(), []
    for n, why in enumerate(looks):
        new = kept.seeing(Room(())).standing(why, now=EpochMs(10**12 + n * LOOK))
        if new.must_be_told(kept):
            found.append(n)
        kept = new
    return found


def test_it_is_told_at_the_second_look_and_when_it_ends_and_one_look_is_nothing() -> None:
    assert told_at(["", GATE, GATE, GATE, "", ""]) == [2, 4]
    assert told_at(["", GATE, "", GATE, ""]) == [], "a broker that starts again"


def test_it_is_told_again_after_a_day_and_where_it_is_another_thing_numbers_aside() -> None:
    day = AGAIN // LOOK
    assert told_at([GATE] * (2 * day + 3)) == [1, 1 + day, 1 + 2 * day]
    other = [f"all there is to read lies behind an open transaction (stable end {n})" for n in range(3)]
    assert told_at([GATE, GATE, *other]) == [1, 2]


def test_a_look_that_fails_in_between_ends_nothing() -> None:
    kept = Told().standing(GATE, now=EpochMs(1)).standing(GATE, now=EpochMs(2))
    assert not kept.failing().must_be_told(kept)
    assert kept.failing().seeing(Room(())).standing(GATE, now=EpochMs(3)) == kept


def test_what_was_told_by_a_clock_that_was_ahead_is_told_by_one_that_is_right_and_then_once_a_day() -> None:
    ahead, now = EpochMs(2 * 10**12), EpochMs(10**12)
    kept = Told().standing(GATE, now=ahead).standing(GATE, now=ahead)
    again = kept.standing(GATE, now=now)
    assert again.stands_anew(kept)
    assert not again.standing(GATE, now=EpochMs(now + LOOK)).stands_anew(again)
