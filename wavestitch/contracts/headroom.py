"""How much room a stream has before retention eats what nobody has read yet, and when somebody must be told. Pure.

Retention keeps so much time or so many bytes of each partition; what of that lies between the newest record and the
position is used up. Decides the colour by the share that is left, so that seven days and ten minutes of retention are
judged alike, whatever the rate of writing. Invariant: a colour that got worse is said at once; it gets better only
with some room to spare, so that nobody is told to and fro.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from wavestitch.contracts.quantities import Milliseconds
from wavestitch.contracts.rewind_preview import length
from wavestitch.contracts.versioned import Versioned

SPARE = 0.05
"""So much more must be left than where a colour begins, before that colour is taken back."""


class Alarm(StrEnum):
    GREEN = "green"
    AMBER = "amber"
    RED = "red"


_rank = tuple(Alarm).index


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Shares of what retention keeps: where less is left, it is amber, and red."""

    amber: float = 0.5
    red: float = 0.25

    def colour(self, left: float) -> Alarm:
        return Alarm.RED if left < self.red else Alarm.AMBER if left < self.amber else Alarm.GREEN


@dataclass(frozen=True, slots=True)
class Retention:
    """Of each partition of a topic. None: that does not limit it."""

    ms: Milliseconds | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Unread:
    """What was seen of one partition. `age_ms`: how long ago the newest record up to the first unread one was written,
    None where nothing is unread or no record has a time; `per_second`: offsets written lately."""

    partition: int
    position: int
    log_start: int
    end: int
    age_ms: Milliseconds | None = None
    per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class PartitionRoom:
    """`backlog`: offsets not yet read; `lost`: how many of what nobody read are gone already. `behind_s`: how old the
    first unread record is; `left_s`: until retention may take it, less than 0 where it may by now. None: not known, or
    never."""

    partition: int
    backlog: int
    lost: int
    behind_s: float | None
    left_s: float | None
    alarm: Alarm


@dataclass(frozen=True, slots=True)
class Room:
    """A stream's headroom; `reading_s`: how long its backlog takes to read, as past batches went."""

    partitions: tuple[PartitionRoom, ...]
    reading_s: float | None = None

    @property
    def alarm(self) -> Alarm:
        return max((p.alarm for p in self.partitions), key=_rank, default=Alarm.GREEN)

    @property
    def backlog(self) -> int:
        return sum(p.backlog for p in self.partitions)

    @property
    def lost(self) -> int:
        return sum(p.lost for p in self.partitions)

    @property
    def behind_s(self) -> float | None:
        return max((p.behind_s for p in self.partitions if p.behind_s is not None), default=None)

    @property
    def left_s(self) -> float | None:
        return min((p.left_s for p in self.partitions if p.left_s is not None), default=None)

    @property
    def shown(self) -> str:
        """How long there is, in a word or two; empty where retention takes nothing that is unread."""
        return "" if self.left_s is None else "any moment" if self.left_s <= 0 else length(self.left_s)


class Sight(StrEnum):
    """Whether a stream could be looked at: one look that failed may be a broker that starts again."""

    CLEAR = "clear"
    MISSED = "missed"
    BLIND = "blind"


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of a stream's headroom. `lost`: whether retention took something unread; `sight`: of the last looks;
    where that is not clear, colour and loss are those seen last."""

    alarm: Alarm = Alarm.GREEN
    lost: bool = False
    sight: Sight = Sight.CLEAR

    def seeing(self, room: Room) -> Told:
        return Told(room.alarm, room.lost > 0)

    def failing(self) -> Told:
        return replace(self, sight=Sight.MISSED if self.sight is Sight.CLEAR else Sight.BLIND)

    def must_be_told(self, before: Told) -> bool:
        """Whether it is another state than was told before: a colour, a loss, or that nothing can be seen."""
        blind = Sight.BLIND
        return (self.alarm, self.lost, self.sight is blind) != (before.alarm, before.lost, before.sight is blind)


TOLD = Versioned(Told, "what was last told of the headroom", "delete the file: it is told again")


def judge_room(
    seen: Sequence[Unread],
    *,
    retention: Retention,
    mean_bytes: float | None,
    reading_s: float | None = None,
    thresholds: Thresholds,
    before: Alarm = Alarm.GREEN,
) -> Room:
    """`mean_bytes`: of a record as it is stored; without it bytes do not limit. `before`: what was last told."""
    rooms = [_judge(u, retention, mean_bytes, thresholds, before) for u in seen]
    if reading_s is not None:
        # Whoever begins only now comes too late for what is taken first.
        needed = reading_s * (1 + SPARE) if before is Alarm.RED else reading_s
        rooms = [replace(p, alarm=Alarm.RED) if p.left_s is not None and p.left_s < needed else p for p in rooms]
    return Room(tuple(rooms), reading_s)


def say_room(stream: str, room: Room) -> tuple[str, str]:
    """What is told: a line, and the whole with what to do."""
    worst = sorted((p for p in room.partitions if p.alarm is room.alarm), key=_urgency)
    where = ", ".join(_said(p) for p in worst[:8]) + (f", and {len(worst) - 8} more" if len(worst) > 8 else "")
    if room.lost:
        return (
            f"{stream}: retention took {room.lost} offsets that nobody had read",
            f"{where}. The next plan refuses and names the way out: accept the loss by name, or read from elsewhere. "
            f"`wavestitch plan {stream}` shows it.",
        )
    if room.alarm is Alarm.GREEN:
        return f"{stream}: headroom is green again", "Retention is far from what is unread. Nothing is to be done."
    takes = f" Reading it takes about {length(room.reading_s)} as past batches went." if room.reading_s else ""
    return (
        f"{stream}: headroom is {room.alarm}: retention takes unread data in {room.shown}",
        f"{where}.{takes} Start a batch now (`wavestitch run {stream} --catch-up`, or trigger its ingest), or lengthen "
        f"the topic's retention until it has caught up.",
    )


def _judge(
    seen: Unread, retention: Retention, mean: float | None, thresholds: Thresholds, before: Alarm
) -> PartitionRoom:
    backlog = max(0, seen.end - max(seen.position, seen.log_start))
    lost = max(0, seen.log_start - seen.position)
    shares: list[float] = []
    left: list[float] = []
    if backlog and seen.age_ms is not None and retention.ms is not None:
        shares.append((retention.ms - seen.age_ms) / max(1, retention.ms))
        left.append((retention.ms - seen.age_ms) / 1000)
    if backlog and mean and retention.bytes is not None:
        free = retention.bytes - backlog * mean
        shares.append(free / max(1, retention.bytes))
        if seen.per_second > 0:
            left.append(free / (mean * seen.per_second))
        elif free <= 0:
            left.append(0.0)
    share = min(shares, default=1.0)
    sparing = min(before, thresholds.colour(share - SPARE), key=_rank)
    alarm = max(thresholds.colour(share), sparing, key=_rank)
    return PartitionRoom(
        partition=seen.partition,
        backlog=backlog,
        lost=lost,
        behind_s=seen.age_ms / 1000 if backlog and seen.age_ms is not None else None,
        left_s=min(left, default=None),
        alarm=Alarm.RED if lost else alarm,
    )


def _urgency(room: PartitionRoom) -> tuple[float, int]:
    return (float("inf") if room.left_s is None else room.left_s, room.partition)


def _said(room: PartitionRoom) -> str:
    gone = f"{room.lost} offsets lost, " if room.lost else ""
    return f"partition {room.partition}: {gone}{room.backlog} unread{_left(room.left_s)}"


def _left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return ", may go any moment" if seconds <= 0 else f", {length(seconds)} left"
