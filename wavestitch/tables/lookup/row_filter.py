"""Conditions on rows, as pyiceberg expressions: all here, as their constructors do not type-check as they are used."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pyiceberg import expressions
from pyiceberg.expressions import BooleanExpression

_PREDICATES: Any = expressions

EVERY_ROW: BooleanExpression = expressions.AlwaysTrue()


def is_in(column: str, values: Collection[str]) -> BooleanExpression:
    """Of no values: no row."""
    made: BooleanExpression = _PREDICATES.In(column, set(values))
    return made


def equals(column: str, value: Any) -> BooleanExpression:
    made: BooleanExpression = _PREDICATES.EqualTo(column, value)
    return made


def at_least(column: str, value: Any) -> BooleanExpression:
    made: BooleanExpression = _PREDICATES.GreaterThanOrEqual(column, value)
    return made


def below(column: str, value: Any) -> BooleanExpression:
    made: BooleanExpression = _PREDICATES.LessThan(column, value)
    return made


def at_most(column: str, value: Any) -> BooleanExpression:
    made: BooleanExpression = _PREDICATES.LessThanOrEqual(column, value)
    return made


def any_of(*conditions: BooleanExpression) -> BooleanExpression:
    """Of no conditions: no row."""
    result: BooleanExpression = expressions.AlwaysFalse()
    for condition in conditions:
        result = expressions.Or(result, condition)
    return result


def all_of(*conditions: BooleanExpression) -> BooleanExpression:
    """Of no conditions: every row."""
    result = EVERY_ROW
    for condition in conditions:
        result = expressions.And(result, condition)
    return result
