"""Rewind: a new head with other positions and the next generation, made on purpose. The way out of every refusal.

Every stale run's compare-and-set fails from then on (I7). Going back loses nothing: what is published is recognised.
Going forward skips data, and must be accepted by name; the head keeps the skipped ranges. Partitions that are not named
are never moved, nor is what the group says of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from wavestitch.batch.cut_log import earlier_positions, find_cuts, said_of_cuts, with_last_batches
from wavestitch.batch.found_held import FoundHeld, Missing, find_held
from wavestitch.batch.rebuilt_head import rebuild_head, with_missing
from wavestitch.batch.rewind_target import REBUILT, TARGETS, WHOLE, Sight, Target, wanted_offsets
from wavestitch.batch.unseen_partition import refuse_unseen, refuse_unseen_by_history
from wavestitch.batch.walk import Walk
from wavestitch.contracts.accepted_skip import AcceptedSkip, accepting, not_accepted
from wavestitch.contracts.batch_row import BatchRow, first_version, rows_of
from wavestitch.contracts.batch_stages import CommitHead, ShowHead
from wavestitch.contracts.disagreement import SETTLING, find_disagreement, next_generation, refuse_disagreement
from wavestitch.contracts.errors import Altered, BadInput, Refused, Transient, WavestitchError
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plain_text import name_of_person, said_by_person
from wavestitch.contracts.ports import CommitConflict, Log, PartitionEnds, Remains, Tables
from wavestitch.contracts.position import GroupOffset, Head, HeadKind, Position, is_ours
from wavestitch.contracts.protocol import moved_position, still_skipped
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stages import Stage
from wavestitch.contracts.stream import Stream

_LOOKS = 5
_FORGOTTEN = (
    "the broker shows no partition {}, which the head has: it is forgotten, and read from its beginning where it is "
    "shown again"
)
_OLDER_TABLES = (
    "what tables of an earlier catalog have published is not taken up; where their files are still there, register "
    "their newest metadata files instead (docs/operations.md, A catalog that is gone): that has what the log lost, too"
)
__all__ = ["TARGETS", "Rewind", "Target", "apply_rewind", "plan_rewind"]


@dataclass(frozen=True, slots=True)
class Rewind:
    """A rewind as it would be. `moves` per partition that was named (from, to); `skipped` what nobody would read any
    more; `missing`: what somebody took out of the tables; `settles`: the sentence of a disagreement of group and
    catalog that it ends. `base` None: a first head, or with `remains` one in place of a head that was expired.
    `remarks`: what it is made from, and what is not known. `group`: what it showed when this was worked out."""

    base: Head | None
    head: Head
    moves: Mapping[Partition, tuple[Offset | None, Offset]]
    skipped: tuple[OffsetRange, ...]
    group: Mapping[Partition, GroupOffset | None]
    settles: str = ""
    remains: Remains | None = None
    remarks: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()

    @property
    def stages(self) -> tuple[Stage, ...]:
        shown = ShowHead(self.head, self.group, self.moves.keys())
        return CommitHead(self.base, self.head, self.remains), shown


def plan_rewind(
    stream: Stream,
    target: Target,
    *,
    log: Log,
    tables: Tables,
    who: str,
    why: str,
    held: int | None = None,
    named: str = "",
) -> Rewind:
    """What the rewind would do; touches nothing. `held`: of a head that is made anew, the snapshot of the held table
    that it is to name. `named`: where it goes, as it was said at first."""
    reason = said_by_person(why, "the reason (why)") or "-"
    if target.word in WHOLE and target.only is not None:
        raise BadInput(f"--to {target.word} is about the whole stream; leave the partitions out")
    if target.word == REBUILT:
        note = f"head rebuilt by {name_of_person(who)}: {reason}"
        return _plan_rebuilt(stream, log=log, tables=tables, note=note, wanted=held)
    sight = _look(stream, target, log=log, tables=tables)
    head, topic, ends, group = sight.head, sight.topic, sight.ends, sight.group
    if held is not None and head is not None:
        raise BadInput("--held is for a head that is made anew; this one names what is held by itself")
    settles = _settled(sight, target)
    history = tables.batches(every_table=True) if head is None else []
    left = find_held(tables, history, last=None, wanted=held) if head is None else None
    if head is None and not settles and (left is None or left.mark is None):
        raise Refused(f"stream {stream.name} has no head yet: nothing was read, so there is nothing to rewind")
    if head is not None and topic.topic_id != head.topic_id and not target.afresh:
        raise Refused(
            f"topic {topic.name} was recreated; positions of the old one mean nothing on it: "
            f"`wavestitch rewind {stream.name} --to new-topic`"
        )
    wanted = wanted_offsets(target, sight, log=log, tables=tables)
    passed = _passed(sight, target, wanted)
    earlier = earlier_positions(tables, topic.topic_id)
    cuts = find_cuts(topic.name, passed, ends, log, earlier)
    moves, skipped = _moves(sight, target, wanted, cuts=cuts)
    note = f"rewind to {named or target} by {name_of_person(who)}: {reason}"
    missing = left.missing if left is not None else ()
    left_out = left.left_out if left is not None else ()
    known = _known(sight, target)
    fresh = with_last_batches(topic.name, _set(sight, known, moves), ends, log, was=known, earlier=earlier)
    note = with_missing(note, missing, left_out)
    if head is None:
        after = _head_anew(sight, fresh, skipped, note, left, history)
    else:
        after = _head_after(sight, head, target, moves, fresh, skipped, note)
    if not settles and not target.afresh:
        _refuse_nothing(sight, target, moves, after)
    remarks = (left.remarks if left is not None else ()) + said_of_cuts(cuts, passed, wanted)
    remarks += tuple(_goes_over(sight, target, moves))
    remarks += (_OLDER_TABLES,) if head is None and target.word == "start-over" else ()
    if head is not None and head.topic_id == topic.topic_id:
        remarks += tuple(map(_FORGOTTEN.format, sorted(head.positions.keys() - set(topic.partitions))))
    return Rewind(head, after, moves, skipped, group, settles, remarks=remarks, missing=missing)


def _look(stream: Stream, target: Target, *, log: Log, tables: Tables) -> Sight:
    """Raises `Transient` where a batch was committed and shown in the group between our looks at both, each time."""
    for _ in range(_LOOKS):
        head, table = tables.head(), tables.table_uuid()
        topic = log.topic(stream.topic)
        if target.word != "start-over":  # what is left where the topic will never again be what the head knows
            refuse_unseen(stream.name, topic, head)
        ends = log.ends(topic.name, topic.partitions)
        group = log.group_offsets(stream.group, topic.name, topic.partitions)
        if find_disagreement(head, group, table=table) is None or tables.head() == head:
            return Sight(stream, head, topic, ends, group, table)
    raise Transient(f"stream {stream.name}: the head changed {_LOOKS} times while a rewind was worked out; try again")


def apply_rewind(
    stream: Stream, rewind: Rewind, *, accept_skip: AcceptedSkip, log: Log, tables: Tables, accept_missing: bool = False
) -> Head:
    """Commit the new head, then project it. Refuses to skip or give up anything that was not accepted by name."""
    accept_losses(stream, rewind, accept_skip=accept_skip, accept_missing=accept_missing, log=log)
    try:
        return carry_rewind(stream, rewind, log=log, tables=tables)
    except CommitConflict:
        raise Refused(
            f"stream {stream.name}: somebody committed or rewound since this rewind was worked out; nothing was "
            "changed, look at it again"
        ) from None


def accept_losses(stream: Stream, rewind: Rewind, *, accept_skip: AcceptedSkip, accept_missing: bool, log: Log) -> None:
    """Raises `Refused` where it would skip or give up what was not accepted by name, or the group is in use."""
    if rewind.missing and not accept_missing:
        gone = "; ".join(m.said for m in rewind.missing)
        raise Refused(
            f"stream {stream.name}: missing: {gone}. Put it back, or say --accept-missing: it is kept with the head, "
            "with your name and --why"
        )
    if unsaid := not_accepted(rewind.skipped, accept_skip):
        gone = ", ".join(map(str, unsaid))
        raise Refused(
            f"stream {stream.name}: this would skip {gone}; nobody would read it any more, and nothing moved. Say"
            f"{accepting(rewind.skipped)}, or in Airflow trigger it again and approve of it with Accept skip"
        )
    members = log.members(stream.group)
    if members:
        raise Refused(f"consumer group {stream.group} has live members ({', '.join(members[:3])}); stop them first")


def carry_rewind(stream: Stream, rewind: Rewind, *, log: Log, tables: Tables) -> Head:
    """Its stages, one after another. Raises `CommitConflict` where the head is not the one it was worked out on."""
    walk = Walk(stream, log, tables)
    try:
        for stage in rewind.stages:
            walk(stage)
    except CommitConflict:
        raise
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


def _plan_rebuilt(stream: Stream, *, log: Log, tables: Tables, note: str, wanted: int | None) -> Rewind:
    remains = tables.remains()
    if remains is None:
        return _plan_held_anew(stream, log=log, tables=tables, note=note, wanted=wanted)
    topic = log.topic(stream.topic)
    ever = tables.batches(every_table=True)
    history = rows_of(remains.table, ever)
    refuse_unseen(stream.name, topic, remains.left)
    refuse_unseen_by_history(stream.name, topic, history)
    ends = log.ends(topic.name, topic.partitions)
    group = log.group_offsets(stream.group, topic.name, topic.partitions)
    sight = Sight(stream, None, topic, ends, group, remains.table)
    held = find_held(tables, ever, last=remains.left, wanted=wanted)
    others = max((row.sequence for row in ever if row.table not in ("", remains.table)), default=0)
    found = rebuild_head(sight, remains, history, others=others, held=held, by_plan=tables.published_by_plan, note=note)
    anew = found.head.positions
    positions = with_last_batches(topic.name, anew, ends, log, was=found.stood, written=found.written)
    moves: dict[Partition, tuple[Offset | None, Offset]] = {p: (None, at.next_offset) for p, at in positions.items()}
    new, skipped = replace(found.head, positions=positions), found.skipped
    return Rewind(None, new, moves, skipped, group, remains=remains, remarks=found.remarks, missing=found.missing)


def _plan_held_anew(stream: Stream, *, log: Log, tables: Tables, note: str, wanted: int | None) -> Rewind:
    """The head is there, and what it names of the held table is not, or not as it vouches for: positions stay."""
    head = tables.head()
    if head is None or _is_intact(tables, head):
        raise Refused(f"stream {stream.name}: its head is there, or it never had one; there is nothing to rebuild")
    held = find_held(tables, tables.batches(every_table=True), last=head, wanted=wanted)
    group = log.group_offsets(stream.group, stream.topic, sorted(head.positions))
    doubt = find_disagreement(head, group, table=tables.table_uuid())
    if doubt is not None:
        raise refuse_disagreement(doubt, stream=stream.name, group=stream.group, head=head)
    new = head.next(
        kind=HeadKind.REBUILT,
        sequence=max(head.sequence, held.last_sequence) + 1,
        generation=next_generation(head, group, table=tables.table_uuid()),
        note=with_missing(note, held.missing, held.left_out),
        held=held.mark,
    )
    return Rewind(head, new, {}, (), group, remarks=held.remarks, missing=held.missing)


def _is_intact(tables: Tables, head: Head) -> bool:
    try:
        tables.held_files(head.held)
    except Altered:
        return False
    return True


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


def _passed(sight: Sight, target: Target, wanted: Mapping[Partition, Offset]) -> dict[Partition, Position]:
    """The positions that it moves forward from, or back to the log's beginning, with what they say of the log before
    them: where it goes they say it no more."""
    head = sight.head
    if head is None or head.topic_id != sight.topic.topic_id:
        return {}
    there = {p: at for p, at in head.positions.items() if p in sight.ends and p in wanted}
    return {p: at for p, at in there.items() if not sight.ends[p].log_start < wanted[p] <= at.next_offset}


def _moves(
    sight: Sight, target: Target, wanted: Mapping[Partition, Offset], *, cuts: Mapping[Partition, Offset]
) -> tuple[dict[Partition, tuple[Offset | None, Offset]], tuple[OffsetRange, ...]]:
    """From where to where, and what is skipped: where the log was cut off and written anew, from there on. A first head
    skips what lies before it in the log."""
    known = _known(sight, target)
    moves = {p: (known[p].next_offset if p in known else None, to) for p, to in wanted.items()}
    # Where nothing moves nothing is checked: a partition that retention overtook must not bar the way out of another.
    _check_inside(sight.stream, {p: move for p, move in moves.items() if move[0] != move[1]}, sight.ends)
    least = {p: sight.ends[p].log_start if sight.head is None else Offset(0) for p in moves}
    if target.word == "start-over":
        return moves, _lost_before(sight, moves, cuts)
    starts = {p: cuts.get(p, was) if was is not None else least[p] for p, (was, _) in moves.items()}
    return moves, tuple(OffsetRange(p, starts[p], to) for p, (_, to) in sorted(moves.items()) if to > starts[p])


def _lost_before(
    sight: Sight, moves: Mapping[Partition, tuple[Offset | None, Offset]], cuts: Mapping[Partition, Offset]
) -> tuple[OffsetRange, ...]:
    """Starting over on the head's own topic: what retention has taken beyond the head's position, or of what was
    written anew before it, is lost, by name."""
    head = sight.head
    if head is None or head.topic_id != sight.topic.topic_id:
        return ()
    stood = {p: cuts.get(p, head.positions[p].next_offset if p in head.positions else Offset(0)) for p in moves}
    return tuple(OffsetRange(p, stood[p], to) for p, (_, to) in sorted(moves.items()) if to > stood[p])


def _head_anew(
    sight: Sight,
    fresh: Mapping[Partition, Position],
    skipped: tuple[OffsetRange, ...],
    note: str,
    left: FoundHeld | None,
    history: Iterable[BatchRow],
) -> Head:
    number, generation = first_version(history)
    if left is not None:  # decisions that are held already are older than any of this table
        number = max(number, left.last_sequence + 1)
    return Head(
        number,
        max(generation, next_generation(None, sight.group, table=sight.table)),
        HeadKind.FIRST,
        sight.topic.topic_id,
        fresh,
        skipped=skipped,
        note=note,
        held=None if left is None else left.mark,
    )


def _head_after(
    sight: Sight,
    head: Head,
    target: Target,
    moves: Mapping[Partition, tuple[Offset | None, Offset]],
    fresh: Mapping[Partition, Position],
    skipped: tuple[OffsetRange, ...],
    note: str,
) -> Head:
    same_topic = head.topic_id == sight.topic.topic_id
    goes = {p: to for p, (_, to) in moves.items()}
    if target.afresh:  # what the broker does not show is forgotten, and stands at its beginning
        goes |= dict.fromkeys(head.positions.keys() - fresh.keys(), Offset(0))
    kept = still_skipped(head.skipped, goes)
    return head.next(
        kind=HeadKind.REWIND,
        generation=next_generation(head, sight.group, table=sight.table),
        topic_id=sight.topic.topic_id,
        # What stays keeps its record time and epoch, so that it still holds the watermark back.
        positions=fresh if target.afresh else {**head.positions, **fresh},
        # Skipped ranges are exempt from I1: those of an old topic mean nothing on a new one.
        skipped=kept + skipped if same_topic and target.word != "new-topic" else skipped,
        note=note,
    )


def _goes_over(sight: Sight, target: Target, moves: Mapping[Partition, tuple[Offset | None, Offset]]) -> Iterator[str]:
    """Where somebody has set the group, which no plan has taken over yet, and would go somewhere else now."""
    if sight.head is None or target.afresh:
        return
    for p, (_, to) in sorted(moves.items()):
        shown = sight.group.get(p)
        if shown is not None and not is_ours(shown.metadata) and shown.offset != to:
            yield (
                f"somebody has set the group to {shown.offset} on partition {p}, and no plan has taken that over yet: "
                f"this goes over it (`wavestitch rewind {sight.stream.name} --to {p}:group` goes there)"
            )


def _known(sight: Sight, target: Target) -> Mapping[Partition, Position]:
    return {} if sight.head is None or target.afresh else sight.head.positions


def _set(
    sight: Sight,
    known: Mapping[Partition, Position],
    moves: Mapping[Partition, tuple[Offset | None, Offset]],
) -> dict[Partition, Position]:
    """Also where it stays at the log's beginning: with the epoch of now."""
    return {
        p: moved_position(to, was=known.get(p), here=sight.ends[p])
        for p, (was, to) in moves.items()
        if was != to or to == sight.ends[p].log_start
    }


def _refuse_nothing(
    sight: Sight, target: Target, moves: Mapping[Partition, tuple[Offset | None, Offset]], after: Head
) -> None:
    """A head that changes nothing but the generation would fence every batch under way, and let closed gates fall, for
    nothing. To stay is an answer only to the group, where somebody has reset it."""
    head = sight.head
    if head is None or after.skipped != head.skipped:
        return
    was, now = ({p: (at.next_offset, at.leader_epoch) for p, at in h.positions.items()} for h in (head, after))
    reset = any((shown := sight.group.get(p)) is not None and not is_ours(shown.metadata) for p in moves)
    if was == now and not reset:
        raise Refused(
            f"stream {sight.stream.name}: nothing would move: --to {target} names "
            f"{'where it stands already' if moves else 'no partition that could go there'}, and a rewind fences every "
            "batch under way. Name an offset, or leave it; a batch that is not wanted any more is given up with "
            f"`wavestitch abandon {sight.stream.name} --plan … --why …`"
        )


def _check_inside(
    stream: Stream, moves: Mapping[Partition, tuple[Offset | None, Offset]], ends: Mapping[Partition, PartitionEnds]
) -> None:
    for p, (was, to) in sorted(moves.items()):
        here = ends.get(p)
        if here is None or not here.log_start <= to <= here.high_watermark:
            has = f"[{here.log_start}, {here.high_watermark}]" if here else "no such partition"
            elsewhere = here is not None and was != here.log_start
            way = f"; `wavestitch rewind {stream.name} --to {p}:earliest` goes to where it begins" if elsewhere else ""
            raise Refused(
                f"stream {stream.name}: offset {to} of partition {p} is not in the log of {stream.topic} ({has}){way}"
            )
