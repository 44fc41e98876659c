"""Where a long signal is cut into recordings, and when each of them begins. Pure integer arithmetic.

Every start time is derived from the signal's own, never from the recording before it: rounding does not add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from wavestitch.contracts.errors import BadInput


def cut_spans(total: int, *, sampling_rate_hz: float, seconds: float) -> Iterator[tuple[int, int]]:
    """Half-open sample ranges that cover `total` samples, each `seconds` long; the one at the end may be shorter.

    Raises `BadInput` where `seconds` is not a length of at least one sample.
    """
    exact = seconds * sampling_rate_hz
    if not (seconds > 0 and 1 <= exact < float("inf")):
        raise BadInput(
            f"{seconds:g} s per recording is less than one sample at {sampling_rate_hz:g} Hz, or not a length at all; "
            "choose a longer one"
        )
    length = round(exact)
    return ((start, min(start + length, total)) for start in range(0, total, length))


def sample_time_ns(first_ns: int, sample: int, *, sampling_rate_hz: float) -> int:
    """Time of sample number `sample` in ns, rounded once, where sample 0 is at `first_ns`."""
    return first_ns + round(sample * 1_000_000_000 / Fraction(sampling_rate_hz))
