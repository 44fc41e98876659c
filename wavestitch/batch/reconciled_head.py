"""The head that a plan stands on: compared with the group, which somebody may have reset, and which may contradict it.

Changes nothing by itself: what is to be done about it (a first head, an adopted reset, a projection made again) are
stages of the walk, which a preview only notes. Keeps I1 and I7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from wavestitch.batch.backlog import refuse_overtaken
from wavestitch.batch.cut_log import Earlier, earlier_positions, refuse_cut_log, refuse_gone_anew, with_last_batches
from wavestitch.batch.found_held import refuse_left_over
from wavestitch.batch.plan_request import PlanRequest
from wavestitch.batch.unseen_partition import refuse_unknown, refuse_unseen
from wavestitch.batch.walk import Walk
from wavestitch.contracts.batch_row import first_version
from wavestitch.contracts.batch_stages import CommitHead, ShowHead
from wavestitch.contracts.disagreement import find_disagreement, refuse_disagreement
from wavestitch.contracts.errors import Refused, Transient
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.ports import CommitConflict, Log, PartitionEnds, Tables, TopicView
from wavestitch.contracts.position import GroupOffset, Head, HeadKind, Position, is_ours
from wavestitch.contracts.protocol import moved_position, named, reconcile, still_skipped
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Stream

_ADOPT_TRIES = 5


def reconcile_head(
    stream: Stream, topic: TopicView, request: PlanRequest, *, walk: Walk
) -> tuple[Head, Mapping[Partition, str]]:
    """The head to plan on, after the group was compared with it. A conflict means: look at both again."""
    log, tables = walk.log, walk.tables
    for _ in range(_ADOPT_TRIES):
        head, table = tables.head(), tables.table_uuid()
        try:
            if head is not None and head.topic_id != topic.topic_id:
                return head, {}
            refuse_partitions(stream, request, topic, head)
            known = () if head is None else head.positions
            group = log.group_offsets(stream.group, topic.name, sorted({*known, *topic.partitions}))
            doubt = find_disagreement(head, group, table=table)
            if doubt is not None:
                if tables.head() != head:
                    continue  # a batch was committed and shown in the group between our two looks
                raise refuse_disagreement(doubt, stream=stream.name, group=stream.group, head=head)
            if head is not None and request.kind is not PlanKind.INGEST:
                return head, {}  # it moves no position: a reset is the next ingest's to take over
            if head is None:
                refuse_left_over(stream.name, tables)
                head, why = _first_head(stream, topic, log, group, tables)
                return _committed(walk, CommitHead(None, head), ShowHead(head, group)), why
            _refuse_nowhere(stream, head, group, topic, log=log, tables=tables)
            found = reconcile(head, group, on_reset=stream.on_reset, stream=stream.name)
            if found.adopt is not None:
                ends = log.ends(topic.name, topic.partitions)
                # Of the others the plan asks, where they are wanted.
                reset = {p for p, at in found.adopt.positions.items() if at != head.positions.get(p)}
                # At the log's beginning it takes the epoch of now: what the one before knows is asked a last time.
                begun = {p for p in reset & ends.keys() if found.adopt.positions[p].next_offset == ends[p].log_start}
                earlier = earlier_positions(tables, topic.topic_id)
                known = {p: head.positions[p] for p in begun & head.positions.keys()}
                refuse_gone_anew(stream, known, ends, log, earlier)
                adopted = _as_moved(found.adopt, head, ends, log=log, topic=topic.name, earlier=earlier)
                return _committed(walk, CommitHead(head, adopted), ShowHead(adopted, group)), found.why
            if found.project:
                walk(ShowHead(head, group))
            return head, found.why
        except CommitConflict:
            continue
    raise Transient(
        f"stream {stream.name}: the head changed {_ADOPT_TRIES} times while planning; try again", for_guests=True
    )


def refuse_partitions(stream: Stream, request: PlanRequest, topic: TopicView, head: Head | None) -> None:
    """Before anything is made of the topic's partitions. An older view of it does not say how many they are."""
    refuse_unseen(stream.name, topic, head)
    problem = stream.id_partitions and stream.id_partitions.problem(topic.partitions)
    if problem:
        raise Refused(f"stream {stream.name}, topic {topic.name}: {problem}; nothing was read", topic=topic.name)
    refuse_unknown(stream.name, topic, {*(request.only or ()), *request.until})


def _committed(walk: Walk, commit: CommitHead, show: ShowHead) -> Head:
    walk(commit)
    walk(show)
    return walk.head or commit.head


def _first_head(
    stream: Stream, topic: TopicView, log: Log, group: Mapping[Partition, GroupOffset | None], tables: Tables
) -> tuple[Head, dict[Partition, str]]:
    ends = log.ends(topic.name, topic.partitions)
    positions, why = {}, {}
    for p in topic.partitions:
        found = group.get(p)
        epoch = ends[p].leader_epoch
        if found is not None:
            at, reason = found.offset, "first batch: where the group stands"
            epoch = found.leader_epoch if found.leader_epoch is not None else epoch
        elif stream.start == "latest":
            at, reason = ends[p].stable_end, "first batch: the stream says start: latest"
        else:
            at, reason = ends[p].log_start, "first batch: the stream says start: earliest"
        positions[p], why[p] = Position(at, leader_epoch=epoch), f"{reason} ({at})"
    positions = with_last_batches(topic.name, positions, ends, log)
    number, generation = first_version(tables.batches(every_table=True))
    return Head(number, generation, HeadKind.FIRST, topic.topic_id, positions, note="first head"), why


def _as_moved(
    head: Head, was: Head, ends: Mapping[Partition, PartitionEnds], *, log: Log, topic: str, earlier: Earlier
) -> Head:
    """What was set by hand, as a rewind sets it: with what is known of the log, and without what is read again among
    what was skipped."""
    moved = {p: at.next_offset for p, at in head.positions.items() if p in ends and at.leader_epoch is None}
    fresh = {p: moved_position(to, was=was.positions.get(p), here=ends[p]) for p, to in moved.items()}
    fresh = with_last_batches(topic, fresh, ends, log, was=was.positions, earlier=earlier)
    return replace(head, positions={**head.positions, **fresh}, skipped=still_skipped(head.skipped, moved))


def _refuse_nowhere(
    stream: Stream,
    head: Head,
    group: Mapping[Partition, GroupOffset | None],
    topic: TopicView,
    *,
    log: Log,
    tables: Tables,
) -> None:
    """A group that somebody has set forward, or to where the log has nothing, is no place to go to before it is known
    that the log is the one that was read, and where it begins and ends."""
    stands = {p: at.next_offset for p, at in head.positions.items()}
    moved = {p: at.offset for p, at in group.items() if at is not None and not is_ours(at.metadata)}
    moved = {p: to for p, to in moved.items() if p in topic.partitions and to != stands.get(p)}
    if not moved:
        return
    ends = log.ends(topic.name, topic.partitions)
    nowhere = {p: to for p, to in moved.items() if not ends[p].log_start <= to <= ends[p].high_watermark}
    forward = {p for p, to in moved.items() if to > stands.get(p, 0)}
    asked = {p: head.positions[p] for p in (nowhere.keys() | forward) & head.positions.keys()}
    refuse_cut_log(stream, asked, ends, log, earlier_positions(tables, topic.topic_id))
    # A reset is taken over whole, whichever partitions are read then.
    refuse_overtaken(stream, {p: stands.get(p, Offset(0)) for p in nowhere}, ends, apart=False)
    if nowhere:
        p, to = min(nowhere.items())
        raise Refused(
            f"stream {stream.name}: somebody set the group to {to} on partition {p}, and the log of {stream.topic} has "
            f"[{ends[p].log_start}, {ends[p].high_watermark}): set it to where the log has something, or go on where "
            f"the stream stands with `wavestitch rewind {stream.name} --to {named(nowhere, 'head', everything=ends)} "
            "--apply`",
            partition=p,
            seen=to,
        )
