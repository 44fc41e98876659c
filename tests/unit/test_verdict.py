"""The verdict's contract: what is written is read back, anything else is refused."""

from __future__ import annotations

import json

import pytest

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.verdict import VERDICT_FORMAT, Verdict, verdict_from_json

FULL = Verdict(
    failed={"w-1": ("sample_max is 9.0", "sample_min is null"), "w-ü": ("x",)},
    closed=("seen 7; allowed: min_value 100",),
    reported=("warning: seen 9.0",),
    rows=7,
    expectations=4,
    docs="docs/index.html",
)


@pytest.mark.parametrize("verdict", [FULL, Verdict({}, (), (), rows=0, expectations=0)])
def test_a_verdict_is_read_back_as_it_was_written(verdict: Verdict) -> None:
    assert verdict_from_json(verdict.to_json()) == verdict


def test_the_same_verdict_is_always_the_same_text() -> None:
    reordered = {w: FULL.failed[w] for w in reversed(list(FULL.failed))}
    assert Verdict(reordered, FULL.closed, FULL.reported, 7, 4, FULL.docs).to_json() == FULL.to_json()


@pytest.mark.parametrize("seen", [None, VERDICT_FORMAT - 1, "1"])
def test_an_unknown_format_is_refused_and_named(seen: object) -> None:
    text = json.dumps({**json.loads(FULL.to_json()), "format": seen})
    with pytest.raises(BadInput, match=f"has format {seen!r}, which is none"):
        verdict_from_json(text)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", f'{{"format": {VERDICT_FORMAT}}}'])
def test_what_is_no_verdict_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="validate step again"):
        verdict_from_json(text)
