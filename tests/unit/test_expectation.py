"""Which arguments each expectation takes, which of them it needs, and what each may be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.domain.expectation_examples import EXAMPLES
from wavestitch.contracts.expectation import MOST_EXPECTATIONS, SHAPES, expectation_problems, near_names

BOUNDS = ("min_value", "max_value", "strict_min", "strict_max")
OF_ROWS = (
    *("expect_column_values_", "expect_column_value_lengths_", "expect_column_pair_", "expect_compound_"),
    *("expect_select_", "expect_multicolumn_"),
)
"""What is said of each row, and not of all of them together."""
BETWEEN = [name for name in EXAMPLES if name.endswith("_be_between")]
MAY = {
    **dict.fromkeys(BETWEEN, BOUNDS),
    "expect_column_values_to_match_regex_list": ("match_on",),
    "expect_column_pair_values_a_to_be_greater_than_b": ("or_equal",),
}
"""Beside what it needs and what all of them may have."""
WORDS = {"match_on": "all", "or_equal": True, "strict_min": True, "strict_max": False}


def keys(name: Any, kwargs: Any) -> list[str]:
    return [key for key, _ in expectation_problems(name, kwargs)]


def needed(name: str) -> dict[str, Any]:
    return {key: value for key, value in EXAMPLES[name].items() if key not in (*MAY.get(name, ()), "mostly")}


def bound(name: str) -> dict[str, Any]:
    """One end of what it has to lie between."""
    ends = [key for key in ("min_value", "max_value") if key in EXAMPLES[name]]
    return {ends[0]: EXAMPLES[name][ends[0]]} if name in BETWEEN else {}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_expectation_takes_its_own_arguments_and_no_other(name: str) -> None:
    least = {**needed(name), **bound(name)}
    assert keys(name, EXAMPLES[name]) == keys(name, least) == []
    for key in needed(name):
        assert f"kwargs.{key}" in keys(name, {k: v for k, v in least.items() if k != key})
    for key in set(WORDS) | {"min_value"}:
        value = next(iter(bound(name).values()), 1) if key == "min_value" else WORDS[key]
        assert keys(name, {**least, key: value}) == ([] if key in MAY.get(name, ()) else [f"kwargs.{key}"])
    assert keys(name, {**least, "else": 1}) == ["kwargs.else"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_argument_is_looked_at_before_anybody_uses_it(name: str) -> None:
    least = {**needed(name), **bound(name)}
    for key in (*needed(name), *MAY.get(name, ()), "row_condition"):
        assert f"kwargs.{key}" in keys(name, {**least, key: {"$parameter": "x"}})
    assert keys(name, {**least, "row_condition": "row > 3"}) == ["kwargs.row_condition"]
    rows = {"type": "nullity", "column": {"name": "row"}, "is_null": False}
    assert keys(name, {**least, "row_condition": rows}) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_how_many_rows_have_to_meet_it_is_said_of_rows_alone(name: str) -> None:
    of_rows = name.startswith(OF_ROWS)
    assert SHAPES[name].row_level is of_rows
    assert keys(name, {**EXAMPLES[name], "mostly": 0.5}) == ([] if of_rows else ["kwargs.mostly"])
    assert keys(name, {**EXAMPLES[name], "mostly": 1.5}) == ["kwargs.mostly"]


@pytest.mark.parametrize("name", BETWEEN)
def test_what_has_to_lie_between_bounds_has_one_at_least(name: str) -> None:
    problems = list(expectation_problems(name, needed(name)))
    assert problems == [("kwargs", f"{name} needs one of max_value, min_value at least")]


@pytest.mark.parametrize(
    ("name", "column", "allowed"),
    [
        *((f"expect_column_{what}_to_be_between", "source", False) for what in ("mean", "median", "stdev", "sum")),
        *((f"expect_column_{what}_to_be_between", "day", False) for what in ("mean", "median", "stdev", "sum")),
        *((f"expect_column_{what}_to_be_between", "row", True) for what in ("mean", "median", "stdev", "sum", "max")),
        ("expect_column_value_lengths_to_be_between", "row", False),
        ("expect_column_value_lengths_to_be_between", "source", True),
        ("expect_column_unique_value_count_to_be_between", "source", True),
        ("expect_column_values_to_be_between", "source", False),
        ("expect_column_values_to_be_between", "nowhere", False),
    ],
)
def test_a_column_holds_what_the_expectation_is_about(name: str, column: str, *, allowed: bool) -> None:
    assert (keys(name, {"column": column, "min_value": 1}) == []) is allowed


def test_columns_of_another_kind_are_not_compared_and_what_is_wrong_is_said_of_the_columns_first() -> None:
    name = "expect_column_pair_values_to_be_equal"
    problems = list(expectation_problems(name, {"column_A": "row", "column_B": "day"}))
    assert problems == [("kwargs.column_B", "day cannot be compared with row")]
    assert keys(name, {"column_A": "row", "column_B": "sample_max"}) == []
    assert keys("expect_column_values_to_be_between", {"min_value": "x", "column": "x"}) == ["kwargs.column"]


def test_what_is_not_in_the_list_is_named_up_to_eighty_characters_and_what_is_near_it() -> None:
    (problem,) = expectation_problems("x" * 200, {})
    assert problem == (
        "type",
        f"{'x' * 80}… is not among the {len(EXAMPLES)} expectations of a stream; docs/streams.md lists them",
    )
    assert keys(None, {}) == keys(["expect_column_values_to_be_null"], {}) == ["type"]
    (problem,) = expectation_problems("expect_column_values_to_be_null", ["y" * 200])
    assert problem == ("kwargs", f"['{'y' * 78}… is not a mapping of arguments")
    assert near_names("expect_column_values_to_be_nul")[0] == "expect_column_values_to_be_null"
    assert len(near_names("expect_column_values_to_be_nul")) == 3
    assert near_names("drop_table") == []
    assert MOST_EXPECTATIONS == 200
