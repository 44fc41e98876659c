"""Expectations that a stream may not have, each with the sentence that names it: code, patterns, fetches."""

from __future__ import annotations

import json
from typing import Any

Json = Any


def compares(column: Json, operator: Json = "==", parameter: Json = 1) -> Json:
    return {"type": "comparison", "column": {"name": column}, "operator": operator, "parameter": parameter}


def not_null(**kwargs: Json) -> Json:
    return {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "source", **kwargs}}


COMMAND = "@pd.io.common.os.system('touch {mark}') == 0"
REFUSED = {
    "a condition that pandas evaluates": (
        not_null(row_condition={"type": "pass_through", "pass_through_filter": COMMAND}),
        "'expectations.0.kwargs.row_condition' is not valid: {'type': 'pass_through'",
    ),
    "the same inside others": (
        not_null(
            row_condition={
                "type": "and",
                "conditions": [
                    {"type": "or", "conditions": [{"type": "pass_through", "pass_through_filter": COMMAND}]}
                ],
            }
        ),
        "is no condition; allowed is a mapping whose type is comparison, nullity, and, or",
    ),
    "the same beside a good one": (
        not_null(row_condition={**compares("row"), "pass_through_filter": COMMAND}),
        "a condition of type comparison has exactly column, operator, parameter, type",
    ),
    "a condition as text": (not_null(row_condition=COMMAND), "is no condition"),
    "a condition as a list": (not_null(row_condition=[compares("row")]), "is no condition"),
    "a parser of its own": (
        not_null(condition_parser="pandas", row_condition=compares("row")),
        "takes column, mostly, row_condition; remove or rename condition_parser",
    ),
    "a column of a condition that is code": (
        not_null(row_condition=compares("source`.str.len() > 0 and @pd`")),
        "there is no column",
    ),
    "an operator that is code": (not_null(row_condition=compares("row", "== 1 or @pd")), "is no operator"),
    "a parameter that is a mapping": (not_null(row_condition=compares("row", "==", {"a": 1})), "cannot be compared"),
    "conditions without an end": (
        not_null(
            row_condition=json.loads('{"type": "and", "conditions": [' * 7 + json.dumps(compares("row")) + "]}" * 7)
        ),
        "more than 5 deep",
    ),
    "a schema that is fetched": (
        {
            "type": "expect_column_values_to_match_json_schema",
            "kwargs": {"column": "source", "json_schema": {"$ref": "http://127.0.0.1/latest/meta-data"}},
        },
        "'expectations.0.type' is not valid: expect_column_values_to_match_json_schema is not among the",
    ),
    "a query": (
        {"type": "unexpected_rows_expectation", "kwargs": {"unexpected_rows_query": "SELECT 1"}},
        "is not among the",
    ),
    "a query of another source": (
        {"type": "expect_query_results_to_match_comparison", "kwargs": {"base_query": "SELECT 1"}},
        "is not among the",
    ),
    "another table": (
        {"type": "expect_table_row_count_to_equal_other_table", "kwargs": {"other_table_name": "/etc/passwd"}},
        "is not among the",
    ),
    "a misspelt one": (
        {"type": "expect_column_values_to_be_betwen", "kwargs": {"column": "row", "min_value": 0}},
        "did you mean expect_column_values_to_be_between",
    ),
    "one with an end of line": (
        {"type": "expect_table_row_count_to_equal\n", "kwargs": {"value": 1}},
        "is not among the",
    ),
    "an argument that is none": (
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "row", "minimum": 0, "min_value": 0}},
        "'expectations.0.kwargs.minimum' is not valid: expect_column_values_to_be_between takes column, max_value,",
    ),
    "no argument": ({"type": "expect_column_values_to_be_unique"}, "'expectations.0.kwargs.column' is not valid"),
    "no bound": (
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "row"}},
        "needs one of max_value, min_value at least",
    ),
    "no such column": (
        {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "gap"}},
        "'expectations.0.kwargs.column' is not valid: there is no column 'gap'; the columns are waveform_id,",
    ),
    "no such column in a list": (
        {"type": "expect_multicolumn_values_to_be_equal", "kwargs": {"column_list": ["row", "gap"]}},
        "'expectations.0.kwargs.column_list' is not valid: there is no column 'gap'",
    ),
    "a word as a bound": (
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "row", "min_value": "low"}},
        "'expectations.0.kwargs.min_value' is not valid: 'low' cannot be compared with row, which holds numbers",
    ),
    "a number that no double is": (
        {
            "type": "expect_table_row_count_to_equal",
            "kwargs": {
                "value": 1,
                "row_condition": {
                    "type": "comparison",
                    "column": {"name": "row"},
                    "operator": "<",
                    "parameter": 2**62,
                },
            },
        },
        "cannot be compared with row, which holds numbers",
    ),
    "a bound for a text": (
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "source", "min_value": 3}},
        "source holds text, which has no bounds",
    ),
    "a share above one": (not_null(mostly=2), "'expectations.0.kwargs.mostly' is not valid: 2 is not a number between"),
    "a value of run time": (
        {"type": "expect_table_row_count_to_equal", "kwargs": {"value": {"$PARAMETER": "least"}}},
        "is not a whole number",
    ),
    "an instant without a zone": (
        {
            "type": "expect_column_values_to_be_between",
            "kwargs": {"column": "start_time", "min_value": "2024-05-01T00:00:00"},
        },
        "cannot be compared with start_time, which holds instants with a time zone, such as",
    ),
    "a day that is none": (
        {"type": "expect_column_values_to_be_between", "kwargs": {"column": "day", "min_value": "May"}},
        "which holds days, such as",
    ),
    "a pattern with a look-ahead": (
        {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "source", "regex": "(?=a)(a+)+$"}},
        "is not a pattern of RE2's",
    ),
    "a pattern with a back reference": (
        {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "source", "regex": r"(a+)+\1$"}},
        "is not a pattern of RE2's",
    ),
    "more expectations than one can read": (None, "at most 200 items"),
}
