"""Which rows an expectation looks at: a condition as data. Pure.

Four shapes and no other: a comparison of a column with a value, a column that is null or not, and "and" and "or" of
conditions. It is never text that somebody evaluates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wavestitch.contracts.expectation_values import are_values, is_column
from wavestitch.contracts.harmless import harmless

_COMPARE = ("==", "!=", "<", "<=", ">", ">=")
_IN = ("IN", "NOT_IN")
_KEYS = {
    "comparison": frozenset(("type", "column", "operator", "parameter")),
    "nullity": frozenset(("type", "column", "is_null")),
    "and": frozenset(("type", "conditions")),
    "or": frozenset(("type", "conditions")),
}
_ALLOWED = "a mapping whose type is comparison, nullity, and, or"
_DEEPEST = 5
_MOST_PARTS = 20
_SHOWN = 80


def condition_problem(value: Any, _columns: Sequence[str] = (), *, depth: int = 1) -> str | None:
    """What is wrong with a condition, as a sentence; None where it is one."""
    if depth > _DEEPEST:
        return f"conditions inside conditions are more than {_DEEPEST} deep"
    kind = value.get("type") if isinstance(value, Mapping) else None
    if not isinstance(kind, str) or kind not in _KEYS:
        return f"{harmless(repr(value), most=_SHOWN)} is no condition; allowed is {_ALLOWED}"
    if set(value) != _KEYS[kind]:
        return f"a condition of type {kind} has exactly {', '.join(sorted(_KEYS[kind]))}"
    if kind in ("and", "or"):
        parts = value["conditions"]
        if not isinstance(parts, list) or not 1 <= len(parts) <= _MOST_PARTS:
            return f"conditions is not a list of 1 to {_MOST_PARTS} conditions"
        return next((problem for p in parts if (problem := condition_problem(p, depth=depth + 1))), None)
    return _leaf_problem(value)


def _leaf_problem(value: Mapping[str, Any]) -> str | None:
    column = value["column"]
    if not isinstance(column, Mapping) or set(column) != {"name"}:
        return "column is a mapping with name, the column's"
    name = column["name"]
    if problem := is_column(name, ()):
        return problem
    if value["type"] == "nullity":
        return None if isinstance(value["is_null"], bool) else "is_null is neither true nor false"
    operator, parameter = value["operator"], value["parameter"]
    if operator in _IN:
        return are_values(parameter, [name])
    if not isinstance(operator, str) or operator not in _COMPARE:
        shown = harmless(repr(operator), most=_SHOWN)
        return f"{shown} is no operator; allowed are {', '.join((*_COMPARE, *_IN))}"
    return are_values([parameter], [name])
