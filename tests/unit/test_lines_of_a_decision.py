"""Texts of a decision's lines are as `repr` has them, however many are made at once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from wavestitch.contracts.chunk_table import TEXT
from wavestitch.contracts.decided import _as_repr

PLAIN = ["a", "", "wave-00000001", " !#$%&()*+,-./:;<=>?@[]^_`{|}~", "AZ az 09"]


ODD = ["it's", 'say "so"', "both ' and \"", "a\\b", "tab\t", "\0", "\x7f", "\x1f", "é", "日本", "\u200b", "\U0001f600"]


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_text_among_plain_ones(odd: str) -> None:
    texts = [*PLAIN, odd, *PLAIN]
    assert _as_repr(pa.array(texts, TEXT)).to_pylist() == [repr(text) for text in texts]
    # What lies before and behind a slice is not its own.
    assert _as_repr(pa.array(texts, TEXT).slice(0, len(PLAIN))).to_pylist() == [repr(text) for text in PLAIN]
    assert _as_repr(pa.array(texts, TEXT).slice(len(PLAIN), 1)).to_pylist() == [repr(odd)]


def test_plain_ones_and_none() -> None:
    assert _as_repr(pa.array(PLAIN, TEXT)).to_pylist() == [repr(text) for text in PLAIN]
    assert _as_repr(pa.array([], TEXT)).to_pylist() == []
    assert _as_repr(pa.array([""], TEXT)).to_pylist() == ["''"]
