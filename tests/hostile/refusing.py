"""What a call ended with: its value, or the error of the product's tree that refused its input. All else is raised."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from wavestitch.contracts.errors import WavestitchError

T = TypeVar("T")
MOST_CHARS = 1200
"""Bad input gets a sentence (a definition with several faults: some), however long the input."""


def value_or_refusal(
    call: Callable[[], T], *, allowed: type[WavestitchError] | tuple[type[WavestitchError], ...] = WavestitchError
) -> T | WavestitchError:
    refusal: WavestitchError | None = None
    try:
        found = call()
    except allowed as error:
        refusal = error
    if refusal is None:
        return found
    assert 0 < len(refusal.message) < MOST_CHARS, refusal.message[:600]
    return refusal
