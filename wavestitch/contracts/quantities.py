"""Numbers that look alike and must not be mixed: lengths and points of time, places in a log, generations.

A checker of types refuses one where another is wanted; at run time they are whole numbers. Sums lose the type, so a
point of time is moved by `before` and `after`, and only `milliseconds` and `epoch_ms` change a unit.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal, NewType

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Seconds = NewType("Seconds", int)
"""A length of time, as people write it in settings and streams."""
Milliseconds = NewType("Milliseconds", int)
"""A length of time, as record times are compared."""
EpochMs = NewType("EpochMs", int)
"""A point of time: milliseconds since the epoch, UTC, as Kafka and Iceberg say it."""
BEGINNING = EpochMs(0)
Generation = NewType("Generation", int)
"""Of a stream's heads, counted by rewinds; stands beside the number of the head everywhere, and is another one."""
Partition = NewType("Partition", int)
"""Of a topic, by its number; stands before an offset in every place of a chunk."""
Offset = NewType("Offset", int)
"""Within a partition."""
LeaderEpoch = NewType("LeaderEpoch", int)
"""Of a partition, counted by elections; stands beside offsets, and is none (KIP-320)."""
NONE_YET = Generation(0)


def milliseconds(length: Seconds) -> Milliseconds:
    return Milliseconds(length * 1000)


def before(at: EpochMs, length: Milliseconds) -> EpochMs:
    return EpochMs(at - length)


def after(at: EpochMs, length: Milliseconds) -> EpochMs:
    return EpochMs(at + length)


def epoch_ms(time_ns: int) -> EpochMs:
    """The millisecond in which a nanosecond since the epoch lies, as of `time.time_ns()` or a file's `st_mtime_ns`."""
    return EpochMs(time_ns // 1_000_000)


def time_ns(moment: datetime) -> int:
    """Nanoseconds since the epoch of a time with a zone. Exact: a float has no room for those of this century."""
    # Against an epoch in UTC: between two times of one zone Python reckons by the clock on the wall.
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


def clock(at: int, to: Literal["minutes", "seconds", "milliseconds"] = "seconds") -> str:
    """A point of time in milliseconds, as people read it, in UTC. A record time is whatever its sender said: one in a
    year that no calendar has is told as that number."""
    try:
        moment = _EPOCH + timedelta(milliseconds=at)
    except OverflowError:
        return f"{at} ms"
    return f"{moment.replace(tzinfo=None).isoformat(' ', to)}Z"


def following(generation: Generation) -> Generation:
    return Generation(generation + 1)


def elapsed(*, since: EpochMs, until: EpochMs) -> Milliseconds:
    """Less than 0 where `since` is yet to come."""
    return Milliseconds(until - since)


def apart(one: EpochMs, other: EpochMs) -> Milliseconds:
    return Milliseconds(abs(one - other))


def lately(at: EpochMs, *, within: Milliseconds, now: EpochMs) -> bool:
    """Whether it was less than `within` ago. What is yet to come was noted by a clock that was ahead: it was not."""
    return before(now, within) < at <= now
