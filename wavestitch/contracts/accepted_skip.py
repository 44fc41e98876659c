"""What an operator accepts that nobody will read, by name: a command that a refusal has named skips these offsets and
no others, however long ago that was. What lies there is another record once the log was written anew.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wavestitch.contracts.offset_range import OffsetRange, without

ALL = "all"
_NAMED = 100
"""Ranges that a command names: a longer one nobody reads."""

AcceptedSkip = bool | Sequence[OffsetRange]
"""These offsets alone; True: all that is shown."""


def not_accepted(skipped: Sequence[OffsetRange], accepted: AcceptedSkip) -> list[OffsetRange]:
    """What of it nobody has accepted."""
    if isinstance(accepted, bool):
        return [] if accepted else list(skipped)
    return without(skipped, accepted)


def accepting(skipped: Iterable[OffsetRange]) -> str:
    """The option that accepts exactly that, as part of a command; empty where nothing is skipped."""
    named = [f"{r.partition}:{r.start}-{r.end}" for r in skipped]
    return f" --accept-skip {','.join(named) if len(named) <= _NAMED else ALL}" if named else ""
