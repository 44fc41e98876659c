"""Where a rewind goes: the places that can be named, and the offsets that they mean on the log as it is now.

Asks the log and the tables; moves nothing. Only what was named has an entry: the other partitions stay where they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.ports import Log, PartitionEnds, Tables, TopicView
from wavestitch.contracts.position import GroupOffset, Head
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.stream import Stream

TARGETS = (
    "earliest, latest, head, group, previous, new-topic, start-over, rebuilt, a time (2026-01-31T12:00:00Z) or an "
    "offset; of some partitions only: PARTITION:WHERE,… (2:earliest,3:12345)"
)
OF_A_PARTITION = ("earliest", "latest", "head", "group", "previous")
REBUILT = "rebuilt"
WHOLE = frozenset({"new-topic", "start-over", REBUILT})
"""Words that are about a stream as a whole, never about one partition."""
AFRESH = WHOLE - {REBUILT}
"""Words under which the positions that the head has mean nothing any more."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to: one of the words, or `time_ms`, or `offsets` by partition, or `parts`: a target for each partition.

    `only`: of a word or a time, these partitions; None: all.
    """

    word: str = ""
    time_ms: EpochMs | None = None
    offsets: Mapping[int, int] | None = None
    parts: Mapping[int, Target] = field(default_factory=dict)
    only: frozenset[int] | None = None

    def __str__(self) -> str:
        if self.parts:
            return ",".join(f"{p}:{t}" for p, t in sorted(self.parts.items()))
        place = self.word or (f"time {self.time_ms} ms" if self.time_ms is not None else "named offsets")
        return place if self.only is None else f"{place} of partitions {', '.join(map(str, sorted(self.only)))}"

    @property
    def words(self) -> frozenset[str]:
        """Every word in it; an offset or a time counts as the empty one."""
        return frozenset(w for t in self.parts.values() for w in t.words) if self.parts else frozenset({self.word})

    @property
    def afresh(self) -> bool:
        return self.word in AFRESH


@dataclass(frozen=True, slots=True)
class Sight:
    """What a rewind is worked out on. `head` None: the stream has none, or none any more."""

    stream: Stream
    head: Head | None
    topic: TopicView
    ends: Mapping[int, PartitionEnds]
    group: Mapping[int, GroupOffset | None]
    table: str | None


def wanted_offsets(target: Target, sight: Sight, *, log: Log, tables: Tables) -> dict[int, int]:
    """The next offset to read of each partition that the target names."""
    partitions = sight.topic.partitions
    unknown = ({*target.parts} | {*(target.only or ())}) - set(partitions)
    if unknown:
        raise Refused(
            f"stream {sight.stream.name}: partition {min(unknown)} was named; topic {sight.topic.name} has "
            f"{len(partitions)} partitions, counted from 0",
            partition=min(unknown),
        )
    if target.parts:
        parts = {p: _wanted(t, sight, log=log, tables=tables) for p, t in target.parts.items()}
        missing = sorted(p for p, found in parts.items() if p not in found)
        if missing:
            raise Refused(
                f"stream {sight.stream.name}: partition {missing[0]} has no {str(target.parts[missing[0]])!r} to go to"
            )
        return {p: found[p] for p, found in parts.items()}
    found = _wanted(target, sight, log=log, tables=tables)
    return {p: to for p, to in found.items() if target.only is None or p in target.only}


def _wanted(target: Target, sight: Sight, *, log: Log, tables: Tables) -> dict[int, int]:
    partitions, ends, head = sight.topic.partitions, sight.ends, sight.head
    if target.offsets is not None:
        return dict(target.offsets)
    if target.time_ms is not None:
        return log.offsets_at(sight.topic.name, dict.fromkeys(partitions, target.time_ms))
    match target.word:
        case "earliest" | "new-topic" | "start-over":
            return {p: ends[p].log_start for p in partitions}
        case "latest":
            return {p: ends[p].stable_end for p in partitions}
        case "head":
            known = {} if head is None else {p: at.next_offset for p, at in head.positions.items()}
            return {p: ends[p].log_start for p in partitions} | known
        case "group":
            shown = {p: found.offset for p in partitions if (found := sight.group.get(p)) is not None}
            # A stream without a head has no other positions: what the group does not show is read from its beginning.
            return shown if head is not None else {p: ends[p].log_start for p in partitions} | shown
        case "previous":
            return _previous(sight, tables)
    raise BadInput(f"--to {target.word!r} is not a place to go; allowed are {TARGETS}")


def _previous(sight: Sight, tables: Tables) -> dict[int, int]:
    head = sight.head
    if head is not None:
        stands = {p: at.next_offset for p, at in head.positions.items()}
        for older in tables.heads():
            was = {p: at.next_offset for p, at in older.positions.items()}
            if older.sequence < head.sequence and older.topic_id == head.topic_id and was != stands:
                return was
    raise Refused(f"stream {sight.stream.name}: no head that is kept stood elsewhere on this topic")
