"""Patterns have a time limit: RE2 is linear in the text, and how steep that is, the pattern decides."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.domain.gate_rows import expect, row, table, validate
from wavestitch.contracts.errors import Terminal
from wavestitch.validation import computed_columns
from wavestitch.validation.computed_columns import texts_matching

ROWS = 1000


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed_columns, "PATTERN_SECONDS", 0.0)


def texts() -> pa.ChunkedArray:
    """In chunks of odd lengths, with nulls."""
    names = [None if n % 7 == 0 else f"station-{n}" for n in range(ROWS)]
    return pa.chunked_array([names[:1], names[1:400], [], names[400:]], pa.string())


def test_slice_by_slice_the_answers_are_those_of_the_whole() -> None:
    found = texts_matching(texts(), ["^station-", "1$"], every=True, negated=False)
    wanted = [None if t is None else t.endswith("1") for t in texts().to_pylist()]
    assert found.to_pylist() == wanted


def test_without_a_value_there_is_nothing_to_judge() -> None:
    none = pa.chunked_array([], pa.string())
    assert texts_matching(none, ["a"], every=True, negated=True).to_pylist() == []


def test_what_takes_too_long_ends_with_how_far_it_came(no_time: None) -> None:
    with pytest.raises(Terminal, match="was not done with 1000 values after 0 s, 0 of them were judged"):
        texts_matching(texts(), ["a"], every=True, negated=False)


def test_however_cheap_texts_are_that_come_first_those_behind_are_judged_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    matched = computed_columns._matched

    def counting(part: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
        asked.append(len(part))
        return matched(part, pattern)

    monkeypatch.setattr(computed_columns, "_matched", counting)
    texts_matching(pa.chunked_array([["a"] * 20_000]), ["b"], every=True, negated=False)
    assert sum(asked) == 20_000
    assert max(asked) == computed_columns._MOST_SLICE


def test_the_patterns_of_all_expectations_have_an_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed_columns, "ALL_PATTERNS_SECONDS", 0.0)
    rows = table(*(row(n) for n in range(3)))
    several = [expect("column_values_to_match_regex", column="source", regex=r) for r in ("a", "b", "c")]
    verdict = validate(rows, *several)
    assert len(verdict.closed) == 3
    assert all("all patterns of a batch have 0 s together" in said for said in verdict.closed)


def test_such_an_expectation_cannot_be_judged_and_closes_the_gate_and_its_neighbours_are(no_time: None) -> None:
    rows = table(*(row(n) for n in range(3)), row(3, sample_count=7))
    slow = expect("column_values_to_match_regex", column="source", regex="((a|b|.)?){999}z")
    verdict = validate(rows, slow, expect("column_values_to_be_between", column="sample_count", min_value=8))
    assert set(verdict.failed) == {"w-3"}
    (closed,) = verdict.closed
    assert "was not done with 4 values after 0 s" in closed
