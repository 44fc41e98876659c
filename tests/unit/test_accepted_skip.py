"""What an operator accepts that nobody reads: by name, and no more; as a command names it, it is read again."""

from __future__ import annotations

import pytest

from tests.builders.ranges import span
from wavestitch.batch.request import parse_accepted
from wavestitch.contracts.accepted_skip import accepting, not_accepted
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.offset_range import OffsetRange

SKIPPED = (span(0, 5, 9), span(2, 7, 8))


@pytest.mark.parametrize(
    ("accepted", "left"),
    [
        (True, []),
        (False, [*SKIPPED]),
        ((), [*SKIPPED]),
        (SKIPPED, []),
        ((span(0, 0, 100), span(2, 7, 8)), []),
        ((span(0, 5, 8), span(2, 7, 8)), [span(0, 8, 9)]),
        ((span(0, 6, 9), span(2, 7, 8)), [span(0, 5, 6)]),
        ((span(1, 5, 9), span(2, 7, 8)), [span(0, 5, 9)]),
        ((span(0, 5, 9),), [span(2, 7, 8)]),
    ],
)
def test_what_was_not_named_is_not_accepted(accepted: bool | tuple[OffsetRange, ...], left: list[OffsetRange]) -> None:
    assert not_accepted(SKIPPED, accepted) == left


def test_a_command_names_what_it_skips_and_accepts_exactly_that() -> None:
    assert accepting(SKIPPED) == " --accept-skip 0:5-9,2:7-8"
    assert parse_accepted(accepting(SKIPPED).split()[1]) == SKIPPED
    assert accepting([]) == ""


@pytest.mark.parametrize(("count", "said"), [(100, True), (101, False)])
def test_more_ranges_than_anybody_reads_are_accepted_as_they_are_shown(count: int, said: bool) -> None:
    many = [span(p, 0, 1) for p in range(count)]
    assert (accepting(many) == " --accept-skip all") is not said
    assert not not_accepted(many, parse_accepted(accepting(many).split()[1]))


@pytest.mark.parametrize(("text", "accepted"), [("", False), ("  ", False), ("all", True), (" all ", True)])
def test_nothing_is_accepted_by_saying_nothing(text: str, accepted: bool) -> None:
    assert parse_accepted(text) is accepted


@pytest.mark.parametrize("text", ["yes", "0:5", "0:9-5", "0:5-9,", "all,0:5-9", "0:5-9 2:7-8"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="is not PARTITION:START-END"):
        parse_accepted(text)
