"""A condition of an expectation is data of four shapes: what is none is refused by a sentence, and how deep it goes."""

from __future__ import annotations

from typing import Any

import pytest

from wavestitch.contracts.condition import condition_problem

COLUMN = {"name": "sample_count"}
LEAF = {"type": "comparison", "column": COLUMN, "operator": ">", "parameter": 3}
NULL = {"type": "nullity", "column": COLUMN, "is_null": True}


def nested(deep: int, leaf: Any = LEAF) -> Any:
    """So many conditions inside each other, the innermost a leaf."""
    return leaf if deep == 1 else {"type": "or" if deep % 2 else "and", "conditions": [LEAF, nested(deep - 1, leaf)]}


@pytest.mark.parametrize(
    "value",
    [
        LEAF,
        NULL,
        {**NULL, "is_null": False},
        *({**LEAF, "operator": operator} for operator in ("==", "!=", "<", "<=", ">=")),
        *({**LEAF, "operator": operator, "parameter": [1, 2]} for operator in ("IN", "NOT_IN")),
        *(nested(deep) for deep in range(1, 6)),
        {"type": "and", "conditions": [LEAF] * 20},
    ],
)
def test_a_condition_is_one(value: Any) -> None:
    assert condition_problem(value) is None


@pytest.mark.parametrize(
    ("value", "says"),
    [
        *((nested(deep), "conditions inside conditions are more than 5 deep") for deep in (6, 7)),
        ({"type": "and", "conditions": []}, "conditions is not a list of 1 to 20 conditions"),
        ({"type": "or", "conditions": [LEAF] * 21}, "conditions is not a list of 1 to 20 conditions"),
        ({"type": "or", "conditions": {}}, "conditions is not a list of 1 to 20 conditions"),
        ({**LEAF, "type": "not"}, "is no condition; allowed is a mapping whose type is comparison"),
        ("sample_count > 3", "'sample_count > 3' is no condition; allowed is a mapping"),
        ({"type": ["and"]}, "is no condition; allowed is a mapping"),
        ({**LEAF, "else": 1}, "a condition of type comparison has exactly column, operator, parameter, type"),
        ({"type": "nullity", "column": COLUMN}, "a condition of type nullity has exactly column, is_null, type"),
        ({**NULL, "is_null": 1}, "is_null is neither true nor false"),
        ({**LEAF, "column": "sample_count"}, "column is a mapping with name, the column's"),
        ({**LEAF, "column": {**COLUMN, "type": "x"}}, "column is a mapping with name, the column's"),
        ({**LEAF, "operator": "~"}, "'~' is no operator; allowed are ==, !=, <, <=, >, >=, IN, NOT_IN"),
        *((nested(deep, {**NULL, "is_null": "no"}), "is_null is neither true nor false") for deep in range(1, 6)),
    ],
)
def test_what_is_no_condition_is_refused_wherever_it_stands(value: Any, says: str) -> None:
    assert says in (condition_problem(value) or "nothing")


def test_what_stands_in_the_place_of_a_condition_is_shown_up_to_eighty_characters() -> None:
    value = "x" * 200
    said = condition_problem(value)
    assert (said or "").partition(" is no condition")[0] == f"'{value}"[:80] + "…"
    said = condition_problem({**LEAF, "operator": value})
    assert (said or "").partition(" is no operator")[0] == f"'{value}"[:80] + "…"
