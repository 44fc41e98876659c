"""The expectations that a stream may have: a closed list of Great Expectations' types and the shape of their arguments.

Pure. Decides what may reach Great Expectations at all; everything else is refused by name, with what is allowed. Not in
the list: what fetches (schemas with references, other tables), what evaluates (queries, conditions as text), what says
nothing about a batch's rows (their types, their order), what the pandas engine cannot do, or what crashes it on values
that a producer can send (z-scores of equal values, sums of infinite ones). Invariant: an `Expectation`
that exists has a type of this list and arguments that its checks let through, whether from YAML, from a plan or code.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wavestitch.contracts import expectation_values as v
from wavestitch.contracts.condition import condition_problem
from wavestitch.contracts.harmless import harmless

MOST_EXPECTATIONS = 200
_COLUMN_KEYS = ("column", "column_A", "column_B")
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Shape:
    """The arguments of a type: those it needs, those it may have, and a group of which it needs one at least.
    `row_level`: its failure names rows; otherwise it is about the whole batch."""

    row_level: bool
    needs: Mapping[str, v.Check]
    may: Mapping[str, v.Check] = field(default_factory=dict)
    one_of: frozenset[str] = frozenset()

    @property
    def keys(self) -> dict[str, v.Check]:
        common = {"row_condition": condition_problem, **({"mostly": v.is_share} if self.row_level else {})}
        return {**self.needs, **self.may, **common}


def _between(row_level: bool, column: v.Check | None, bound: v.Check) -> Shape:
    may = {"min_value": bound, "max_value": bound, "strict_min": v.is_flag, "strict_max": v.is_flag}
    return Shape(row_level, {"column": column} if column else {}, may, frozenset(("min_value", "max_value")))


def _rows(needs: Mapping[str, v.Check], **may: v.Check) -> Shape:
    return Shape(True, needs, may)


_COLUMN = {"column": v.is_column}
_TEXT = {"column": v.is_text_column}
_PAIR = {"column_A": v.is_column, "column_B": v.is_column}
_SEVERAL = {"column_list": v.are_columns}
_SET = {"column": v.is_column, "value_set": v.are_values}
_PATTERNS = {**_TEXT, "regex_list": v.are_patterns}

SHAPES: dict[str, Shape] = {
    "expect_column_values_to_be_between": _between(True, v.is_column, v.is_bound),
    "expect_column_values_to_be_in_set": _rows(_SET),
    "expect_column_values_to_not_be_in_set": _rows(_SET),
    "expect_column_values_to_be_null": _rows(_COLUMN),
    "expect_column_values_to_not_be_null": _rows(_COLUMN),
    "expect_column_values_to_be_unique": _rows(_COLUMN),
    "expect_column_value_lengths_to_be_between": _between(True, v.is_text_column, v.is_count),
    "expect_column_value_lengths_to_equal": _rows({**_TEXT, "value": v.is_count}),
    "expect_column_values_to_match_regex": _rows({**_TEXT, "regex": v.is_pattern}),
    "expect_column_values_to_not_match_regex": _rows({**_TEXT, "regex": v.is_pattern}),
    "expect_column_values_to_match_regex_list": _rows(_PATTERNS, match_on=v.is_one_of("any", "all")),
    "expect_column_values_to_not_match_regex_list": _rows(_PATTERNS),
    "expect_column_pair_values_a_to_be_greater_than_b": _rows(_PAIR, or_equal=v.is_flag),
    "expect_column_pair_values_to_be_equal": _rows(_PAIR),
    "expect_compound_columns_to_be_unique": _rows(_SEVERAL),
    "expect_select_column_values_to_be_unique_within_record": _rows(_SEVERAL),
    "expect_multicolumn_values_to_be_equal": _rows(_SEVERAL),
    "expect_column_max_to_be_between": _between(False, v.is_column, v.is_bound),
    "expect_column_min_to_be_between": _between(False, v.is_column, v.is_bound),
    "expect_column_mean_to_be_between": _between(False, v.is_number_column, v.is_bound),
    "expect_column_median_to_be_between": _between(False, v.is_number_column, v.is_bound),
    "expect_column_stdev_to_be_between": _between(False, v.is_number_column, v.is_bound),
    "expect_column_sum_to_be_between": _between(False, v.is_number_column, v.is_bound),
    "expect_column_unique_value_count_to_be_between": _between(False, v.is_column, v.is_count),
    "expect_column_proportion_of_unique_values_to_be_between": _between(False, v.is_column, v.is_share),
    "expect_column_proportion_of_non_null_values_to_be_between": _between(False, v.is_column, v.is_share),
    "expect_column_distinct_values_to_be_in_set": Shape(False, _SET),
    "expect_column_distinct_values_to_contain_set": Shape(False, _SET),
    "expect_column_distinct_values_to_equal_set": Shape(False, _SET),
    "expect_table_row_count_to_be_between": _between(False, None, v.is_count),
    "expect_table_row_count_to_equal": Shape(False, {"value": v.is_count}),
}


def expectation_problems(name: Any, kwargs: Any) -> Iterator[tuple[str, str]]:
    """(key, sentence) of everything that is wrong with an expectation; nothing where it may be used."""
    if not isinstance(name, str) or name not in SHAPES:
        yield "type", _unknown(name)
        return
    if not isinstance(kwargs, dict):
        yield "kwargs", f"{harmless(repr(kwargs), most=_SHOWN)} is not a mapping of arguments"
        return
    shape, keys = SHAPES[name], SHAPES[name].keys
    for key in kwargs:
        if key not in keys:
            shown = harmless(str(key), most=_SHOWN)
            yield f"kwargs.{shown}", f"{name} takes {', '.join(sorted(keys))}; remove or rename {shown}"
    for key in shape.needs:
        if key not in kwargs:
            yield f"kwargs.{key}", f"{name} needs it"
    if shape.one_of and not shape.one_of & set(kwargs):
        yield "kwargs", f"{name} needs one of {', '.join(sorted(shape.one_of))} at least"
    yield from _wrong_values(kwargs, keys)


def near_names(name: Any) -> list[str]:
    """Types that somebody may have meant. Takes a millisecond or more: for a sentence that is shown, not for each that
    could be."""
    return difflib.get_close_matches(harmless(str(name), most=_SHOWN), SHAPES, n=3, cutoff=0.7)


def _wrong_values(kwargs: dict[str, Any], keys: Mapping[str, v.Check]) -> Iterator[tuple[str, str]]:
    """Columns first: what the others may be depends on what the column holds."""
    columns: list[str] = []
    for key in (k for k in keys if k in kwargs and k in _COLUMN_KEYS):
        if problem := keys[key](kwargs[key], ()):
            yield f"kwargs.{key}", problem
        else:
            columns.append(kwargs[key])
    if not columns and "column" in keys:
        return
    if len(columns) > 1 and v.kind_of(columns[0]) is not v.kind_of(columns[1]):
        yield "kwargs.column_B", f"{columns[1]} cannot be compared with {columns[0]}"
    for key in (k for k in keys if k in kwargs and k not in _COLUMN_KEYS):
        if problem := keys[key](kwargs[key], columns):
            yield f"kwargs.{key}", problem


def _unknown(name: Any) -> str:
    shown = harmless(str(name), most=_SHOWN)
    return f"{shown} is not among the {len(SHAPES)} expectations of a stream; docs/streams.md lists them"
