"""How much room a stream has before retention eats what nobody has read yet. Pure.

Retention keeps so much time or so many bytes of each partition; what of that lies between the newest record and the
position is used up. Decides the colour by the share that is left, so that seven days and ten minutes of retention are
judged alike, whatever the rate of writing. Invariant: a colour that got worse is said at once; it gets better only
with some room to spare, so that nobody is told to and fro.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from wavestitch.contracts.freshness import Freshness
from wavestitch.contracts.open_transaction import OpenTransaction, said_of_open
from wavestitch.contracts.quantities import Milliseconds, Offset, Partition
from wavestitch.contracts.rewind_preview import length

SPARE = 0.05
"""So much more must be left than where a colour begins, before that colour is taken back."""


class Alarm(StrEnum):
    GREEN = "green"
    AMBER = "amber"
    RED = "red"


rank = tuple(Alarm).index
NONE_BEFORE: Mapping[Partition, Alarm] = MappingProxyType({})


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

    partition: Partition
    position: int
    log_start: Offset
    end: int
    age_ms: Milliseconds | None = None
    per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class PartitionRoom:
    """`backlog`: offsets of `log_start` to `end` not yet read; `lost`: how many of what nobody read are gone already.
    `behind_s`: how old the first unread record is; `left_s`: until retention may take it, less than 0 where it
    may by now. None: not known, or never."""

    partition: Partition
    position: int
    log_start: Offset
    end: int
    backlog: int
    lost: int
    behind_s: float | None
    left_s: float | None
    alarm: Alarm


@dataclass(frozen=True, slots=True)
class Room:
    """A stream's headroom; `reading_s`: how long its backlog takes to read, as past batches went. `open`: transactions
    that keep unread records from being read. `freshness`: None where the stream declares none. Without partitions where
    the stream has not begun, and its freshness alone is seen."""

    partitions: tuple[PartitionRoom, ...]
    reading_s: float | None = None
    open: tuple[OpenTransaction, ...] = ()
    topic: str = ""
    freshness: Freshness | None = None

    @property
    def begun(self) -> bool:
        return bool(self.partitions)

    @property
    def alarm(self) -> Alarm:
        return max((p.alarm for p in self.partitions), key=rank, default=Alarm.GREEN)

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
    def late(self) -> bool:
        """Whether it is later than it declares."""
        return self.freshness is not None and self.freshness.alarmed

    @property
    def waiting(self) -> int:
        """Offsets behind open transactions."""
        return sum(t.waiting for t in self.open)

    @property
    def remarks(self) -> tuple[str, ...]:
        return said_of_open(self.topic, self.open)

    @property
    def shown(self) -> str:
        """How long there is, in a word or two; empty where retention takes nothing that is unread."""
        return "" if self.left_s is None else "any moment" if self.left_s <= 0 else length(self.left_s)


def judge_room(
    seen: Sequence[Unread],
    *,
    retention: Retention,
    mean_bytes: float | None,
    reading_s: float | None = None,
    thresholds: Thresholds,
    before: Mapping[Partition, Alarm] = NONE_BEFORE,
) -> Room:
    """`mean_bytes`: of a record as it is stored; without it bytes do not limit. `before`: what was last told, by
    partition."""
    told = {u.partition: before.get(u.partition, Alarm.GREEN) for u in seen}
    rooms = [_judge(u, retention, mean_bytes, thresholds, told[u.partition]) for u in seen]
    if reading_s is not None:
        # Whoever begins only now comes too late for what is taken first.
        needed = {p: reading_s * (1 + SPARE) if alarm is Alarm.RED else reading_s for p, alarm in told.items()}
        late = {p.partition for p in rooms if p.left_s is not None and p.left_s < needed[p.partition]}
        rooms = [replace(p, alarm=Alarm.RED) if p.partition in late else p for p in rooms]
    return Room(tuple(rooms), reading_s)


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
    sparing = min(before, thresholds.colour(share - SPARE), key=rank)
    alarm = max(thresholds.colour(share), sparing, key=rank)
    return PartitionRoom(
        partition=seen.partition,
        position=seen.position,
        log_start=seen.log_start,
        end=seen.end,
        backlog=backlog,
        lost=lost,
        behind_s=seen.age_ms / 1000 if backlog and seen.age_ms is not None else None,
        left_s=min(left, default=None),
        alarm=Alarm.RED if lost else alarm,
    )
