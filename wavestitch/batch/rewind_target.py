"""Where a rewind goes: the places that can be named, and the offsets that they mean on the log as it is now.

Asks the log and the tables; moves nothing. Only what was named has an entry: the other partitions stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wavestitch.batch.unseen_partition import refuse_unknown
from wavestitch.contracts.batch_stages import CommitHead
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.ports import Log, PartitionEnds, Tables, TopicView
from wavestitch.contracts.position import GroupOffset, Head
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.stages import RewindTo
from wavestitch.contracts.stream import Stream

TARGETS = (
    "earliest, latest, head, group, previous, new-topic, start-over, rebuilt, a time (2026-01-31T12:00:00Z) or an "
    "offset; before:PLAN (where that batch began), shift:-N (so many offsets back), undo:HEAD (where the stream stood "
    "before that head); of some partitions only: PARTITION:WHERE,… (2:earliest,3:12345)"
)
OF_A_PARTITION = ("earliest", "latest", "head", "group", "previous", "shift")
REBUILT = "rebuilt"
WHOLE = frozenset({"new-topic", "start-over", REBUILT})
"""Words that are about a stream as a whole, never about one partition."""
AFRESH = WHOLE - {REBUILT}
"""Words under which the positions that the head has mean nothing any more."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to: one of the words, or `time_ms`, or `offsets` by partition, or `parts`: a target for each partition.

    `argument`: of the words that have one, what stands behind their colon. `only`: of a word or a time, these
    partitions; None: all.
    """

    word: str = ""
    time_ms: EpochMs | None = None
    offsets: Mapping[Partition, Offset] | None = None
    parts: Mapping[Partition, Target] = field(default_factory=dict)
    only: frozenset[Partition] | None = None
    argument: str = ""

    def __str__(self) -> str:
        if self.parts:
            return ",".join(f"{p}:{t}" for p, t in sorted(self.parts.items()))
        place = f"{self.word}:{self.argument}" if self.argument else self.word
        place = place or (f"time {self.time_ms} ms" if self.time_ms is not None else "named offsets")
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
    ends: Mapping[Partition, PartitionEnds]
    group: Mapping[Partition, GroupOffset | None]
    table: str | None


def wanted_offsets(target: Target, sight: Sight, *, log: Log, tables: Tables) -> dict[Partition, Offset]:
    """The next offset to read of each partition that the target names."""
    refuse_unknown(sight.stream.name, sight.topic, {*target.parts, *(target.only or ())})
    found = _of_all(target, sight, log=log, tables=tables)
    return {p: to for p, to in found.items() if target.only is None or p in target.only}


def _of_all(target: Target, sight: Sight, *, log: Log, tables: Tables) -> dict[Partition, Offset]:
    if not target.parts:
        return _wanted(target, sight, log=log, tables=tables)
    parts = {p: _wanted(t, sight, log=log, tables=tables) for p, t in target.parts.items()}
    missing = sorted(p for p, found in parts.items() if p not in found)
    if missing:
        raise Refused(
            f"stream {sight.stream.name}: partition {missing[0]} has no {str(target.parts[missing[0]])!r} to go to"
        )
    return {p: found[p] for p, found in parts.items()}


def _wanted(target: Target, sight: Sight, *, log: Log, tables: Tables) -> dict[Partition, Offset]:
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
        case "shift" if target.argument:
            return _shifted(sight, int(target.argument))
        case "before" if target.argument:
            return _before(sight, target.argument, tables)
        case "undo" if target.argument:
            return _before_head(sight, int(target.argument), tables)
    raise BadInput(f"--to {target.word!r} is not a place to go; allowed are {TARGETS}")


def _previous(sight: Sight, tables: Tables) -> dict[Partition, Offset]:
    found = None if sight.head is None else stood_elsewhere(sight.head, tables.heads())
    if found is None:
        raise Refused(f"stream {sight.stream.name}: no head that is kept stood elsewhere on this topic")
    return found


def stood_elsewhere(head: Head, heads: Iterable[Head]) -> dict[Partition, Offset] | None:
    """Where the stream stood last, before the head, that is not where it stands. `heads`: newest first."""
    stands = {p: at.next_offset for p, at in head.positions.items()}
    for older in heads:
        # A partition that it did not know yet stood at its beginning.
        was = dict.fromkeys(stands, Offset(0)) | {p: at.next_offset for p, at in older.positions.items()}
        if older.sequence < head.sequence and older.topic_id == head.topic_id and was != stands:
            return was
    return None


def _shifted(sight: Sight, offsets: int) -> dict[Partition, Offset]:
    """So many offsets from where each partition stands, as far as the log goes."""
    stands = {} if sight.head is None else {p: at.next_offset for p, at in sight.head.positions.items()}
    ends = sight.ends
    return {
        p: Offset(min(max(stands.get(p, ends[p].log_start) + offsets, ends[p].log_start), ends[p].stable_end))
        for p in sight.topic.partitions
    }


def _before(sight: Sight, plan_id: str, tables: Tables) -> dict[Partition, Offset]:
    """Where a batch began, in the partitions that it moved."""
    found = {head.sequence for head in tables.heads() if head.plan_id.startswith(plan_id)}
    if len(found) != 1:
        raise Refused(
            f"stream {sight.stream.name}: {len(found)} batches whose heads are kept begin with {plan_id!r}; "
            f"`wavestitch batches {sight.stream.name}` lists them"
        )
    return _before_head(sight, found.pop(), tables)


def _before_head(sight: Sight, sequence: int, tables: Tables) -> dict[Partition, Offset]:
    """Where the stream stood before this head, in the partitions that it moved."""
    heads = list(tables.heads())
    at = next((n for n, head in enumerate(heads) if head.sequence == sequence), None)
    if at is None or at + 1 == len(heads):
        raise Refused(
            f"stream {sight.stream.name}: head {sequence}, or the one before it, is not among those that are kept; "
            "go to an offset, a time or `before:PLAN`"
        )
    if heads[at + 1].topic_id != sight.topic.topic_id:
        raise Refused(
            f"stream {sight.stream.name}: before head {sequence} it read another topic, now it reads this one"
        )
    moved = CommitHead(heads[at + 1], heads[at]).opposite()
    if not isinstance(moved, RewindTo):
        raise Refused(
            f"stream {sight.stream.name}: head {sequence} ({heads[at].kind}) moved no position; what a decision about "
            f"what is held did is undone with `wavestitch undo {sight.stream.name} --plan …`"
        )
    return dict(moved.offsets)
