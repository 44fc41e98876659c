"""Instants as people and their libraries say them, in nanoseconds since 1970: the one place that reads them.

Exact or refused: nothing is cut, as what is asked for is half-open to the nanosecond. Pure.
"""

from __future__ import annotations

import re
from datetime import datetime

import numpy as np

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.quantities import time_ns

Instant = datetime | np.datetime64 | str
"""A `datetime` (or pandas' `Timestamp`) with a zone, an ISO text with one, or a `datetime64`, which is UTC."""

_FINER = re.compile(r"([^.,]*[.,]\d{6})(\d+)([^.,]*)")
"""Of what follows the microseconds Python takes no notice."""
_NS_DIGITS = 3


def instant_ns(said: Instant) -> int:
    """Raises `BadInput` for what is no time, has no zone, or says more than nanoseconds."""
    if isinstance(said, str):
        return parse_time(said)
    if isinstance(said, np.datetime64):
        return _of_numpy(said)
    if not isinstance(said, datetime):
        raise BadInput(f"{said!r} is not a time; write it like 2026-01-31T12:00:00Z")
    if said.tzinfo is None:
        raise BadInput(f"{said.isoformat()} has no time zone; use e.g. datetime(…, tzinfo=UTC)")
    return time_ns(said) + int(getattr(said, "nanosecond", 0))  # pandas' times have that


def parse_time(text: str) -> int:
    """An ISO time with its zone, in ns since the epoch."""
    finer = _FINER.fullmatch(text.strip())
    digits = finer[2].rstrip("0") if finer else ""
    try:
        found = datetime.fromisoformat(finer[1] + finer[3] if finer else text.strip())
    except ValueError:
        raise BadInput(f"{text!r} is not a time; write it like 2026-01-31T12:00:00Z") from None
    if found.tzinfo is None:
        raise BadInput(f"{text!r} has no time zone; add Z for UTC")
    if len(digits) > _NS_DIGITS:
        raise BadInput(f"{text!r} says more than nanoseconds; write nine digits of a second at most")
    return time_ns(found) + int(digits.ljust(_NS_DIGITS, "0"))


def _of_numpy(said: np.datetime64) -> int:
    exact = said.astype("datetime64[ns]")
    # NaT is not equal to itself; what has no room in 64 bits of nanoseconds, or is finer, does not come back.
    if exact.astype(said.dtype) != said:
        raise BadInput(f"{said!r} is not a time in whole nanoseconds between 1678 and 2262; name another one")
    return int(exact.astype(np.int64))
