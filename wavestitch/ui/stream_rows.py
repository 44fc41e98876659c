"""What a list of streams says of each, and in which order: the one that needs somebody stands first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from wavestitch.batch.brief_facts import held_by
from wavestitch.batch.stream_facts import StreamFacts
from wavestitch.contracts.headroom import Alarm
from wavestitch.contracts.quantities import EpochMs
from wavestitch.ui.bars import Column, strip_of, strip_says
from wavestitch.ui.looks import NOT_YET

NO_BATCH = "no batch yet"


class State(StrEnum):
    """How a stream stands, the most urgent first."""

    LOST = "lost unread"
    RED = "red"
    UNKNOWN = "not known"
    AMBER = "amber"
    LATE = "late"
    FAILED = "run failed"
    LOOKING = "being looked at"
    GREEN = "green"
    NEW = NO_BATCH


_rank = tuple(State).index
STYLES = {
    State.LOST: "failed",
    State.RED: "failed",
    State.UNKNOWN: "failed",
    State.AMBER: "reported",
    State.LATE: "reported",
    State.FAILED: "failed",
    State.GREEN: "passed",
    State.LOOKING: "muted",
    State.NEW: "muted",
}


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A run of one of a stream's DAGs that failed."""

    dag_id: str
    run_id: str
    at_ms: EpochMs


@dataclass(frozen=True, slots=True)
class StreamRow:
    """`age`: seconds since it was looked at, None where it was not yet. `failed`: the last run that did, if the stream
    has had no batch since."""

    facts: StreamFacts
    age: float | None
    state: State
    failed: FailedRun | None

    @property
    def style(self) -> str:
        return STYLES[self.state]

    @property
    def strip(self) -> tuple[Column, ...]:
        return strip_of(self.facts)

    @property
    def strip_says(self) -> str:
        return strip_says(self.facts)

    @property
    def held(self) -> int:
        return sum(held_by(self.facts.head).values()) if self.facts.head is not None else 0

    @property
    def problem(self) -> str:
        """What could not be found out; empty where the look is only not done."""
        return "" if self.state in (State.LOOKING, State.NEW) else self.facts.problem


def rows_of(
    streams: Iterable[tuple[StreamFacts, float | None]], failed: Mapping[str, FailedRun]
) -> Sequence[StreamRow]:
    """In the order in which somebody should look at them."""
    made = [_row(facts, age, failed.get(facts.name)) for facts, age in streams]
    return sorted(made, key=lambda row: (_rank(row.state), row.facts.name))


def summary(rows: Sequence[StreamRow]) -> str:
    """The first line: how many streams need somebody."""
    worrying = [row for row in rows if row.style in ("failed", "reported")]
    looking = sum(row.state is State.LOOKING for row in rows)
    said = (
        f"{len(worrying)} of {len(rows)} streams need somebody"
        if worrying
        else f"None of {len(rows)} streams needs anybody"
    )
    return f"{said}; {looking} are still being looked at." if looking else f"{said}."


def _row(facts: StreamFacts, age: float | None, failed: FailedRun | None) -> StreamRow:
    last = facts.head.committed_ms if facts.head is not None else None
    if failed is not None and last is not None and last > failed.at_ms:
        failed = None
    return StreamRow(facts, age, _state(facts, failed), failed)


def _state(facts: StreamFacts, failed: FailedRun | None) -> State:
    if facts.room is not None and facts.room.lost:
        return State.LOST
    if facts.room is not None and facts.room.alarm is Alarm.RED:
        return State.RED
    if facts.problem == NOT_YET:
        return State.LOOKING
    if facts.problem and facts.problem != NO_BATCH:
        return State.UNKNOWN
    if facts.room is not None and facts.room.alarm is Alarm.AMBER:
        return State.AMBER
    if facts.room is not None and facts.room.late:
        return State.LATE
    if failed is not None:
        return State.FAILED
    return State.NEW if facts.head is None else State.GREEN
