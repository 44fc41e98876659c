"""Anything at all as a stream's definition: one sentence, or a stream that is the same in every plan."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.domain.effort import effort
from tests.hostile.refusing import value_or_refusal
from tests.hostile.yaml_kinds import HEAD, yaml_kinds
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.stream import Stream, parse_stream

TEXTS = [k.text for k in yaml_kinds() if len(k.text) < 2000]
SIGNS = [
    "&a ",
    "*a",
    "!!int ",
    "!!set ",
    "? ",
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    "|",
    ">",
    "'",
    '"',
    "\\ud800",
    "\0",
    "\n",
    "<<: ",
]


def judge(text: str) -> None:
    found = value_or_refusal(lambda: parse_stream(text, name="x"), allowed=BadInput)
    if isinstance(found, Stream):
        again = Stream.model_validate(json.loads(json.dumps(found.model_dump(mode="json"))))
        assert again.digest() == found.digest()


@effort(300)
@given(text=st.sampled_from(TEXTS), at=st.integers(0, 2000), insert=st.sampled_from(SIGNS) | st.text(max_size=5))
@example(text=HEAD + "x: ", at=2000, insert="2001-99-99")
@example(text=HEAD + "x: ", at=2000, insert="!!int ''")
@example(text=HEAD + "x: ", at=2000, insert="!!timestamp soon")
def test_any_text_put_into_any_definition_is_refused_or_the_same_in_every_plan(text: str, at: int, insert: str) -> None:
    judge(text[:at] + insert + text[at:])


@effort(200)
@given(text=st.text(max_size=60))
def test_any_text_behind_a_good_beginning_is_refused_or_the_same_in_every_plan(text: str) -> None:
    judge(HEAD + text)


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["1 h", "1 MiB"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
keys = st.sampled_from([*Stream.model_fields, "limits", "expectations"])


@effort(300)
@given(fields=st.dictionaries(keys | st.text(max_size=6), values, max_size=4), kwargs=values)
def test_any_values_of_any_keys_are_refused_or_the_same_in_every_plan(fields: dict[str, Any], kwargs: Any) -> None:
    good = {"column": "row", "value_set": [1]}
    expected = [{"type": "expect_column_values_to_be_in_set", "kwargs": {**good, "value_set": kwargs}}]
    for found in (fields, {"expectations": expected}):
        # JSON is YAML, but for numbers that are none.
        judge(json.dumps({"topic": "t", "group": "g", **found}))
