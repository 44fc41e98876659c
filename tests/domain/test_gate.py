"""The gate with the real Great Expectations: what fails, what stops, what is only reported, what is an error."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from great_expectations.expectations.core import ExpectColumnQuantileValuesToBeBetween
from great_expectations.expectations.core.expect_column_quantile_values_to_be_between import QuantileRange

from tests.domain.expectation_examples import EXAMPLES
from tests.domain.gate_rows import START, expect, row, table, validate
from wavestitch.contracts.errors import BadInput, Terminal
from wavestitch.contracts.stream import Expectation, parse_stream
from wavestitch.contracts.verdict import Verdict
from wavestitch.validation.checkpoint import run_checkpoint
from wavestitch.validation.gate import check_expectations
from wavestitch.validation.suite import build_suite

pytestmark = pytest.mark.filterwarnings("error")


def test_planted_errors_are_the_rows_that_fail_and_no_others() -> None:
    verdict = validate(
        table(row(0), row(1, nonfinite_count=5), row(2, sampling_rate_hz=250.0), row(3, source="who?"), row(4)),
        expect("column_values_to_be_between", column="nonfinite_count", max_value=0),
        expect("column_values_to_be_in_set", column="sampling_rate_hz", value_set=[500.0]),
        expect("column_values_to_match_regex", column="source", regex="^station-"),
        expect("column_values_to_be_unique", column="waveform_id"),
    )
    assert verdict == Verdict(
        failed={
            "w-1": ("expect_column_values_to_be_between: nonfinite_count is 5; allowed: max_value 0",),
            "w-2": ("expect_column_values_to_be_in_set: sampling_rate_hz is 250.0; allowed: value_set [500.0]",),
            "w-3": ("expect_column_values_to_match_regex: source is who?; allowed: regex ^station-",),
        },
        closed=(),
        reported=(),
        rows=5,
        expectations=4,
    )


def test_a_row_says_every_expectation_that_it_fails() -> None:
    found = validate(
        table(row(0, nonfinite_count=5, sample_max=None)),
        expect("column_values_to_be_between", column="nonfinite_count", max_value=0),
        expect("column_values_to_not_be_null", column="sample_max"),
    ).failed["w-0"]
    assert found == (
        "expect_column_values_to_be_between: nonfinite_count is 5; allowed: max_value 0",
        "expect_column_values_to_not_be_null: sample_max is null",
    )


def test_the_gate_agrees_with_plain_python_on_random_rows() -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    dice = random.Random(seed)
    rows = [row(n, sample_max=dice.choice([None, 1.0, 5.0, 9.0]), nonfinite_count=dice.randrange(3)) for n in range(60)]
    verdict = validate(
        table(*rows),
        expect("column_values_to_be_between", column="sample_max", max_value=5),
        expect("column_values_to_be_between", column="nonfinite_count", max_value=1),
    )
    wanted = {r["waveform_id"] for r in rows if (r["sample_max"] or 0.0) > 5 or r["nonfinite_count"] > 1}
    assert set(verdict.failed) == wanted


@pytest.mark.parametrize("mostly, fails", [(0.75, False), (0.76, True)])
def test_rows_fail_only_when_mostly_is_not_met(mostly: float, fails: bool) -> None:
    verdict = validate(
        table(row(0), row(1), row(2), row(3, nonfinite_count=1)),
        expect("column_values_to_be_between", column="nonfinite_count", max_value=0, mostly=mostly),
    )
    assert set(verdict.failed) == ({"w-3"} if fails else set())
    assert not verdict.closed + verdict.reported


@pytest.mark.parametrize("severity", ["warning", "info"])
def test_lesser_severities_are_reported_and_stop_nothing(severity: str) -> None:
    verdict = validate(
        table(row(0), row(1, nonfinite_count=7)),
        expect("column_values_to_be_between", severity, column="nonfinite_count", max_value=0),
        expect("table_row_count_to_be_between", severity, min_value=3),
    )
    assert not verdict.failed
    assert not verdict.closed
    assert verdict.reported == (
        f"{severity}: expect_column_values_to_be_between on nonfinite_count: 1 of 2 rows, first w-1 (nonfinite_count "
        "is 7); allowed: max_value 0",
        f"{severity}: expect_table_row_count_to_be_between: seen 2; allowed: min_value 3",
    )


def test_a_critical_expectation_about_the_whole_batch_closes_the_gate() -> None:
    verdict = validate(
        table(row(0), row(1, sample_max=11.0)),
        expect("column_max_to_be_between", column="sample_max", max_value=10),
        expect("column_distinct_values_to_be_in_set", column="source", value_set=["station-2"]),
        expect("table_row_count_to_equal", value=2),
    )
    assert not verdict.failed
    assert verdict.closed == (
        "expect_column_max_to_be_between on sample_max: seen 11.0; allowed: max_value 10",
        "expect_column_distinct_values_to_be_in_set on source: seen [station-1]; allowed: value_set [station-2]",
    )


def test_an_aggregate_over_nothing_measurable_closes_the_gate() -> None:
    verdict = validate(
        table(row(0, sample_max=None)), expect("column_max_to_be_between", column="sample_max", max_value=10)
    )
    assert verdict.closed == (
        "expect_column_max_to_be_between on sample_max: seen nothing to measure; allowed: max_value 10",
    )


CROSSED = {"column": "row", "min_value": 10, "max_value": 1}


@pytest.mark.parametrize("severity", ["critical", "warning", "info"])
def test_a_crash_closes_the_gate_where_it_is_critical_and_is_reported_where_it_is_not(severity: str) -> None:
    said = "expect_column_values_to_be_between on row: could not be judged: min_value cannot be greater"
    verdict = validate(
        table(row(0)),
        expect("column_values_to_be_between", column="row", max_value=-1),
        expect("column_values_to_be_between", severity, **CROSSED),
    )
    assert set(verdict.failed) == {"w-0"}, "the others are judged all the same"
    [found] = verdict.closed if severity == "critical" else verdict.reported
    assert said in found
    assert not (verdict.reported if severity == "critical" else verdict.closed)


INF = math.inf
NOTHING = {"sample_min": None, "sample_max": None, "physical_min": None, "physical_max": None}
SENT = {
    "one row": [row(0)],
    "all null": [row(n, **NOTHING) for n in range(3)],
    "some null": [row(0), row(1, **NOTHING)],
    "equal": [row(0), row(0, waveform_id="w-1")],
    "infinite": [row(0), row(1, physical_min=-INF, physical_max=INF), row(2, physical_min=INF, physical_max=INF)],
    "huge": [row(n, **dict.fromkeys(NOTHING, (-1) ** n * 1.7e308)) for n in range(2)],
    "strange text": [row(0, source="a\x00b", channel="\u202e", units=""), row(1, source="", channel="", units="\x00")],
}


@pytest.mark.parametrize("name", SENT)
def test_nothing_that_a_producer_can_send_crashes_an_expectation_of_the_list(name: str) -> None:
    checks = []
    for kind, kwargs in EXAMPLES.items():
        checks.append(Expectation(type=kind, kwargs=kwargs))
        if kwargs.get("column") in ("sample_max", "row"):
            checks.append(Expectation(type=kind, kwargs={**kwargs, "column": "physical_max"}))
        if "column_A" in kwargs:
            pair = {"column_A": "physical_max", "column_B": "physical_min"}
            checks.append(Expectation(type=kind, kwargs={**kwargs, **pair}))
    verdict = validate(table(*SENT[name]), *checks)
    said = [*verdict.closed, *verdict.reported]
    assert [s for s in said if "could not be judged" in s] == []


def test_a_suite_whose_result_cannot_be_stored_is_an_error() -> None:
    ranges = QuantileRange(quantiles=[0.5], value_ranges=[[0, 10]])
    quantiles = ExpectColumnQuantileValuesToBeBetween(column="sample_max", quantile_ranges=ranges)
    frame = table(row(0)).to_pandas(types_mapper=pd.ArrowDtype)
    with pytest.raises(Terminal, match="Great Expectations failed while it ran the suite"):
        run_checkpoint(frame, [quantiles], run_name="r", docs_folder=None)


def test_five_hundred_failing_rows_are_all_named() -> None:
    verdict = validate(
        table(*(row(n, nonfinite_count=n % 2) for n in range(1000))),
        expect("column_values_to_be_between", column="nonfinite_count", max_value=0),
    )
    assert set(verdict.failed) == {f"w-{n}" for n in range(1, 1000, 2)}


@pytest.mark.parametrize("several", [True, False])
def test_nulls_pass_every_row_level_expectation_but_not_be_null(several: bool) -> None:
    rows = table(row(0), row(1, sample_min=None, sample_max=None), row(2, sample_min=None))
    checks = (
        [
            expect("column_pair_values_a_to_be_greater_than_b", column_A="sample_max", column_B="sample_min"),
            expect("column_pair_values_to_be_equal", column_A="sample_max", column_B="sample_max"),
            expect("select_column_values_to_be_unique_within_record", column_list=["sample_min", "sample_max"]),
        ]
        if several
        else [
            expect("column_values_to_be_between", column="sample_min", min_value=-9),
            expect("column_values_to_be_in_set", column="sample_min", value_set=[-9]),
        ]
    )
    assert validate(rows, *checks) == Verdict({}, (), (), rows=3, expectations=len(checks))
    assert set(validate(rows, expect("column_values_to_not_be_null", column="sample_min")).failed) == {"w-1", "w-2"}


def test_a_nan_is_a_null_to_the_gate() -> None:
    rows = table(row(0), row(1, physical_max=float("nan")))
    assert set(validate(rows, expect("column_values_to_not_be_null", column="physical_max")).failed) == {"w-1"}
    assert not validate(rows, expect("column_max_to_be_between", column="physical_max", max_value=1)).closed


@pytest.mark.parametrize("bound", ["2024-05-01T00:00:02Z", "2024-05-01T02:00:02+02:00", START + timedelta(seconds=2)])
def test_instants_are_compared_as_instants(bound: object) -> None:
    rows = table(*(row(n) for n in range(4)))
    checks = expect("column_values_to_be_between", column="start_time", min_value=bound)
    assert set(validate(rows, checks).failed) == {"w-0", "w-1"}
    assert validate(rows, expect("column_min_to_be_between", column="start_time", min_value=bound)).closed


def test_instants_and_days_can_be_listed_and_be_conditions() -> None:
    rows = table(row(0), row(1, nonfinite_count=1), row(2, nonfinite_count=1))
    late = {
        "type": "comparison",
        "column": {"name": "start_time"},
        "operator": ">=",
        "parameter": "2024-05-01T00:00:02Z",
    }
    verdict = validate(
        rows,
        expect("column_values_to_be_in_set", column="day", value_set=["2024-05-01"]),
        expect("column_values_to_be_between", column="day", max_value="2024-05-01"),
        expect("column_values_to_be_between", column="nonfinite_count", max_value=0, row_condition=late),
    )
    assert set(verdict.failed) == {"w-2"}


def test_check_finds_arguments_that_fail_only_when_compared() -> None:
    fine = expect("column_values_to_be_between", column="row", min_value=0)
    [found] = check_expectations([fine, expect("column_values_to_be_between", **CROSSED), fine])
    assert found.startswith("'expectations.1' is not valid: expect_column_values_to_be_between cannot be evaluated: ")


def test_check_has_nothing_to_say_about_expectations_that_can_be_used() -> None:
    assert check_expectations([]) == []
    yaml = """
topic: t
group: g
expectations:
  - {type: expect_column_values_to_be_between, kwargs: {column: start_time, min_value: 2020-01-01T00:00:00Z}}
  - {type: expect_column_values_to_be_between, kwargs: {column: start_time, min_value: "2020-01-01T00:00:00Z"}}
  - {type: expect_column_max_to_be_between, severity: warning, kwargs: {column: physical_max, max_value: 5}}
"""
    expectations = parse_stream(yaml, name="s").expectations
    assert check_expectations(expectations) == []
    assert validate(table(row(0)), *expectations) == Verdict({}, (), (), rows=1, expectations=3)


def test_great_expectations_is_given_the_columns_that_are_named_and_no_others() -> None:
    where = {"type": "nullity", "column": {"name": "units"}, "is_null": False}
    suite = build_suite(
        [
            expect("table_row_count_to_equal", value=1),
            expect("column_values_to_match_regex", column="channel", regex="Z"),
            expect("column_max_to_be_between", column="physical_max", max_value=5, row_condition=where),
            expect("column_pair_values_to_be_equal", column_A="sample_min", column_B="sample_max"),
            expect("compound_columns_to_be_unique", column_list=["source", "day"]),
        ],
        table(row(0)),
    )
    assert suite.looked_at == {"physical_max", "sample_min", "sample_max", "source", "day"}
    assert [*suite.columns] == ["matches_1", "condition_2"]


def test_equal_expectations_count_each() -> None:
    twice = [expect("table_row_count_to_equal", value=7)] * 2
    assert len(validate(table(row(0)), *twice).closed) == 2


def test_without_rows_nothing_is_evaluated_or_written(tmp_path: Path) -> None:
    verdict = validate(table(), expect("table_row_count_to_equal", value=7), docs_folder=tmp_path / "docs")
    assert verdict == Verdict({}, (), (), rows=0, expectations=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "rows, problem",
    [
        (table(row(0)).drop_columns(["row"]), "differing: row int64"),
        (table(row(0, reason="incomplete")), "waveforms with a reason"),
    ],
)
def test_rows_of_another_kind_are_refused(rows: pa.Table, problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        validate(rows, expect("table_row_count_to_equal", value=1))


def test_great_expectations_is_not_imported_before_there_is_something_to_validate() -> None:
    program = (
        "import sys, wavestitch.validation.gate as g; g.check_expectations([]); "
        "print('great_expectations' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
