"""Rewind: a new head with other positions and the next generation, made on purpose. The way out of every refusal.

Every stale run's compare-and-set fails from then on (I7). Going back loses nothing: what is published is recognised.
Going forward skips data, and must be accepted by name; the head keeps the skipped ranges.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wavestitch.batch.commit_offsets import project
from wavestitch.contracts.errors import BadInput, Refused, WavestitchError
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plain_text import name_of_person, said_by_person
from wavestitch.contracts.ports import CommitConflict, Log, PartitionEnds, Tables, TopicView
from wavestitch.contracts.position import GroupOffset, Head, HeadKind, Position
from wavestitch.contracts.stream import Stream

TARGETS = "earliest, latest, head, group, previous, new-topic, a time (2026-01-31T12:00:00Z) or PARTITION:OFFSET,…"


@dataclass(frozen=True, slots=True)
class Rewind:
    """A rewind as it would be: `moves` per partition (from, to), `skipped` what nobody would read any more."""

    base: Head
    head: Head
    moves: Mapping[int, tuple[int | None, int]]
    skipped: tuple[OffsetRange, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """Where to: one of the words, or `time_ms`, or `offsets`."""

    word: str = ""
    time_ms: int | None = None
    offsets: Mapping[int, int] | None = None


def plan_rewind(stream: Stream, target: Target, *, log: Log, tables: Tables, who: str, why: str) -> Rewind:
    """What the rewind would do; touches nothing."""
    reason = said_by_person(why, "the reason (why)") or "-"
    head = tables.head()
    if head is None:
        raise Refused(f"stream {stream.name} has no head yet: nothing was read, so there is nothing to rewind")
    topic = log.topic(stream.topic)
    if topic.topic_id != head.topic_id and target.word != "new-topic":
        raise Refused(
            f"topic {topic.name} was recreated; positions of the old one mean nothing on it: "
            f"`wavestitch rewind {stream.name} --to new-topic`"
        )
    ends = log.ends(topic.name, topic.partitions)
    group = log.group_offsets(stream.group, topic.name, topic.partitions)
    wanted = _wanted(stream, target, head, topic, ends, group, log=log, tables=tables)
    fresh = target.word == "new-topic"
    moves = {
        p: (None if fresh or p not in head.positions else head.positions[p].next_offset, to) for p, to in wanted.items()
    }
    # Where nothing moves nothing is checked: a partition that retention overtook must not bar the way out of another.
    _check_inside(stream, {p: to for p, (was, to) in moves.items() if was != to}, ends)
    skipped = tuple(
        OffsetRange(p, was if was is not None else 0, to)
        for p, (was, to) in sorted(moves.items())
        if to > (was if was is not None else 0)
    )
    positions = {} if fresh else dict(head.positions)
    # What stays keeps its record time and epoch, so that it still holds the watermark back.
    positions |= {p: Position(to) for p, (was, to) in moves.items() if was != to}
    note = f"rewind to {target.word or target.time_ms or 'named offsets'} by {name_of_person(who)}: {reason}"
    after = head.next(
        kind=HeadKind.REWIND,
        generation=head.generation + 1,
        topic_id=topic.topic_id,
        positions=positions,
        # Skipped ranges are exempt from I1: those of an old topic mean nothing on a new one.
        skipped=skipped if fresh else head.skipped + skipped,
        note=note,
    )
    return Rewind(head, after, moves, skipped)


def apply_rewind(stream: Stream, rewind: Rewind, *, accept_skip: bool, log: Log, tables: Tables) -> Head:
    """Commit the new head, then project it. Refuses to skip anything that was not accepted by name."""
    if rewind.skipped and not accept_skip:
        gone = ", ".join(str(r) for r in rewind.skipped)
        raise Refused(f"stream {stream.name}: this would skip {gone}; nobody would read it any more. Say --accept-skip")
    members = log.members(stream.group)
    if members:
        raise Refused(f"consumer group {stream.group} has live members ({', '.join(members[:3])}); stop them first")
    try:
        head = tables.commit(rewind.base, rewind.head, [])
    except CommitConflict:
        raise Refused(
            f"stream {stream.name}: somebody committed or rewound since this rewind was worked out; nothing was "
            "changed, look at it again"
        ) from None
    try:
        project(stream, head, log=log)
    except WavestitchError as error:
        # Not undone: positions are the head's, and this error must not be taken for a rewind that did not happen.
        raise type(error)(
            f"the rewind of stream {stream.name} is in force (generation {head.generation}), but the group does not "
            f"show it yet: {error.message}. The next plan shows it there",
            **error.facts,
        ) from error
    return head


def _wanted(
    stream: Stream,
    target: Target,
    head: Head,
    topic: TopicView,
    ends: Mapping[int, PartitionEnds],
    group: Mapping[int, GroupOffset | None],
    *,
    log: Log,
    tables: Tables,
) -> dict[int, int]:
    if target.offsets is not None:
        return dict(target.offsets)
    if target.time_ms is not None:
        return log.offsets_at(topic.name, dict.fromkeys(topic.partitions, target.time_ms))
    if target.word in ("earliest", "new-topic"):
        return {p: ends[p].log_start for p in topic.partitions}
    if target.word == "latest":
        return {p: ends[p].stable_end for p in topic.partitions}
    if target.word == "head":
        new = {p: ends[p].log_start for p in topic.partitions}
        return new | {p: at.next_offset for p, at in head.positions.items()}
    if target.word == "group":
        return {p: found.offset for p in topic.partitions if (found := group.get(p)) is not None}
    if target.word == "previous":
        stands = {p: at.next_offset for p, at in head.positions.items()}
        for older in tables.heads():
            was = {p: at.next_offset for p, at in older.positions.items()}
            if older.sequence < head.sequence and older.topic_id == head.topic_id and was != stands:
                return was
        raise Refused(f"stream {stream.name}: no head that is kept stood elsewhere on this topic")
    raise BadInput(f"--to {target.word!r} is not a place to go; allowed are {TARGETS}")


def _check_inside(stream: Stream, wanted: Mapping[int, int], ends: Mapping[int, PartitionEnds]) -> None:
    for p, to in sorted(wanted.items()):
        here = ends.get(p)
        if here is None or not here.log_start <= to <= here.high_watermark:
            has = f"[{here.log_start}, {here.high_watermark}]" if here else "no such partition"
            raise Refused(
                f"stream {stream.name}: offset {to} of partition {p} is not in the log of {stream.topic} ({has})"
            )
