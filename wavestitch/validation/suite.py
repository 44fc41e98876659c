"""A stream's expectations as Great Expectations' own objects, or sentences that say what is wrong with them.

Decides which arguments a stream may give, and whether an expectation is about rows or about the whole batch. Never
looks at data. Importing this module imports Great Expectations, which takes seconds: import it where it is used.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from great_expectations.compatibility.pydantic import ValidationError
from great_expectations.exceptions import ExpectationNotFoundError
from great_expectations.expectations.expectation import (
    BatchExpectation,
    ColumnMapExpectation,
    ColumnPairMapExpectation,
    MulticolumnMapExpectation,
)
from great_expectations.expectations.registry import (
    get_expectation_impl,
    list_registered_expectation_implementations,
)

from wavestitch.contracts.rows import STITCHED
from wavestitch.contracts.stream import Expectation
from wavestitch.validation.time_values import with_typed_times

INDEX = "wavestitch_index"
"""Key in an expectation's `meta`: its place in the stream's list. Also keeps equal ones apart, which are dropped."""

_ROW_LEVEL = (ColumnMapExpectation, ColumnPairMapExpectation, MulticolumnMapExpectation)
_COLUMN_KEYS = ("column", "column_A", "column_B", "column_list")
_TYPES_ARE_FIXED = "the columns' types are fixed, it would say nothing about the data"
_NO_ORDER = "the rows of a batch have no order"
_SENSELESS = {
    "expect_column_type_to_be": _TYPES_ARE_FIXED,
    "expect_column_values_to_be_of_type": _TYPES_ARE_FIXED,
    "expect_column_values_to_be_in_type_list": _TYPES_ARE_FIXED,
    "expect_column_values_to_be_increasing": _NO_ORDER,
    "expect_column_values_to_be_decreasing": _NO_ORDER,
}
_NULLS_PASS = {ColumnPairMapExpectation: "either_value_is_missing", MulticolumnMapExpectation: "any_value_is_missing"}


def is_row_level(expectation_type: str) -> bool:
    """Whether its failure names rows; otherwise it is about the whole batch."""
    return issubclass(get_expectation_impl(expectation_type), _ROW_LEVEL)


def build_suite(expectations: Sequence[Expectation]) -> tuple[list[Any], list[str]]:
    """Great Expectations' objects, in order, and the problems as sentences; objects are complete only without any."""
    built, problems = [], []
    for place, expectation in enumerate(expectations):
        found = list(_problems(expectation))
        if not found:
            try:
                built.append(_build(expectation, place))
            except ValidationError as error:
                found = list(_refusals(error))
            except ValueError as error:
                found = [_split(str(error))]
        problems += [f"'expectations.{place}.{key}' is not valid: {sentence}" for key, sentence in found]
    return built, problems


def _problems(expectation: Expectation) -> Iterator[tuple[str, str]]:
    try:
        kind = get_expectation_impl(expectation.type)
    except ExpectationNotFoundError:
        known = list_registered_expectation_implementations()
        near = difflib.get_close_matches(expectation.type, known, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        yield "type", f"Great Expectations knows no {expectation.type}{hint}"
        return
    if why := _SENSELESS.get(expectation.type):
        yield "type", f"{expectation.type} is of no use here: {why}; remove it"
        return
    allowed = _allowed_keys(kind)
    for key in expectation.kwargs:
        if key not in allowed:
            yield f"kwargs.{key}", f"{expectation.type} takes {', '.join(sorted(allowed))}; remove or rename {key}"
    for key, column in _columns(expectation.kwargs):
        if column not in STITCHED.names:
            yield f"kwargs.{key}", f"there is no column {column!r}; the columns are {', '.join(STITCHED.names)}"
    condition = expectation.kwargs.get("row_condition")
    if condition is not None and not isinstance(condition, dict):
        # Text would be evaluated by pandas as an expression, which can run code.
        yield "kwargs.row_condition", "it must be a mapping with type, column, operator and parameter, not text"
    if _asks_for_parameter(expectation.kwargs):
        yield "kwargs", "$PARAMETER has no value at run time; write the value itself"


def _allowed_keys(kind: Any) -> frozenset[str]:
    own = set(kind.__fields__) - set(BatchExpectation.__fields__)
    given_elsewhere = {"condition_parser", "ignore_row_if", "library_metadata"}
    return frozenset(own - given_elsewhere | ({"row_condition"} & set(kind.__fields__)))


def _columns(value: Any) -> Iterator[tuple[str, Any]]:
    """(key, column) of every column that the arguments name, also inside a condition."""
    for key in _COLUMN_KEYS:
        named = value.get(key)
        if isinstance(named, list):
            yield from ((key, column) for column in named)
        elif isinstance(named, str):
            yield key, named
    yield from (("row_condition", column) for column in _condition_columns(value.get("row_condition")))


def _condition_columns(condition: Any) -> Iterator[Any]:
    if isinstance(condition, list):
        for part in condition:
            yield from _condition_columns(part)
    elif isinstance(condition, dict):
        column = condition.get("column")
        if isinstance(column, dict):
            yield column.get("name")
        for key, part in condition.items():
            if key != "column":
                yield from _condition_columns(part)


def _asks_for_parameter(value: Any) -> bool:
    if isinstance(value, dict):
        return "$PARAMETER" in value or any(_asks_for_parameter(v) for v in value.values())
    return isinstance(value, list) and any(_asks_for_parameter(v) for v in value)


def _build(expectation: Expectation, place: int) -> Any:
    kind = get_expectation_impl(expectation.type)
    kwargs: Mapping[str, Any] = with_typed_times(expectation.kwargs)
    for group, value in _NULLS_PASS.items():
        if issubclass(kind, group):
            # With its own default a null in one column of several makes the comparison crash.
            kwargs = {**kwargs, "ignore_row_if": value}
    return kind(**kwargs, severity=expectation.severity, meta={INDEX: place})


def _refusals(error: Any) -> Iterator[tuple[str, str]]:
    """One sentence a key: a value that may have several types is refused once for each of them, and again where its
    absence is missed."""
    first: dict[str, str] = {}
    for e in error.errors():
        first.setdefault(str(e["loc"][0]), str(e["msg"]))
    whole = first.pop("__root__", "")
    yield from ((f"kwargs.{key}", message) for key, message in first.items())
    if not first:
        yield "kwargs", whole


def _split(message: str) -> tuple[str, str]:
    key, _, sentence = message.partition(": ")
    return f"kwargs.{key}", sentence
