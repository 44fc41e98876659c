"""Instants and days in an expectation's arguments: text in the stream's YAML, typed values for comparisons.

Pure. An instant without a time zone is refused, never guessed: what it is compared with is in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from wavestitch.contracts.rows import STITCHED

_COMPARED = ("min_value", "max_value", "value_set")


def with_typed_times(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """`kwargs` with the values that are compared with a time column parsed; `ValueError` with "key: sentence"."""
    typed = dict(kwargs)
    for key in _COMPARED:
        if typed.get(key) is not None:
            typed[key] = _typed(typed[key], column=typed.get("column"), key=key)
    if isinstance(typed.get("row_condition"), Mapping):
        typed["row_condition"] = _typed_condition(typed["row_condition"])
    return typed


def _typed_condition(condition: Any) -> Any:
    """The same for a condition, which may hold others (and, or)."""
    if isinstance(condition, list):
        return [_typed_condition(c) for c in condition]
    if not isinstance(condition, Mapping):
        return condition
    typed = {key: _typed_condition(value) for key, value in condition.items()}
    column = condition.get("column")
    if isinstance(column, Mapping) and condition.get("parameter") is not None:
        typed["parameter"] = _typed(condition["parameter"], column=column.get("name"), key="row_condition")
    return typed


def _typed(value: Any, *, column: Any, key: str) -> Any:
    if isinstance(value, list):
        return [_typed(v, column=column, key=key) for v in value]
    if not isinstance(column, str) or column not in STITCHED.names:
        return value
    kind = STITCHED.field(column).type
    if pa.types.is_timestamp(kind):
        return _instant(value, column=column, key=key)
    if pa.types.is_date(kind):
        return _day(value, column=column, key=key)
    return value


def _instant(value: Any, *, column: str, key: str) -> datetime:
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (TypeError, ValueError):
        found = None
    if found is None or found.tzinfo is None:
        raise ValueError(f"{key}: {value!r} is not an instant; {column} needs one with a time zone, {_EXAMPLE}")
    return found.astimezone(UTC)


def _day(value: Any, *, column: str, key: str) -> date:
    try:
        found = value if isinstance(value, date) else date.fromisoformat(value)
    except (TypeError, ValueError):
        found = None
    if found is None or isinstance(found, datetime):
        raise ValueError(f"{key}: {value!r} is not a day; {column} needs one such as '2024-05-01'")
    return found


_EXAMPLE = "such as '2024-05-01T00:00:00Z'"
