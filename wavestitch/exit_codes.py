"""What a command ends with where an error ends it."""

from __future__ import annotations

from wavestitch.contracts.errors import (
    BadInput,
    DataLost,
    Fenced,
    GateClosed,
    Refused,
    StateUnknown,
    Transient,
    WavestitchError,
)

NOT_SHOWN, TRY_AGAIN = 74, 75
"""As of `sysexits.h`: schedulers know them."""
_BY_KIND: tuple[tuple[type[WavestitchError], int], ...] = (
    (BadInput, 2),
    (Refused, 3),
    (DataLost, 3),
    (Fenced, 4),
    (GateClosed, 5),
    (Transient, TRY_AGAIN),
    (StateUnknown, TRY_AGAIN),
)


def exit_code_of(error: WavestitchError) -> int:
    return next((code for kind, code in _BY_KIND if isinstance(error, kind)), 1)
