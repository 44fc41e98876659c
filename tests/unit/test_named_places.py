"""Places of records and copies as people name them."""

from __future__ import annotations

import pytest

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.held_choice import check_pick
from wavestitch.contracts.offset_range import parse_place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("0:7", ("", 0, 7)),
        ("AAAbb_-c:3:999999999999999999", ("AAAbb_-c", 3, 999999999999999999)),
        ("0", None),
        ("0:", None),
        ("0:-1", None),
        ("a:b:0:7", None),
        ("0:٧", None),
        ("0:7\n", None),
        ("0:9999999999999999999", None),
        ("9999999999999999999:0", None),
        ("0:" + "9" * 5000, None),
    ],
)
def test_a_place_has_numbers_that_kafka_has(text: str, place: tuple[str, int, int] | None) -> None:
    assert parse_place(text) == place


def test_a_pick_of_no_place_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(BadInput, match="allowed are first, last, PARTITION:OFFSET or TOPICID:PARTITION:OFFSET"):
        check_pick("0:" + "9" * 5000)
