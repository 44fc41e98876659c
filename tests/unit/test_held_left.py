"""Which snapshot of the held table a head that is made anew names: what a head is known to have named, and no other."""

from __future__ import annotations

import pytest

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held_left import Choice, HeldLeft, LeftSnapshot, choose_held


def ours(n: int, *, generation: int = 1) -> LeftSnapshot:
    """Staged for head `n`."""
    return LeftSnapshot(n, f"d{n}", generation, n, rows=1)


MAIN = (ours(5), ours(4))
STRANGE = LeftSnapshot(9, "", 0, 0, rows=1)
"""Made by another tool."""
D6, D7 = (6, "d6"), (7, "d7")


def test_where_nothing_is_left_nothing_is_named() -> None:
    assert choose_held(HeldLeft(), recorded=()) == Choice(None, None, (), 0)


@pytest.mark.parametrize(
    ("recorded", "named", "taken", "unproven"),
    [
        ((), None, 5, (6, 7)),
        ((D6,), None, 6, (7,)),
        ((D6, D7), None, 7, ()),
        ((D7, D6), None, 7, ()),
        ((), 6, 6, (7,)),
        ((D6,), 7, 7, ()),
        (((6, "d7"), (7, "d6")), None, 5, (6, 7)),
    ],
)
def test_of_what_is_staged_the_newest_counts_that_the_history_or_a_head_knows(
    recorded: tuple[tuple[int, str], ...], named: int | None, taken: int, unproven: tuple[int, ...]
) -> None:
    left = HeldLeft(MAIN, (ours(6), ours(7)))
    assert choose_held(left, recorded=recorded, named=named) == Choice(ours(taken), None, tuple(map(ours, unproven)), 7)


def test_what_is_staged_for_a_head_before_main_s_is_over() -> None:
    left = HeldLeft(MAIN, (ours(3), ours(5, generation=0)))
    assert choose_held(left, recorded=((3, "d3"), (5, "d5"))) == Choice(ours(5), None, (), 5)


def test_what_another_tool_made_of_main_is_taken_and_what_was_there_before_is_named() -> None:
    changed = HeldLeft((STRANGE, *MAIN), (ours(6),))
    assert choose_held(changed, recorded=()) == Choice(STRANGE, ours(5), (ours(6),), 6)
    assert choose_held(changed, recorded=(D6,)) == Choice(ours(6), None, (), 6)
    assert choose_held(HeldLeft((STRANGE,)), recorded=()) == Choice(STRANGE, None, (), 0)


def test_what_an_operator_names_is_taken_and_what_would_have_been_is_named() -> None:
    left = HeldLeft(MAIN, (ours(6), ours(7)), (*MAIN, ours(6), ours(7), ours(8)))
    assert choose_held(left, recorded=(), wanted=4) == Choice(ours(4), ours(5), (ours(6), ours(7)), 8)
    assert choose_held(left, recorded=(), wanted=5) == Choice(ours(5), None, (ours(6), ours(7)), 8)
    assert choose_held(left, recorded=(), wanted=6) == Choice(ours(6), ours(5), (ours(7),), 8)
    assert choose_held(left, recorded=(), wanted=7) == Choice(ours(7), ours(5), (), 8)
    changed = HeldLeft((STRANGE, *MAIN), (), (STRANGE, *MAIN))
    assert choose_held(changed, recorded=(), wanted=5) == Choice(ours(5), None, (), 5)
    assert choose_held(changed, recorded=(), wanted=4) == Choice(ours(4), ours(5), (), 5)
    with pytest.raises(Refused, match=r"no snapshot 1; it has snapshot 5 \(1 rows, staged for head 5\), .*"):
        choose_held(left, recorded=(), wanted=1)
