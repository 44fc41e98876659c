"""Whether a preview may still be done: it was not rejected, which is final, and is not too old. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.plain_text import harmless
from wavestitch.contracts.quantities import EpochMs, Seconds, apart, clock, milliseconds
from wavestitch.contracts.versioned import Versioned


@dataclass(frozen=True, slots=True)
class Rejected:
    """Who said no to a preview, and when (ms since the epoch). `why`: empty where nothing was said."""

    who: str
    why: str
    at_ms: EpochMs


REJECTED = Versioned(Rejected, "the rejection of a preview", "preview it again")


def refuse_dead(stream: str, *, made_ms: EpochMs, now: EpochMs, holds: Seconds, rejected: Rejected | None) -> None:
    """Raises `Refused`. `holds`: how long a preview may be done."""
    if rejected is not None:
        why = f" ({harmless(rejected.why)})" if rejected.why else ""
        raise Refused(
            f"stream {stream}: this preview was rejected by {harmless(rejected.who)}{why}, which stands. Nothing was "
            "changed; preview it again"
        )
    # A clock that was ahead makes none that holds for longer than until that time, and as long again.
    if apart(made_ms, now) > milliseconds(holds):
        ahead = f"is of {clock(made_ms)}, which is ahead of this clock by more than"
        told = "is older than" if made_ms < now else ahead
        raise Refused(
            f"stream {stream}: this preview {told} {holds} s ([maintain] previews), and the stream may be another by "
            "now. Nothing was changed; preview it again"
        )
