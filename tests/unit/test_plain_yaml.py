"""YAML as people write it: plain values that mean what they seem to, in a text that is not too long."""

from __future__ import annotations

from typing import Any

import pytest

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.plain_yaml import MAX_CHARS, read_plain_yaml


def long(characters: int) -> str:
    return "a: 1 #".ljust(characters, "x")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("a: 1\nb: [x, 1.5, true, null]\nc: {d: '7'}", {"a": 1, "b": ["x", 1.5, True, None], "c": {"d": "7"}}),
        (long(MAX_CHARS), {"a": 1}),
        (f"a: {(1 << 64) - 1}", {"a": (1 << 64) - 1}),
        ("a: {b: 1}\nc: {b: 1}", {"a": {"b": 1}, "c": {"b": 1}}),
    ],
)
def test_plain_values_lists_and_mappings_are_read_as_what_they_say(text: str, found: Any) -> None:
    assert read_plain_yaml(text, where="ecg.yaml") == found


def test_a_text_that_is_too_long_is_refused_with_the_limit() -> None:
    with pytest.raises(BadInput) as refused:
        read_plain_yaml(long(MAX_CHARS + 1), where="ecg.yaml")
    assert refused.value.message == "ecg.yaml has 65537 characters; allowed are 65536: make it shorter"
    assert not refused.value.for_guests


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: &x 1\nb: *x", "at line 2: aliases (*name) are not read here"),
        ("a: 1\nb: 2\na: 3", "at line 3: a key occurs twice in one mapping"),
        ("b:\n  c: {d: 1, d: 1}", "at line 2: a key occurs twice in one mapping"),
        ('a: "\\ud800"', "at line 1: a text is not valid Unicode"),
        (f"a: {1 << 64}", "at line 1: a number has more than 64 bits"),
        ("a: 2001-99-99", "at line 1: a value is no timestamp"),
        ("a: !!int x", "at line 1: a value is no int"),
        *((f"a: !!{tag} x", "could not determine a constructor") for tag in ("binary", "set", "omap", "pairs")),
        ("a: [1", "is not YAML at line 1"),
        ("[" * 5000, "is not YAML"),
    ],
)
def test_what_two_readers_would_not_read_alike_is_refused_with_its_line(text: str, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_plain_yaml(text, where="ecg.yaml")
    assert refused.value.message.startswith("ecg.yaml is not YAML")
    assert says in refused.value.message
    assert refused.value.for_guests
