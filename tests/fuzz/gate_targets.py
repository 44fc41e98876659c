"""Expectations: what the list lets through can be computed, in bounded time, and means what it says."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from tests.domain.expectation_examples import EXAMPLES
from tests.fuzz.target import Target, check_sentence
from wavestitch.contracts.condition import condition_problem
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.expectation import SHAPES, expectation_problems
from wavestitch.contracts.expectation_values import COLUMNS, Kind, kind_of, typed_value
from wavestitch.contracts.rows import STITCHED
from wavestitch.validation.computed_columns import rows_where, texts_matching

_OF_A_KIND: dict[Kind, list[Any]] = {
    Kind.NUMBER: [1, 5, None],
    Kind.TEXT: ["mV", "a" * 5000, None],
    Kind.INSTANT: [datetime(2024, 5, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC), None],
    Kind.DAY: [date(2024, 5, 1), date(2030, 1, 1), None],
}
_ROWS = pa.Table.from_pylist(
    [{name: _OF_A_KIND[kind][n] for name, kind in COLUMNS.items()} for n in range(3)], schema=STITCHED
)
_VALUES = {name: _ROWS[name].to_pylist() for name in COLUMNS}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def expectation(data: bytes) -> None:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return
    name, kwargs = found if isinstance(found, list) and len(found) == 2 else ("", found)
    problems = list(expectation_problems(name, kwargs))
    for key, sentence in problems:
        check_sentence(sentence)
        assert len(sentence) < 1200
        assert len(key) < 200
    if problems:
        return
    assert name in SHAPES
    if "row_condition" in kwargs:
        _condition(kwargs["row_condition"])
    patterns = kwargs.get("regex_list") or ([kwargs["regex"]] if "regex" in kwargs else [])
    if patterns:
        _patterns(kwargs["column"], patterns)


def condition(data: bytes) -> None:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return
    problem = condition_problem(found)
    if problem is None:
        _condition(found)
    else:
        check_sentence(problem)


def pattern(data: bytes) -> None:
    """Straight to the engine: a text of 5000 letters, whatever the pattern."""
    text = data.decode(errors="replace")
    if not list(expectation_problems("expect_column_values_to_match_regex", {"column": "units", "regex": text})):
        _patterns("units", [text])


def _condition(found: Mapping[str, Any]) -> None:
    computed = rows_where(_ROWS, found).to_pylist()
    assert computed == [_holds(found, n) for n in range(_ROWS.num_rows)], found


def _holds(found: Mapping[str, Any], row: int) -> bool:
    """The same in plain Python."""
    if found["type"] in ("and", "or"):
        return (all if found["type"] == "and" else any)(_holds(part, row) for part in found["conditions"])
    name = found["column"]["name"]
    value, kind = _VALUES[name][row], kind_of(name)
    if found["type"] == "nullity":
        return (value is None) is found["is_null"]
    if value is None:
        return False
    if found["operator"] in ("IN", "NOT_IN"):
        inside = any(_typed(v, kind) == value for v in found["parameter"])
        return inside is (found["operator"] == "IN")
    return _COMPARE[found["operator"]](value, _typed(found["parameter"], kind))


def _typed(value: Any, kind: Kind) -> Any:
    found = typed_value(value, kind)
    return float(found) if isinstance(found, int) else found


def _patterns(column: str, patterns: list[str]) -> None:
    try:
        found = texts_matching(_ROWS[column], patterns, every=True, negated=False).to_pylist()
        negated = texts_matching(_ROWS[column], patterns, every=True, negated=True).to_pylist()
    except BadInput as error:
        check_sentence(error.message)
        return
    assert found[2] is negated[2] is None
    assert negated[:2] == [not f for f in found[:2]]


def _expectation_seeds() -> Iterator[bytes]:
    for name, kwargs in EXAMPLES.items():
        yield json.dumps([name, kwargs]).encode()
    for where in _conditions():
        yield json.dumps(["expect_table_row_count_to_equal", {"value": 1, "row_condition": where}]).encode()


def _conditions() -> Iterator[dict[str, Any]]:
    number = {"type": "comparison", "column": {"name": "row"}, "operator": "<=", "parameter": 5}
    instant = {"type": "comparison", "column": {"name": "start_time"}, "operator": ">"}
    texts = {"type": "comparison", "column": {"name": "units"}, "operator": "NOT_IN", "parameter": ["mV", "uV"]}
    null = {"type": "nullity", "column": {"name": "reason"}, "is_null": True}
    yield from (number, {**instant, "parameter": "2024-05-01T00:00:00Z"}, texts, null)
    yield {"type": "and", "conditions": [{"type": "or", "conditions": [number, null]}, texts]}
    yield {**number, "column": {"name": "day"}, "parameter": "2024-05-01"}
    yield {**number, "parameter": 2**62}


def _condition_seeds() -> Iterator[bytes]:
    yield from (json.dumps(where).encode() for where in _conditions())


def _pattern_seeds() -> Iterator[bytes]:
    yield from (
        b"^(a+)+$",
        b"^[mu]?V$",
        rb"\pL{1,1000}",
        rb"(?i:x*)*y",
        rb"\\1",
        rb"(?P<a>x)",
        rb"[[:alpha:]]",
        rb"a{1001}",
    )


_WORDS = (*SHAPES, *COLUMNS, "row_condition", "comparison", "nullity", "pass_through", "NOT_IN", "2024-05-01", "1e308")

TARGETS = (
    Target("expectation", expectation, _expectation_seeds, _WORDS, longest=2000),
    Target("condition", condition, _condition_seeds, _WORDS, longest=2000),
    Target("pattern", pattern, _pattern_seeds, ("(?:", "(?i)", "{1000}", "\\pL", "[^", "\\b", "(?P<a>"), longest=300),
)
