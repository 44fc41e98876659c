"""How long a closed gate waits for somebody, and what becomes of the batch where nobody says so. Pure.

The stream says both (`gate_timeout`, `gate_default`). A stream that may be parked by itself is, as soon as headroom is
red: before retention takes what nobody could read meanwhile. Invariant: no question waits for longer than the time-out.
"""

from __future__ import annotations

from typing import Literal

from wavestitch.contracts.headroom import Alarm, Room
from wavestitch.contracts.stream import GateDefault

_LEAST_S = 60.0
"""Whoever is asked has this long, whatever the headroom."""
_UNKNOWN_S = 300.0
_ROOMY_S = 3600.0


def look_again_s(default: GateDefault, room: Room | None, *, left_s: float) -> float:
    """In how many seconds nobody's answer is taken for one, or looked at again: of the `left_s` that the stream waits.
    `room`: its headroom, None where that is not known. Halfway to where retention may take unread data, so that red is
    seen in time without many looks."""
    if default == "stop":
        return left_s
    if room is None:
        return min(left_s, _UNKNOWN_S)
    free_s = room.left_s / 2 if room.left_s is not None else _ROOMY_S
    return min(left_s, max(_LEAST_S, free_s))


def unanswered(default: GateDefault, room: Room | None, *, left_s: float) -> Literal["park", "stop"] | None:
    """What becomes of the batch where nobody has answered until now; None: it waits on."""
    if default != "stop" and is_red(room):
        return "park"
    if left_s > 0:
        return None
    return "park" if default == "park" else "stop"


def is_red(room: Room | None) -> bool:
    return room is not None and room.alarm is Alarm.RED
