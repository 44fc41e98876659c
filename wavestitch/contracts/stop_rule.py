"""When a reader of one slice is done, and when it has failed: a state machine without clock or I/O.

Done means that its position reached the end: not that the record before the end was seen (it may be a transaction
marker), and never that nothing came (silence only fails). Keeps I5 (every reading ends, with a reason) and I8.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.quantities import Offset


class State(StrEnum):
    CONTINUE = "continue"
    DONE = "done"
    FAILED = "failed"


class Why(StrEnum):
    """Why a reading ended."""

    REACHED_END = "reached_end"
    IDLE = "idle"
    NOT_RISING = "offset_not_rising"
    BEFORE_START = "offset_before_start"
    LOG_ERROR = "log_error"


class Ruling(NamedTuple):
    state: State
    why: Why | None


_CONTINUE = Ruling(State.CONTINUE, None)


class StopRule:
    """Fed with what happens, asked what to do. A ruling that is not `continue` is final.

    `idle_seconds`: how long nothing may happen before the end. `now`: any clock that only rises, in seconds.
    `next_offset`: the least offset that may come next.
    """

    __slots__ = ("_heard", "_idle_seconds", "_ruling", "_slice", "next_offset", "position")

    def __init__(self, slice_: OffsetRange, *, idle_seconds: float, now: float) -> None:
        self._slice = slice_
        self._idle_seconds = idle_seconds
        self._heard = now
        self._ruling = _CONTINUE
        self.next_offset = slice_.start
        self.position = slice_.start

    @property
    def reached(self) -> Offset:
        """The first offset that did not come, as far as is known."""
        return max(self.position, self.next_offset)

    def admit(self, offset: Offset) -> bool:
        """Whether the record at this offset is one to keep. Records at or behind the end are dropped."""
        if self._ruling is not _CONTINUE:
            return False
        if offset < self.next_offset:
            self.fail(Why.BEFORE_START if offset < self._slice.start else Why.NOT_RISING)
            return False
        self.next_offset = Offset(offset + 1)
        return offset < self._slice.end

    def fail(self, why: Why) -> None:
        """Something happened that no waiting repairs."""
        if self._ruling is _CONTINUE:
            self._ruling = Ruling(State.FAILED, why)

    def judge(self, *, position: Offset | None, now: float) -> Ruling:
        """What to do next. `position`: where the reader says it stands, None where it does not know."""
        if self._ruling is not _CONTINUE:
            return self._ruling
        reached = max(self.next_offset, self.position if position is None else position)
        if reached > self.position:
            self.position = reached
            self._heard = now
        if self.position >= self._slice.end:
            self._ruling = Ruling(State.DONE, Why.REACHED_END)
        elif now - self._heard >= self._idle_seconds:
            self._ruling = Ruling(State.FAILED, Why.IDLE)
        return self._ruling
