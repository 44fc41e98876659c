"""What was told of a stream's headroom, when somebody must be told anew, and in which words. Pure.

It is told by partition: one that got worse, or lost more, is told whatever another one has come to. One notice a look
names all of them. What got better is told when the stream as a whole did, so that a stream that catches up, partition
by partition, is told of once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

from wavestitch.contracts.failures_told import AGAIN, without_numbers
from wavestitch.contracts.headroom import Alarm, PartitionRoom, Room, rank
from wavestitch.contracts.quantities import BEGINNING, EpochMs, Partition, lately
from wavestitch.contracts.rewind_preview import length
from wavestitch.contracts.versioned import Versioned

GROWN = 2
"""A loss is told again when it is so many times what was told: each time it doubles, not with each segment."""
_NAMED = 8


class Sight(StrEnum):
    """Whether a stream could be looked at: one look that failed may be a broker that starts again."""

    CLEAR = "clear"
    MISSED = "missed"
    BLIND = "blind"


@dataclass(frozen=True, slots=True)
class PartitionTold:
    """`lost`: how many offsets were gone unread when that was told; `since`: the position that they begin at, 0 where
    none were. A loss that begins elsewhere is another one: somebody has accepted that before it."""

    alarm: Alarm = Alarm.GREEN
    lost: int = 0
    since: int = 0

    def is_worse(self, before: PartitionTold) -> bool:
        known = before.lost if self.since == before.since else 0
        return rank(self.alarm) > rank(before.alarm) or self.lost >= max(1, GROWN * known)


_WELL = PartitionTold()


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of a stream's headroom, by partition; one that is not named is green and has lost nothing. `sight`:
    of the last looks; where that is not clear, the partitions are as they were seen last. `stands`: what kept a stream
    from being started by its lag at the last look, numbers aside, or nothing; `stands_ms`: when that was told, 0 where
    it was not. `late`: whether it was later than it declares.

    `seen`: its colour as it was seen last, kept where nobody could be told, too. By it is decided whose runs go first.
    """

    partitions: dict[Partition, PartitionTold] = field(default_factory=dict)
    sight: Sight = Sight.CLEAR
    stands: str = ""
    stands_ms: EpochMs = BEGINNING
    late: bool = False
    seen: Alarm = Alarm.GREEN

    @property
    def alarm(self) -> Alarm:
        return max((p.alarm for p in self.partitions.values()), key=rank, default=Alarm.GREEN)

    def seeing(self, room: Room) -> Told:
        """What is to be kept after a look. A loss that grew too little to be told counts on from what was."""
        seen = {p.partition: PartitionTold(p.alarm, p.lost, p.position if p.lost else 0) for p in room.partitions}
        kept = {p: of for p, of in seen.items() if of != _WELL}
        new = replace(self, partitions=kept, sight=Sight.CLEAR, late=room.late, seen=room.alarm)
        if new.room_must_be_told(self):
            return new
        kept = {p: replace(of, lost=min(of.lost, self._of(p).lost)) for p, of in new.partitions.items()}
        return replace(new, partitions=kept)

    def standing(self, why: str, *, now: EpochMs) -> Told:
        """With what keeps it from being started: nothing, or a sentence. It is told when two looks in a row have seen
        such a thing, where it is another one, and again after a day."""
        if not why:
            return replace(self, stands="", stands_ms=BEGINNING)
        what = without_numbers(why)
        first, known = not self.stands, what == self.stands and lately(self.stands_ms, within=AGAIN, now=now)
        if first or known:
            return replace(self, stands=what)
        return replace(self, stands=what, stands_ms=now)

    def stands_anew(self, before: Told) -> bool:
        """Whether it is to be told that it stands."""
        return self.stands_ms not in (BEGINNING, before.stands_ms)

    def goes_on(self, before: Told) -> bool:
        """Whether it was told that it stands, and it does not any more."""
        return before.stands_ms != BEGINNING and not self.stands

    def untold(self, before: Told) -> Told:
        """What is to be kept where nobody could be told: what was told before, and what was seen."""
        return replace(before, seen=self.seen)

    def failing(self) -> Told:
        return replace(self, sight=Sight.MISSED if self.sight is Sight.CLEAR else Sight.BLIND)

    def worse(self, before: Told) -> tuple[Partition, ...]:
        """The partitions of which something worse is to be told than was before."""
        return tuple(p for p, of in sorted(self.partitions.items()) if of.is_worse(before._of(p)))

    def must_be_told(self, before: Told) -> bool:
        """Whether there is anything new of its headroom, its freshness, or of what keeps it from being started."""
        started = self.stands_anew(before) or self.goes_on(before)
        return self.room_must_be_told(before) or started or self.late != before.late

    def room_must_be_told(self, before: Told) -> bool:
        """Whether a partition got worse, the stream got better, or whether it can be seen has changed."""
        blind = Sight.BLIND
        better = self._worst < before._worst
        return better or bool(self.worse(before)) or (self.sight is blind) != (before.sight is blind)

    def _of(self, partition: Partition) -> PartitionTold:
        return self.partitions.get(partition, _WELL)

    @property
    def _worst(self) -> tuple[int, bool]:
        return max(((rank(of.alarm), of.lost > 0) for of in self.partitions.values()), default=(0, False))


def _without_places(fields: dict[str, Any]) -> dict[str, Any]:
    """Format 1 knew not where a loss begins: it is told once more."""
    partitions = fields.get("partitions")
    if not isinstance(partitions, dict):
        return fields
    known = {p: {**of, "since": 0} if isinstance(of, dict) else of for p, of in partitions.items()}
    return {**fields, "partitions": known}


def _seen_as_told(fields: dict[str, Any]) -> dict[str, Any]:
    """Format 4 knew no colour that was not told."""
    seen = max((Alarm(of["alarm"]) for of in fields["partitions"].values()), key=rank, default=Alarm.GREEN)
    return {**fields, "seen": seen.value}


TOLD = Versioned(
    Told,
    "what was last told of the headroom",
    "delete the file: it is told again",
    format=5,
    upgrades={
        1: _without_places,
        2: lambda fields: {**fields, "stands": "", "stands_ms": 0},
        3: lambda fields: {**fields, "late": False},
        4: _seen_as_told,
    },
)


def say_room(stream: str, room: Room, changed: Collection[int] = ()) -> tuple[str, str]:
    """What is told: a line, and the whole with what to do. `changed`: the partitions of which it is told; where none is
    named, those that are in the stream's own colour."""
    told = [p for p in room.partitions if (p.partition in changed if changed else p.alarm is room.alarm)]
    lost, near = [p for p in told if p.lost], [p for p in told if not p.lost and p.alarm is not Alarm.GREEN]
    beside = [p.partition for p in room.partitions if p.alarm is not Alarm.GREEN and p not in told]
    where = _where(sorted(told, key=_urgency)) + (f"; as told before: partitions {numbers(beside)}" if beside else "")
    todo = [
        *([_accept(stream)] if lost else []),
        *([_hurry(stream, room)] if near else []),
        *(f"{said}." for said in room.remarks),
    ]
    if lost:
        return f"{stream}: retention took {room.lost} offsets that nobody had read", f"{where}. {' '.join(todo)}"
    if not near:
        well = "Retention is far from what is unread."
        return f"{stream}: headroom is green again", " ".join([well, *(todo or ["Nothing is to be done."])])
    of = Room(tuple(near))
    subject = f"{stream}: headroom is {of.alarm}: retention takes unread data in {of.shown}"
    return subject, f"{where}. {' '.join(todo)}"


def _accept(stream: str) -> str:
    return (
        "The next plan refuses and names the way out: accept the loss by name, or read from elsewhere. `wavestitch "
        f"plan {stream}` shows it."
    )


def _hurry(stream: str, room: Room) -> str:
    takes = f"Reading it takes about {length(room.reading_s)} as past batches went. " if room.reading_s else ""
    return (
        f"{takes}Start a batch now (`wavestitch run {stream} --catch-up`, or trigger its ingest), or lengthen the "
        "topic's retention until it has caught up."
    )


def _where(rooms: Sequence[PartitionRoom]) -> str:
    """The most urgent ones with their figures, and all others by number."""
    rest = [p.partition for p in rooms[_NAMED:]]
    return ", ".join(map(_said, rooms[:_NAMED])) + (f", and partitions {numbers(rest)}" if rest else "")


def _said(room: PartitionRoom) -> str:
    gone = f"{room.lost} offsets lost, " if room.lost else ""
    return f"partition {room.partition}: {gone}{room.backlog} unread{_left(room.left_s)}"


def _left(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return ", may go any moment" if seconds <= 0 else f", {length(seconds)} left"


def _urgency(room: PartitionRoom) -> tuple[float, int]:
    return (float("inf") if room.left_s is None else room.left_s, room.partition)


def numbers(partitions: Iterable[Partition]) -> str:
    """Neighbours as one: 3, 5 to 9."""
    found = sorted(partitions)
    if not found:
        return ""
    starts = [found[0], *(b for a, b in pairwise(found) if b > a + 1)]
    ends = [*(a for a, b in pairwise(found) if b > a + 1), found[-1]]
    runs = zip(starts, ends, strict=True)
    return ", ".join(str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a} to {b}" for a, b in runs)
