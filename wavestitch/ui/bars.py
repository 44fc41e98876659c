"""What a partition looks like as a bar: what was read, what is unread, what retention took or takes soon. Pure.

A picture beside the figures, never in their place: each has a sentence for who cannot see it. Where something is there
it is seen, however small its share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wavestitch.batch.stream_facts import StreamFacts
from wavestitch.contracts.headroom import Alarm, PartitionRoom
from wavestitch.contracts.rewind_preview import length

WIDTH = 120
_LEAST = 3
COLUMNS = 32
"""Of a strip: with more partitions than that, each column is the worst of its neighbours."""
_KIND = {Alarm.GREEN: "unread", Alarm.AMBER: "soon", Alarm.RED: "lost"}


@dataclass(frozen=True, slots=True)
class Bar:
    """One partition. `lost`, `read`, `rest`: how wide each part is, of `WIDTH`; `kind`: how urgent what is unread is;
    `says`: the same as a sentence."""

    partition: int
    lost: int
    read: int
    rest: int
    kind: str
    says: str


@dataclass(frozen=True, slots=True)
class Column:
    """Of a strip: how high (0 to 20) what is unread stands, and how urgent it is."""

    height: int
    kind: str


def bar_of(room: PartitionRoom) -> Bar:
    """Offsets from where nobody has read (or the log begins) to the end."""
    read = max(0, room.position - room.log_start)
    lost, read, rest = _widths(room.lost, read, room.backlog)
    urgent = room.alarm is not Alarm.GREEN
    left = "" if room.left_s is None else "any moment" if room.left_s <= 0 else f"in {length(room.left_s)}"
    parts = [
        f"{room.lost} taken by retention unread" if room.lost else "",
        f"{room.backlog} unread" if room.backlog else "all read",
        f"retention takes the oldest of them {left}" if left and urgent else "",
    ]
    says = f"partition {room.partition}: {', '.join(filter(None, parts))}"
    return Bar(room.partition, lost, read, rest, _KIND[room.alarm], says)


def strip_of(found: StreamFacts) -> tuple[Column, ...]:
    """A column a partition; none where the log has not said anything."""
    if found.room is None or not found.room.begun:
        return ()
    rooms = found.room.partitions
    each = -(-len(rooms) // COLUMNS) or 1
    return tuple(_column(rooms[n : n + each]) for n in range(0, len(rooms), each))


def strip_says(found: StreamFacts) -> str:
    """What the strip shows, for who cannot see it."""
    if found.room is None or not found.room.begun:
        return "where its partitions stand is not known"
    rooms = found.room.partitions
    unread, lost = sum(p.backlog > 0 for p in rooms), sum(p.lost > 0 for p in rooms)
    urgent = sum(p.alarm is not Alarm.GREEN for p in rooms)
    said = f"{unread} of {len(rooms)} partitions have something unread"
    said += f", {urgent} of them near retention" if urgent else ""
    return said + (f", {lost} have lost some" if lost else "")


def _column(rooms: Sequence[PartitionRoom]) -> Column:
    worst = max(rooms, key=lambda p: (list(Alarm).index(p.alarm), p.backlog))
    there = max(1, worst.end - worst.log_start)
    height = min(20, max(2, round(20 * worst.backlog / there))) if worst.backlog or worst.lost else 0
    return Column(height, _KIND[worst.alarm])


def _widths(*parts: int) -> list[int]:
    """Of `WIDTH` together; of a partition that is empty nothing."""
    whole = sum(parts)
    if not whole:
        return [0 for _ in parts]
    found = [max(_LEAST, round(WIDTH * n / whole)) if n else 0 for n in parts]
    found[found.index(max(found))] += WIDTH - sum(found)
    return found
