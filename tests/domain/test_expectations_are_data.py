"""What a stream's YAML may make Great Expectations do: what is in the list, and nothing else, however it is written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.conftest import ROOT
from tests.domain.effort import effort
from tests.domain.expectation_examples import EXAMPLES
from tests.domain.gate_rows import expect, row, table, validate
from tests.domain.refused_expectations import COMMAND, REFUSED, Json, compares, not_null
from tests.security.hostile_text import HOSTILE_TEXTS
from tests.stack.airflow_home import write_settings
from wavestitch.contracts.condition import condition_problem
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.expectation import MOST_EXPECTATIONS, SHAPES, expectation_problems
from wavestitch.contracts.expectation_values import COLUMNS, Kind
from wavestitch.contracts.rows import STITCHED
from wavestitch.contracts.stream import Expectation, parse_stream
from wavestitch.validation.computed_columns import rows_where
from wavestitch.validation.gate import check_expectations, made_up_rows
from wavestitch.validation.suite import INDEX, build_suite


def stream_of(*expectations: Json) -> tuple[Expectation, ...]:
    """What a stream file says that has these expectations; JSON is YAML."""
    text = json.dumps({"topic": "t", "group": "g", "expectations": list(expectations)})
    return parse_stream(text, name="s").expectations


def test_the_page_lists_what_is_allowed() -> None:
    page = (ROOT / "docs" / "streams.md").read_text()
    listed = set()
    for line in page.splitlines():
        for name in re.findall(r"`((?:expect_|…)[a-z_{},…]+)`", line.split(" | ")[0]):
            head, _, rest = name.partition("{")
            choices, _, end = rest.partition("}")
            for choice in choices.split(",") if rest else [""]:
                listed.add(f"{head}{choice}{end}")
    full = {n for n in listed if n.startswith("expect_")}
    endings = {n.removeprefix("…") for n in listed if n.startswith("…")}
    assert full <= set(SHAPES)
    assert all(any(name.endswith(end) for name in SHAPES) for end in endings)
    assert all(name in full or any(name.endswith(end) for end in endings) for name in SHAPES)


def test_the_columns_that_a_stream_may_name_are_those_of_its_rows() -> None:
    def kind(found: pa.DataType) -> Kind:
        if pa.types.is_timestamp(found):
            return Kind.INSTANT
        if pa.types.is_date(found):
            return Kind.DAY
        return Kind.TEXT if pa.types.is_string(found) else Kind.NUMBER

    assert list(COLUMNS.items()) == [(f.name, kind(f.type)) for f in STITCHED]


def test_there_is_an_example_of_everything_in_the_list() -> None:
    assert set(EXAMPLES) == set(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_everything_in_the_list_can_be_evaluated_with_and_without_a_condition(name: str) -> None:
    everything = {"type": "nullity", "column": {"name": "row"}, "is_null": False}
    plain, limited = stream_of(
        {"type": name, "kwargs": EXAMPLES[name]},
        {"type": name, "kwargs": {**EXAMPLES[name], "row_condition": everything}},
    )
    verdict = validate(made_up_rows(), plain, limited)
    assert not verdict.failed
    assert not verdict.closed


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_not_in_the_list_is_refused_by_name_when_the_file_is_read(kind: str) -> None:
    expectation, says = REFUSED[kind]
    listed = [expectation] if expectation else [not_null()] * 201
    with pytest.raises(BadInput) as caught:
        stream_of(*listed)
    assert says in caught.value.message


def test_what_came_by_another_way_is_refused_before_great_expectations_sees_it() -> None:
    forged = Expectation.model_construct(
        type="expect_column_values_to_not_be_null",
        severity="critical",
        kwargs=not_null(row_condition={"type": "pass_through", "pass_through_filter": "1 == 1"})["kwargs"],
    )
    with pytest.raises(BadInput, match="is no condition"):
        validate(table(row(0)), forged)


def test_the_command_of_a_definition_is_not_run_by_check(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "streams").mkdir()
    condition = {"type": "pass_through", "pass_through_filter": COMMAND.format(mark=mark)}
    (tmp_path / "streams" / "ecg.yaml").write_text(
        json.dumps({"topic": "t", "group": "g", "expectations": [not_null(row_condition=condition)]})
    )
    settings = write_settings(tmp_path, streams=tmp_path / "streams")
    for command in (["check"], ["plan", "ecg"], ["run", "ecg"]):
        done = subprocess.run(
            [sys.executable, "-m", "wavestitch.cli", *command],
            env={**os.environ, "WAVESTITCH_CONFIG": str(settings)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 2, done.stderr
        assert "'expectations.0.kwargs.row_condition' is not valid" in " ".join((done.stdout + done.stderr).split())
        assert not mark.exists()


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from([COMMAND, "http://127.0.0.1/x", "file:///etc/passwd", "2024-05-01T00:00:00Z", "2024-05-01", "a+"])
    | st.sampled_from(sorted(STITCHED.names))
)
anything: st.SearchStrategy[Json] = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "column", "name", "operator", "parameter", "conditions", "is_null", "$PARAMETER"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
leaves = st.builds(
    compares,
    st.sampled_from([*STITCHED.names, "gap"]),
    st.sampled_from(["==", "!=", "<", ">=", "IN", "NOT_IN", "@", None]),
    scalars | st.lists(scalars, max_size=3),
) | st.builds(
    lambda column, null: {"type": "nullity", "column": {"name": column}, "is_null": null},
    st.sampled_from([*STITCHED.names, "gap"]),
    st.booleans() | scalars,
)
conditions = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda kind, parts: {"type": kind, "conditions": parts},
        st.sampled_from(["and", "or", "pass_through"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=6,
)


@st.composite
def expectations(draw: st.DrawFn) -> Json:
    """Near enough to good ones that many pass, with anything at all in any place."""
    name = draw(st.sampled_from(sorted(EXAMPLES)))
    kwargs = dict(EXAMPLES[name])
    for key in draw(st.lists(st.sampled_from([*SHAPES[name].keys, "condition_parser", "meta", "id"]), max_size=2)):
        kwargs[key] = draw(anything)
    if draw(st.booleans()):
        kwargs["row_condition"] = draw(conditions | anything)
    return {"type": draw(st.just(name) | st.text(max_size=20)) if draw(st.booleans()) else name, "kwargs": kwargs}


def assert_data(value: Json) -> None:
    """No mapping, no object: what Great Expectations is given can neither be fetched nor evaluated."""
    if isinstance(value, list):
        for part in value:
            assert_data(part)
    else:
        assert type(value).__name__ in ("NoneType", "bool", "int", "float", "str", "datetime", "date"), value


@effort(300)
@given(found=st.lists(expectations(), min_size=1, max_size=3))
@example(found=[REFUSED["a condition that pandas evaluates"][0]])
@example(found=[REFUSED["a schema that is fetched"][0]])
@example(found=[not_null(row_condition=compares("source", "==", "' or @pd.io.common.os.system('id') == 0 or '"))])
def test_no_definition_hands_great_expectations_anything_but_data(found: list[Json]) -> None:
    try:
        taken = stream_of(*found)
    except BadInput:
        return
    suite = build_suite(taken, made_up_rows())
    for place, built in enumerate(suite.objects):
        assert built.expectation_type in SHAPES
        given_to_it = {k: getattr(built, k) for k in built.__fields__ if getattr(built, k) is not None}
        condition = given_to_it.pop("row_condition", None)
        assert condition is None or repr(condition) == f"condition_{place} == True"
        assert given_to_it.pop("meta") == {INDEX: place}
        for key in (
            "result_format",
            "windows",
            "library_metadata",
            "domain_type",
            "notes",
            "severity",
            "condition_parser",
        ):
            given_to_it.pop(key, None)
        for key, value in given_to_it.items():
            assert_data(list(value) if key in ("column_list", "value_set") else value)


@effort(300)
@given(condition=conditions)
def test_a_condition_is_refused_or_gives_one_truth_value_a_row(condition: Json) -> None:
    if condition_problem(condition) is None:
        held = rows_where(made_up_rows(), condition)
        assert pa.types.is_boolean(held.type)
        assert (len(held), held.null_count) == (3, 0)


@pytest.mark.parametrize(
    "condition, holds",
    [
        (compares("row", "==", 1), [1]),
        (compares("row", "!=", 1), [0, 2]),
        (compares("row", "<", 1.5), [0, 1]),
        (compares("row", "IN", [0, 2.0, 9]), [0, 2]),
        (compares("row", "NOT_IN", [0, 2]), [1]),
        (compares("source", "==", "s-1"), [1]),
        (compares("source", "IN", ["s-1", "x' or @y"]), [1]),
        (compares("start_time", ">=", "2024-05-01T02:00:00+02:00"), [0, 1, 2]),
        (compares("day", "<", "2024-05-01"), []),
        # The last row has no finite sample: a comparison with null does not hold, nor does its opposite.
        (compares("sample_max", "==", 9), [0, 1]),
        (compares("sample_max", "!=", 9), []),
        (compares("sample_max", "NOT_IN", [8]), [0, 1]),
        ({"type": "nullity", "column": {"name": "sample_max"}, "is_null": True}, [2]),
        ({"type": "nullity", "column": {"name": "sample_max"}, "is_null": False}, [0, 1]),
        ({"type": "or", "conditions": [compares("row", "==", 0), compares("row", "==", 2)]}, [0, 2]),
        ({"type": "and", "conditions": [compares("row", ">", 0), compares("row", "<", 2)]}, [1]),
    ],
)
def test_a_condition_chooses_these_rows(condition: Json, holds: list[int]) -> None:
    assert condition_problem(condition) is None
    assert [n for n, held in enumerate(rows_where(made_up_rows(), condition).to_pylist()) if held] == holds


def test_only_rows_that_a_condition_chooses_are_held() -> None:
    rows = table(*(row(n, nonfinite_count=1) for n in range(4)))
    checks = expect(
        "column_values_to_be_between", column="nonfinite_count", max_value=0, row_condition=compares("row", ">", 1)
    )
    assert set(validate(rows, checks).failed) == {"w-2", "w-3"}


@pytest.mark.parametrize("ends", ["!", "\n!", "\u00e9\n"])
def test_no_text_of_a_producer_makes_a_pattern_take_long(ends: str) -> None:
    """Pandas would choose Python's own engine for a text with an end of line, and that one takes years for this."""
    rows = table(*(row(n, source="a" * 5000 + ends) for n in range(50)))
    patterns = [r"^(a+)+$", r"^(\w+\s?)*$", r"^(a|a)*$", r"(?i)^([a-z]+)*$"]
    checks = [expect("column_values_to_match_regex", column="source", regex=p) for p in patterns]
    began = time.monotonic()
    verdict = validate(rows, *checks, expect("column_values_to_match_regex_list", column="source", regex_list=patterns))
    assert time.monotonic() - began < 20
    assert len(verdict.failed) == 50


@pytest.mark.parametrize("pattern", ["((a{999}){999}){999}", "(", "[", "a{2,1}", "(?P<n", r"\w+\Z"])
def test_what_re2_does_not_take_is_found_by_check_and_before_anything_is_evaluated(pattern: str) -> None:
    [problem] = check_expectations([expect("column_values_to_match_regex", column="source", regex=pattern)])
    assert "is not a pattern of RE2's" in problem
    with pytest.raises(BadInput, match="is not a pattern of RE2's"):
        validate(table(row(0)), expect("column_values_to_match_regex", column="source", regex=pattern))


def test_a_pattern_says_what_it_saw() -> None:
    rows = table(row(0), row(1, source="who?"), row(2, source=None))
    verdict = validate(rows, expect("column_values_to_match_regex", column="source", regex="^station-"))
    assert verdict.failed == {"w-1": ("expect_column_values_to_match_regex: source is who?; allowed: regex ^station-",)}
    assert not validate(
        rows, expect("column_values_to_match_regex", column="source", regex="^station-", mostly=0.5)
    ).failed
    none = validate(
        rows, expect("column_values_to_not_match_regex_list", column="source", regex_list=["^who", "^station"])
    )
    assert set(none.failed) == {"w-0", "w-1"}
    both = validate(
        rows,
        expect("column_values_to_match_regex_list", column="source", regex_list=["^station", "2$"], match_on="all"),
    )
    assert set(both.failed) == {"w-0", "w-1"}


@pytest.mark.parametrize("count", [MOST_EXPECTATIONS, 1550])
def test_a_file_full_of_misspelt_expectations_takes_no_other_stream_s_time(count: int) -> None:
    text = "topic: t\ngroup: g\nexpectations:\n" + "- type: expect_column_values_to_be_in_sex\n" * count
    looked = []

    def count_looks(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "get_close_matches":
            looked.append(event)

    sys.setprofile(count_looks)
    try:
        with pytest.raises(BadInput, match=r"at most 200|did you mean expect_column_values_to_be_in_set"):
            parse_stream(text, name="ecg")
    finally:
        sys.setprofile(None)
    # Each takes milliseconds, in each of the DAG files, which have half a minute for all streams.
    assert len(looked) <= 8


@pytest.mark.parametrize("kind", HOSTILE_TEXTS)
def test_a_hostile_text_anywhere_in_an_expectation_is_refused_with_a_line_that_can_be_shown(kind: str) -> None:
    text = HOSTILE_TEXTS[kind]
    for name, kwargs in (
        (text, {}),
        ("expect_column_values_to_be_unique", {"column": text}),
        ("expect_column_values_to_be_unique", {"column": "source", text: 1}),
        ("expect_column_values_to_be_between", {"column": "row", "min_value": text}),
        ("expect_column_values_to_be_unique", {"column": "source", "row_condition": compares(text)}),
    ):
        for key, sentence in expectation_problems(name, kwargs):
            assert key.isprintable()
            assert sentence.isprintable()
            assert len(key) + len(sentence) < 4000
        assert list(expectation_problems(name, kwargs))
