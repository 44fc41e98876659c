"""Rewind: a new head with other positions and the next generation, made on purpose. The way out of every refusal.

Every stale run's compare-and-set fails from then on (I7). Going back loses nothing: what is published is recognised.
Going forward skips data, and must be accepted by name; the head keeps the skipped ranges. Partitions that are not named
are never moved, nor is what the group says of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wavestitch.batch.rebuilt_head import rebuild_head
from wavestitch.batch.rewind_target import REBUILT, TARGETS, WHOLE, Sight, Target, wanted_offsets
from wavestitch.batch.walk import Walk
from wavestitch.contracts.batch_stages import CommitHead, ShowHead
from wavestitch.contracts.disagreement import SETTLING, find_disagreement, next_generation, refuse_disagreement
from wavestitch.contracts.errors import BadInput, Refused, WavestitchError
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plain_text import name_of_person, said_by_person
from wavestitch.contracts.ports import CommitConflict, Log, PartitionEnds, Remains, Tables
from wavestitch.contracts.position import GroupOffset, Head, HeadKind, Position
from wavestitch.contracts.stages import Stage
from wavestitch.contracts.stream import Stream

__all__ = ["TARGETS", "Rewind", "Target", "apply_rewind", "plan_rewind"]


@dataclass(frozen=True, slots=True)
class Rewind:
    """A rewind as it would be. `moves` per partition that was named (from, to); `skipped` what nobody would read any
    more; `settles`: the sentence of a disagreement of group and catalog that it ends. `base` None: a first head, or
    with `remains` one in place of a head that was expired. `remarks`: what it is made from, and what is not known.
    `group`: what it showed when this was worked out."""

    base: Head | None
    head: Head
    moves: Mapping[int, tuple[int | None, int]]
    skipped: tuple[OffsetRange, ...]
    group: Mapping[int, GroupOffset | None]
    settles: str = ""
    remains: Remains | None = None
    remarks: tuple[str, ...] = ()

    @property
    def stages(self) -> tuple[Stage, ...]:
        shown = ShowHead(self.head, self.group, self.moves.keys())
        return CommitHead(self.base, self.head, self.remains), shown


def plan_rewind(stream: Stream, target: Target, *, log: Log, tables: Tables, who: str, why: str) -> Rewind:
    """What the rewind would do; touches nothing."""
    reason = said_by_person(why, "the reason (why)") or "-"
    if target.word in WHOLE and target.only is not None:
        raise BadInput(f"--to {target.word} is about the whole stream; leave the partitions out")
    if target.word == REBUILT:
        return _plan_rebuilt(stream, log=log, tables=tables, note=f"head rebuilt by {name_of_person(who)}: {reason}")
    head, table = tables.head(), tables.table_uuid()
    topic = log.topic(stream.topic)
    ends = log.ends(topic.name, topic.partitions)
    group = log.group_offsets(stream.group, topic.name, topic.partitions)
    sight = Sight(stream, head, topic, ends, group, table)
    settles = _settled(sight, target)
    if head is None and not settles:
        raise Refused(f"stream {stream.name} has no head yet: nothing was read, so there is nothing to rewind")
    if head is not None and topic.topic_id != head.topic_id and not target.afresh:
        raise Refused(
            f"topic {topic.name} was recreated; positions of the old one mean nothing on it: "
            f"`wavestitch rewind {stream.name} --to new-topic`"
        )
    moves, skipped = _moves(sight, target, wanted_offsets(target, sight, log=log, tables=tables))
    note = f"rewind to {target} by {name_of_person(who)}: {reason}"
    return Rewind(head, _head_after(sight, target, moves, skipped, note), moves, skipped, group, settles)


def apply_rewind(stream: Stream, rewind: Rewind, *, accept_skip: bool, log: Log, tables: Tables) -> Head:
    """Commit the new head, then project it. Refuses to skip anything that was not accepted by name."""
    if rewind.skipped and not accept_skip:
        gone = ", ".join(str(r) for r in rewind.skipped)
        raise Refused(f"stream {stream.name}: this would skip {gone}; nobody would read it any more. Say --accept-skip")
    members = log.members(stream.group)
    if members:
        raise Refused(f"consumer group {stream.group} has live members ({', '.join(members[:3])}); stop them first")
    walk = Walk(stream, log, tables)
    try:
        for stage in rewind.stages:
            walk(stage)
    except CommitConflict:
        raise Refused(
            f"stream {stream.name}: somebody committed or rewound since this rewind was worked out; nothing was "
            "changed, look at it again"
        ) from None
    except WavestitchError as error:
        if walk.head is None:
            raise
        # Not undone: positions are the head's, and this error must not be taken for a rewind that did not happen.
        raise type(error)(
            f"the rewind of stream {stream.name} is in force (generation {walk.head.generation}), but the group does "
            f"not show it yet: {error.message}. The next plan shows it there",
            **error.facts,
        ) from error
    assert walk.head is not None, "a rewind commits a head"
    return walk.head


def _plan_rebuilt(stream: Stream, *, log: Log, tables: Tables, note: str) -> Rewind:
    remains = tables.remains()
    if remains is None:
        raise Refused(f"stream {stream.name}: its head is there, or it never had one; there is nothing to rebuild")
    topic = log.topic(stream.topic)
    ends = log.ends(topic.name, topic.partitions)
    group = log.group_offsets(stream.group, topic.name, topic.partitions)
    sight = Sight(stream, None, topic, ends, group, remains.table)
    found = rebuild_head(sight, remains, tables.batches(), note=note)
    moves: dict[int, tuple[int | None, int]] = {p: (None, at.next_offset) for p, at in found.head.positions.items()}
    return Rewind(None, found.head, moves, found.skipped, group, remains=remains, remarks=found.remarks)


def _settled(sight: Sight, target: Target) -> str:
    """The disagreement that this rewind ends; raises it where the target is no way out of it."""
    doubt = find_disagreement(sight.head, sight.group, table=sight.table)
    if doubt is None:
        return ""
    refusal = refuse_disagreement(doubt, stream=sight.stream.name, group=sight.stream.group, head=sight.head)
    # A topic that was made anew is begun at its start, whatever else is true: `start-over`, and the way out of both.
    recreated = sight.head is not None and sight.head.topic_id != sight.topic.topic_id
    ways = SETTLING - {"head"} if sight.head is None else SETTLING | ({"new-topic"} if recreated else set())
    if not target.words <= ways or (sight.head is None and (target.parts or target.only is not None)):
        raise refusal
    return refusal.message


def _moves(
    sight: Sight, target: Target, wanted: Mapping[int, int]
) -> tuple[dict[int, tuple[int | None, int]], tuple[OffsetRange, ...]]:
    """From where to where, and what is skipped. A first head skips what lies before it in the log."""
    known = {} if sight.head is None or target.afresh else sight.head.positions
    moves = {p: (known[p].next_offset if p in known else None, to) for p, to in wanted.items()}
    # Where nothing moves nothing is checked: a partition that retention overtook must not bar the way out of another.
    _check_inside(sight.stream, {p: to for p, (was, to) in moves.items() if was != to}, sight.ends)
    least = {p: sight.ends[p].log_start if sight.head is None else 0 for p in moves}
    if target.word == "start-over":
        return moves, _lost_before(sight, moves)
    starts = {p: was if was is not None else least[p] for p, (was, _) in moves.items()}
    return moves, tuple(OffsetRange(p, starts[p], to) for p, (_, to) in sorted(moves.items()) if to > starts[p])


def _lost_before(sight: Sight, moves: Mapping[int, tuple[int | None, int]]) -> tuple[OffsetRange, ...]:
    """Starting over on the head's own topic: what retention has taken beyond the head's position is lost, by name."""
    head = sight.head
    if head is None or head.topic_id != sight.topic.topic_id:
        return ()
    stood = {p: head.positions[p].next_offset if p in head.positions else 0 for p in moves}
    return tuple(OffsetRange(p, stood[p], to) for p, (_, to) in sorted(moves.items()) if to > stood[p])


def _head_after(
    sight: Sight,
    target: Target,
    moves: Mapping[int, tuple[int | None, int]],
    skipped: tuple[OffsetRange, ...],
    note: str,
) -> Head:
    head = sight.head
    generation = next_generation(head, sight.group, table=sight.table)
    fresh = {p: Position(to) for p, (was, to) in moves.items() if was != to}
    if head is None:
        return Head(1, generation, HeadKind.FIRST, sight.topic.topic_id, fresh, skipped=skipped, note=note)
    same_topic = head.topic_id == sight.topic.topic_id
    return head.next(
        kind=HeadKind.REWIND,
        generation=generation,
        topic_id=sight.topic.topic_id,
        # What stays keeps its record time and epoch, so that it still holds the watermark back.
        positions=fresh if target.afresh else {**head.positions, **fresh},
        # Skipped ranges are exempt from I1: those of an old topic mean nothing on a new one.
        skipped=head.skipped + skipped if same_topic and target.word != "new-topic" else skipped,
        note=note,
    )


def _check_inside(stream: Stream, wanted: Mapping[int, int], ends: Mapping[int, PartitionEnds]) -> None:
    for p, to in sorted(wanted.items()):
        here = ends.get(p)
        if here is None or not here.log_start <= to <= here.high_watermark:
            has = f"[{here.log_start}, {here.high_watermark}]" if here else "no such partition"
            raise Refused(
                f"stream {stream.name}: offset {to} of partition {p} is not in the log of {stream.topic} ({has})"
            )
