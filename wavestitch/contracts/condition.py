"""Which rows an expectation looks at: a condition as data. Pure.

Four shapes and no other: a comparison of a column with a value, a column that is null or not, and "and" and "or" of
conditions. It is never text that somebody evaluates: `rows_where` computes it, and Great Expectations sees a column of
truth values. A comparison with null does not hold, whatever the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wavestitch.contracts.expectation_values import Kind, are_values, is_column, kind_of, typed_value
from wavestitch.contracts.harmless import harmless

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
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


def rows_where(rows: pa.Table, condition: Mapping[str, Any]) -> pa.ChunkedArray | pa.Array:
    """One truth value a row, never null. `condition` has no `condition_problem`."""
    kind = condition["type"]
    if kind in ("and", "or"):
        join = pc.and_ if kind == "and" else pc.or_
        held = [rows_where(rows, part) for part in condition["conditions"]]
        found = held[0]
        for other in held[1:]:
            found = join(found, other)
        return found
    name = condition["column"]["name"]
    if kind == "nullity":
        return pc.is_null(rows[name]) if condition["is_null"] else pc.is_valid(rows[name])
    return pc.fill_null(_compared(rows[name], condition["operator"], condition["parameter"], kind_of(name)), False)


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


def _compared(column: Any, operator: str, parameter: Any, kind: Kind) -> Any:
    if operator not in _IN:
        return _COMPARE[operator](column, pa.scalar(typed_value(parameter, kind), _arrow_type(column, kind)))
    values = pa.array([typed_value(v, kind) for v in parameter], _arrow_type(column, kind))
    found = pc.is_in(column.cast(values.type), value_set=values)
    if operator == "NOT_IN":
        found = pc.invert(found)
    return pc.if_else(pc.is_valid(column), found, False)


def _arrow_type(column: Any, kind: Kind) -> pa.DataType:
    return pa.float64() if kind is Kind.NUMBER else column.type
