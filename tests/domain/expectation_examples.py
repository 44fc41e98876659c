"""One use of every expectation that a stream may have; a test holds this against the list."""

from __future__ import annotations

from typing import Any

_NUMBER = {"column": "sample_max", "min_value": -10, "max_value": 10.5, "strict_min": True}
_SET: dict[str, Any] = {"column": "units", "value_set": ["mV", "uV"]}
_SHARE = {"column": "source", "min_value": 0, "max_value": 1}

EXAMPLES: dict[str, dict[str, Any]] = {
    "expect_column_values_to_be_between": {**_NUMBER, "mostly": 0.5},
    "expect_column_values_to_be_in_set": {"column": "day", "value_set": ["2024-05-01"]},
    "expect_column_values_to_not_be_in_set": {"column": "sample_count", "value_set": [0, 1.0]},
    "expect_column_values_to_be_null": {"column": "reason"},
    "expect_column_values_to_not_be_null": {"column": "source"},
    "expect_column_values_to_be_unique": {"column": "waveform_id"},
    "expect_column_value_lengths_to_be_between": {"column": "source", "min_value": 1, "max_value": 80},
    "expect_column_value_lengths_to_equal": {"column": "channel", "value": 1},
    "expect_column_values_to_match_regex": {"column": "units", "regex": "^[mu]?V$"},
    "expect_column_values_to_not_match_regex": {"column": "source", "regex": r"\s"},
    "expect_column_values_to_match_regex_list": {"column": "units", "regex_list": ["^m", "^u"], "match_on": "any"},
    "expect_column_values_to_not_match_regex_list": {"column": "units", "regex_list": ["^x", "^y"]},
    "expect_column_pair_values_a_to_be_greater_than_b": {"column_A": "sample_max", "column_B": "sample_min"},
    "expect_column_pair_values_to_be_equal": {"column_A": "sample_max", "column_B": "sample_max"},
    "expect_compound_columns_to_be_unique": {"column_list": ["source", "row"]},
    "expect_select_column_values_to_be_unique_within_record": {"column_list": ["sample_min", "sample_max"]},
    "expect_multicolumn_values_to_be_equal": {"column_list": ["sample_min", "sample_max"], "mostly": 0},
    "expect_column_max_to_be_between": {"column": "start_time", "max_value": "2030-01-01T00:00:00Z"},
    "expect_column_min_to_be_between": {"column": "day", "min_value": "2020-01-01"},
    "expect_column_mean_to_be_between": _NUMBER,
    "expect_column_median_to_be_between": _NUMBER,
    "expect_column_stdev_to_be_between": {"column": "row", "min_value": 0, "max_value": 10},
    "expect_column_sum_to_be_between": {"column": "nonfinite_count", "max_value": 0},
    "expect_column_unique_value_count_to_be_between": {"column": "source", "min_value": 1},
    "expect_column_proportion_of_unique_values_to_be_between": _SHARE,
    "expect_column_proportion_of_non_null_values_to_be_between": _SHARE,
    "expect_column_distinct_values_to_be_in_set": _SET,
    "expect_column_distinct_values_to_contain_set": {"column": "units", "value_set": ["mV"]},
    "expect_column_distinct_values_to_equal_set": {"column": "units", "value_set": ["mV"]},
    "expect_table_row_count_to_be_between": {"min_value": 1, "max_value": 10},
    "expect_table_row_count_to_equal": {"value": 3},
}
