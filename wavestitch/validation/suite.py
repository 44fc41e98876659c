"""A stream's expectations as Great Expectations' own objects, and the columns that are computed for them.

Decides what Great Expectations is given: types and arguments of the list in `contracts.expectation`, typed values, and
never a text that it would evaluate. A condition becomes a column of truth values, and so does a pattern: pandas
chooses its engine by the *data*, and one of the two takes exponential time. Never looks at results. Importing this
module imports Great Expectations, which takes seconds: import it where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from great_expectations.compatibility.pydantic import ValidationError
from great_expectations.expectations.expectation import ColumnPairMapExpectation, MulticolumnMapExpectation
from great_expectations.expectations.registry import get_expectation_impl
from great_expectations.expectations.row_conditions import Column

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.expectation import expectation_problems
from wavestitch.contracts.expectation_values import kind_of, typed_value
from wavestitch.contracts.stream import Expectation
from wavestitch.validation.computed_columns import rows_where, texts_matching

INDEX = "wavestitch_index"
"""Key in an expectation's `meta`: its place in the stream's list. Also keeps equal ones apart, which are dropped."""

_NAMES_ONE = ("column", "column_A", "column_B")
_COMPARED = ("min_value", "max_value", "value_set")
_NOT_COMPARED_WITH_THE_COLUMN = frozenset(
    (
        "expect_column_value_lengths_to_be_between",
        "expect_column_unique_value_count_to_be_between",
        "expect_column_proportion_of_unique_values_to_be_between",
        "expect_column_proportion_of_non_null_values_to_be_between",
    )
)
_NULLS_PASS = {ColumnPairMapExpectation: "either_value_is_missing", MulticolumnMapExpectation: "any_value_is_missing"}
_IN_SET = "expect_column_values_to_be_in_set"


@dataclass(frozen=True, slots=True)
class Suite:
    """`objects`: Great Expectations' own, in the stream's order. `looked_at`: the rows' columns that they name.
    `columns`: what they need beside these. `stands_for`: computed column → the rows' column that it says something
    about."""

    objects: tuple[Any, ...]
    looked_at: frozenset[str]
    columns: Mapping[str, Any]
    stands_for: Mapping[str, str]


def build_suite(expectations: Sequence[Expectation], rows: pa.Table, *, until: float = math.inf) -> Suite:
    """Raises `BadInput` for what is not in the list, however it came here. `until`: see `texts_matching`."""
    objects, columns, stands_for = [], {}, {}
    named = set[str]()
    for place, expectation in enumerate(expectations):
        for key, sentence in expectation_problems(expectation.type, expectation.kwargs):
            raise BadInput(f"'expectations.{place}.{key}' is not valid: {sentence}")
        kind, kwargs = expectation.type, dict(expectation.kwargs)
        if "row_condition" in kwargs:
            name = f"condition_{place}"
            columns[name] = rows_where(rows, kwargs["row_condition"])
            kwargs["row_condition"] = Column(name) == True  # noqa: E712 - builds a condition, of our own words only
        if "regex" in kwargs or "regex_list" in kwargs:
            name = f"matches_{place}"
            columns[name], stands_for[name] = _matches(rows, kind, kwargs, until), kwargs["column"]
            kept: dict[str, Any] = {k: kwargs[k] for k in ("mostly", "row_condition") if k in kwargs}
            kind, kwargs = _IN_SET, {"column": name, "value_set": [True], **kept}
        named |= {kwargs[key] for key in _NAMES_ONE if key in kwargs} | {*kwargs.get("column_list", ())}
        objects.append(_build(kind, kwargs, severity=expectation.severity, place=place))
    return Suite(tuple(objects), frozenset(named - columns.keys()), columns, stands_for)


def _matches(rows: pa.Table, kind: str, kwargs: Mapping[str, Any], until: float) -> Any:
    patterns = kwargs.get("regex_list") or [kwargs["regex"]]
    every, negated = kwargs.get("match_on") == "all", "_not_match_" in kind
    return texts_matching(rows[kwargs["column"]], patterns, every=every, negated=negated, until=until)


def _build(name: str, kwargs: dict[str, Any], *, severity: str, place: int) -> Any:
    kind = get_expectation_impl(name)
    for group, value in _NULLS_PASS.items():
        if issubclass(kind, group):
            # With its own default a null in one column of several makes the comparison crash.
            kwargs["ignore_row_if"] = value
    if name not in _NOT_COMPARED_WITH_THE_COLUMN and not kwargs.get("column", "matches_").startswith("matches_"):
        kwargs |= {key: _typed(kwargs[key], kwargs["column"]) for key in _COMPARED if key in kwargs}
    try:
        return kind(**kwargs, severity=severity, meta={INDEX: place})
    except (ValidationError, ValueError, TypeError) as error:
        said = str(error).partition("\n")[0]
        raise BadInput(f"'expectations.{place}' is not valid: Great Expectations refuses it: {said}") from None


def _typed(value: Any, column: str) -> Any:
    """Instants and days are text in YAML and in plans; they are compared as what they are."""
    if isinstance(value, list):
        return [typed_value(part, kind_of(column)) for part in value]
    return typed_value(value, kind_of(column))
