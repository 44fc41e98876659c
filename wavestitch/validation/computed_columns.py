"""Columns that are computed for expectations: where a condition holds, and which texts are as patterns want them.

Decides the truth values that Great Expectations sees instead of conditions and patterns. A comparison with null never
holds, whatever the operator; a pattern says nothing about null. Patterns are RE2's, so that the time a text takes grows
with its length alone, whatever a producer sends; how fast it grows the pattern decides, so that they have a time limit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wavestitch.contracts.errors import BadInput, Terminal
from wavestitch.contracts.expectation_values import Kind, kind_of, typed_value

PATTERN_SECONDS = 30.0
"""For all patterns of one expectation, over all rows of a batch."""
ALL_PATTERNS_SECONDS = 600.0
"""For the patterns of all expectations of a batch."""
_FIRST_SLICE = 64
_MOST_SLICE = 256
"""However quick the ones before were: a producer may send the cheap texts first."""
_QUICK_SECONDS = 0.1
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


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


def texts_matching(
    texts: pa.ChunkedArray, patterns: Sequence[str], *, every: bool, negated: bool, until: float = math.inf
) -> pa.ChunkedArray | pa.Array:
    """One truth value a text: whether it has the pattern, one of several or `every` one; null where it is null. Raises
    `Terminal` where that takes longer than `PATTERN_SECONDS`, or until `until` on the monotonic clock."""
    join = pc.and_ if every else pc.or_
    until = min(until, time.monotonic() + PATTERN_SECONDS)
    found = _has(texts, patterns[0], until=until)
    for pattern in patterns[1:]:
        found = join(found, _has(texts, pattern, until=until))
    return pc.invert(found) if negated else found


def _has(texts: pa.ChunkedArray, pattern: str, *, until: float) -> pa.ChunkedArray:
    """In slices, each twice as large as the one before as long as that was quick, up to `_MOST_SLICE`: a matching that
    is begun cannot be ended."""
    parts, start, size = [_matched(texts.slice(0, 0), pattern)], 0, _FIRST_SLICE
    while start < len(texts):
        began = time.monotonic()
        if began > until:
            why = (
                f"pattern {pattern!r} was not done with {len(texts)} values after {PATTERN_SECONDS:.0f} s, {start} of "
                f"them were judged (all patterns of a batch have {ALL_PATTERNS_SECONDS:.0f} s together); counted "
                "repeats of counted repeats cost that much: write it with fewer"
            )
            raise Terminal(why, why=why)
        parts.append(_matched(texts.slice(start, size), pattern))
        start += size
        size = min(_MOST_SLICE, size * (2 if time.monotonic() - began < _QUICK_SECONDS else 1))
    return pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.bool_())


def _matched(texts: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    try:
        return pc.match_substring_regex(texts, pattern)
    except pa.ArrowInvalid as error:
        said = str(error).partition("\n")[0]
        raise BadInput(f"{pattern!r} is not a pattern of RE2's: {said}; docs/streams.md says what is allowed") from None


def _compared(column: Any, operator: str, parameter: Any, kind: Kind) -> Any:
    if operator not in ("IN", "NOT_IN"):
        return _COMPARE[operator](column, pa.scalar(typed_value(parameter, kind), _arrow_type(column, kind)))
    values = pa.array([typed_value(v, kind) for v in parameter], _arrow_type(column, kind))
    found = pc.is_in(column.cast(values.type), value_set=values)
    if operator == "NOT_IN":
        found = pc.invert(found)
    return pc.if_else(pc.is_valid(column), found, False)


def _arrow_type(column: Any, kind: Kind) -> pa.DataType:
    return pa.float64() if kind is Kind.NUMBER else column.type
