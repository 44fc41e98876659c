"""What becomes of a waveform by another definition: the table of examples that is its specification."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.streams import make_stream
from wavestitch.contracts.definition_change import (
    Change,
    changed,
    changes_in_words,
    counts_of_changes,
    exit_code_of_changes,
    otherwise,
)
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.verification import Agreement, Compared

EXAMPLES = {
    (Agreement.SAME, True): Change.SAME,
    (Agreement.DIFFERS, True): Change.DIFFERS,
    (Agreement.DIFFERS, False): Change.NEWLY_FAILING,
    (Agreement.NEWLY_FAILING, False): Change.NEWLY_FAILING,
    (Agreement.NEWLY_FAILING, True): Change.DIFFERS,
    (Agreement.ACCEPTED, False): Change.ACCEPTED,
    (Agreement.MISSING_IN_KAFKA, False): Change.GONE,
    (Agreement.NOT_FOUND, False): Change.GONE,
    (Agreement.HELD, True): Change.NEWLY_PUBLISHED,
    (Agreement.HELD, False): Change.NOT_PUBLISHED,
    (Agreement.HELD_ALONE, False): Change.GONE,
    (Agreement.LOST, False): Change.GONE,
    (Agreement.MISSING_IN_TABLE, True): Change.MISSING,
    (Agreement.MISSING_IN_TABLE, False): Change.MISSING,
    (Agreement.SKIPPED, True): Change.OUTSIDE,
    (Agreement.DISCARDED, True): Change.DISCARDED,
    (Agreement.DISCARDED, False): Change.DISCARDED,
    (Agreement.OUTSIDE, True): Change.OUTSIDE,
    (Agreement.OUTSIDE, False): Change.OUTSIDE,
}


@pytest.mark.parametrize(("found", "passes"), EXAMPLES, ids=str)
def test_a_waveform_is(found: Agreement, passes: bool) -> None:
    one = changed(Compared("w", found, "so", ("units",), "batch", passes=passes))
    assert (one.change, one.columns, one.plan_id) == (EXAMPLES[found, passes], ("units",), "batch")
    assert "so" in one.why


def test_what_is_held_of_which_a_part_was_not_read_is_outside_whatever_the_rest_is() -> None:
    for passes in (True, False):
        one = changed(Compared("w", Agreement.HELD, "parked: it closed", passes=passes, seen=False))
        assert (one.change, one.why) == (
            Change.OUTSIDE,
            "others of its held chunks were not read with it; parked: it closed",
        )


def test_why_it_is_held_and_what_refuses_it_now_are_both_said() -> None:
    one = changed(Compared("w", Agreement.HELD, "parked: it closed", refused="too_large: 2 chunks"))
    assert one.why == "too_large: 2 chunks; held for parked: it closed"


def test_whatever_a_verification_finds_has_its_example() -> None:
    assert {found for found, _ in EXAMPLES} == set(Agreement)
    assert set(EXAMPLES.values()) == set(Change)


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ({"same": 3}, 0),
        ({"accepted": 1, "outside": 2}, 0),
        ({"not published": 1, "discarded": 1}, 0),
        ({"same": 3, "differs": 1}, 6),
        ({"newly published": 1, "gone": 1}, 6),
        ({"same": 3, "newly failing": 1}, 6),
        ({"same": 3, "gone": 1}, 7),
        ({"same": 3, "missing in the table": 1}, 7),
        ({"outside": 1}, 7),
        ({}, 7),
    ],
)
def test_the_exit_code_says_whether_it_would_change_something(counts: dict[str, int], code: int) -> None:
    assert exit_code_of_changes(counts) == code


def test_in_words_each_kind_has_its_number() -> None:
    found = [changed(Compared(i, Agreement.HELD, passes=True)) for i in "ab"]
    counts = counts_of_changes([*found, changed(Compared("c", Agreement.SAME, passes=True))])
    assert changes_in_words(counts) == "this definition WOULD CHANGE what is published: 1 same, 2 newly published"


def test_what_a_definition_says_otherwise_is_named_by_its_keys() -> None:
    before = make_stream("ecg", limits={"max_chunks": 8})
    after = make_stream("ecg", limits={"max_chunks": 9}, allowed_lateness="2 h")
    assert otherwise(before, before) == ()
    assert otherwise(before, after) == ("allowed_lateness: 3600 -> 7200", "limits.max_chunks: 8 -> 9")
    proven = make_stream("ecg", limits={"max_chunks": 8}, proof="sha256")
    assert otherwise(before, proven) == ("proof: none -> sha256",)


@pytest.mark.parametrize(("key", "value"), [("topic", "elsewhere"), ("group", "others"), ("name", "other")])
def test_the_definition_of_another_stream_is_refused(key: str, value: Any) -> None:
    before = make_stream("ecg")
    with pytest.raises(BadInput, match=f"the definition says {key}: {value}, stream ecg has"):
        otherwise(before, before.model_copy(update={key: value}))
