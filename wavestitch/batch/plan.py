"""Step 1: pin the inputs of a batch. Decides where it starts and ends, and says why; refuses what would lose data.

Touches nothing but the head and the group's offsets (a first head, an adopted reset, a projection made again), and
with `apply=False` not even those. Keeps I1, I5 and I8. A refusal always names its way out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wavestitch.batch.commit_offsets import project
from wavestitch.batch.stream_state import committed_decisions
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.disagreement import find_disagreement, refuse_disagreement
from wavestitch.contracts.errors import DataLost, Refused, Transient
from wavestitch.contracts.held import effective_held, open_deadlines
from wavestitch.contracts.offset_range import OffsetRange, bound_ranges, cut_slices, pack_units
from wavestitch.contracts.past_cost import RECENT, reading_weights
from wavestitch.contracts.plan import Plan, PlanKind, Scope
from wavestitch.contracts.ports import CommitConflict, Log, PartitionEnds, Tables, TopicView
from wavestitch.contracts.position import GroupOffset, Head, HeadKind, Position, advance_watermark
from wavestitch.contracts.protocol import named, reconcile
from wavestitch.contracts.stream import Stream

_ADOPT_TRIES = 5


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What kind of batch is wanted. `scope` for a backfill (start times, ns UTC); `ranges` for a manual run that
    names its offsets. Neither: from the head's positions; `only` of these partitions (None: all), and of those that
    `until` names no further than there."""

    kind: PlanKind = PlanKind.INGEST
    scope: Scope | None = None
    ranges: tuple[OffsetRange, ...] = ()
    only: frozenset[int] | None = None
    until: Mapping[int, int] = field(default_factory=dict)

    def wants(self, partition: int) -> bool:
        return self.only is None or partition in self.only

    def unbounded(self, partition: int) -> bool:
        """Whether it goes to the end of the log there."""
        return self.wants(partition) and partition not in self.until


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """There is nothing to read and nothing that would expire: no batch, no snapshot, no Spark."""

    why: str


def plan_batch(
    stream: Stream,
    request: PlanRequest,
    *,
    log: Log,
    tables: Tables,
    clock_ms: int,
    nonce: str,
    code_version: str,
    apply: bool = True,
) -> Plan | NothingToDo:
    """The plan of the next batch. `nonce` makes it a new one at every execution."""
    topic = log.topic(stream.topic)
    _refuse_topic(stream, topic, log.members(stream.group))
    _refuse_partitions(stream, request, topic)
    head, why = _reconciled_head(stream, topic, request.kind, log=log, tables=tables, apply=apply)
    if head.topic_id != topic.topic_id:
        raise Refused(
            f"topic {topic.name} was recreated: the head of stream {stream.name} knows topic id {head.topic_id}, the "
            f"broker has {topic.topic_id}; begin anew on it with `wavestitch rewind {stream.name} --to new-topic "
            "--accept-skip --apply` (what is published stays)",
            topic=topic.name,
        )
    ends = log.ends(topic.name, topic.partitions)
    backlog, reasons = _backlog(stream, head, request, topic, ends, log)
    mean = head.mean_record_bytes or float(topic.max_message_bytes)
    limits = stream.limits
    most = min(limits.max_batch_records, max(1, int(limits.max_batch_bytes / max(mean, 1.0))))
    if request.kind is not PlanKind.INGEST and sum(r.size for r in backlog) > most:
        raise Refused(
            f"stream {stream.name}: the {request.kind} covers {sum(r.size for r in backlog)} offsets; a batch may have "
            f"{most} (max_batch_records, max_batch_bytes): take a smaller interval, or raise the limit"
        )
    ranges = bound_ranges(backlog, max_records=most)
    positions = dict(head.positions)
    after = _ends(head, ranges, ends, topic)
    if not ranges:
        nothing = _nothing(stream, request, head, ends, tables, after, clock_ms)
        if nothing is not None:
            return nothing
    workers = stream.reading.workers
    slices = cut_slices(ranges, workers=workers, min_slice=stream.reading.min_slice)
    return Plan(
        plan_id="",
        kind=request.kind,
        stream=stream,
        topic_id=topic.topic_id,
        partitions=len(topic.partitions),
        ranges=tuple(ranges),
        units=tuple(pack_units(slices, workers=workers, weight=reading_weights(recent_batches(tables, head)))),
        positions=positions,
        ends=after,
        generation=head.generation,
        base_sequence=head.sequence,
        base_snapshot=head.snapshot_id or 0,
        held_snapshot=tables.held_snapshot(),
        watermark_ms=head.watermark_ms,
        clock_ms=clock_ms,
        scope=request.scope,
        why={r.partition: why.get(r.partition) or reasons[r.partition] for r in ranges},
        mean_record_bytes=mean,
        code_version=code_version,
        nonce=nonce,
        left=sum(r.size for r in backlog) - sum(r.size for r in ranges),
    ).sealed()


def recent_batches(tables: Tables, head: Head | None) -> list[BatchRow]:
    """The history of the last few heads, newest first."""
    return [] if head is None else tables.batches(since=head.sequence - RECENT + 1)


def _refuse_topic(stream: Stream, topic: TopicView, members: Sequence[str]) -> None:
    if topic.compacted:
        raise Refused(
            f"topic {topic.name} has cleanup.policy compact: chunks of one waveform share a key, and compaction keeps "
            "only the last of them; set cleanup.policy=delete for a topic of waveforms",
            topic=topic.name,
        )
    if members:
        raise Refused(
            f"consumer group {stream.group} has live members ({', '.join(members[:3])}); batches use a group of their "
            f"own: stop those consumers, or give stream {stream.name} another group",
            group=stream.group,
        )


def _reconciled_head(
    stream: Stream, topic: TopicView, kind: PlanKind, *, log: Log, tables: Tables, apply: bool
) -> tuple[Head, Mapping[int, str]]:
    """The head to plan on, after the group was compared with it. A conflict means: look at both again."""
    for _ in range(_ADOPT_TRIES):
        head, table = tables.head(), tables.table_uuid()
        try:
            if head is not None and (kind is not PlanKind.INGEST or head.topic_id != topic.topic_id):
                return head, {}
            known = () if head is None else head.positions
            group = log.group_offsets(stream.group, topic.name, sorted({*known, *topic.partitions}))
            doubt = find_disagreement(head, group, table=table)
            if doubt is not None:
                if tables.head() != head:
                    continue  # a batch was committed and shown in the group between our two looks
                raise refuse_disagreement(doubt, stream=stream.name, group=stream.group, head=head)
            if head is None:
                head, why = _first_head(stream, topic, log, group)
                if apply:
                    head = tables.commit(None, head, [])
                    project(stream, head, log=log, tables=tables)
                return head, why
            found = reconcile(head, group, on_reset=stream.on_reset, stream=stream.name)
            if found.adopt is not None:
                _refuse_skipped_start(stream, found.adopt, log.ends(topic.name, topic.partitions))
                head = tables.commit(head, found.adopt, []) if apply else found.adopt
            if found.project and apply:
                project(stream, head, log=log, tables=tables)
            return head, found.why
        except CommitConflict:
            continue
    raise Transient(f"stream {stream.name}: the head changed {_ADOPT_TRIES} times while planning; try again")


def _first_head(
    stream: Stream, topic: TopicView, log: Log, group: Mapping[int, GroupOffset | None]
) -> tuple[Head, dict[int, str]]:
    ends = log.ends(topic.name, topic.partitions)
    positions, why = {}, {}
    for p in topic.partitions:
        found = group.get(p)
        if found is not None:
            at, reason = found.offset, "first batch: where the group stands"
        elif stream.start == "latest":
            at, reason = ends[p].stable_end, "first batch: the stream says start: latest"
        else:
            at, reason = ends[p].log_start, "first batch: the stream says start: earliest"
        positions[p], why[p] = Position(at), f"{reason} ({at})"
    return Head(1, 1, HeadKind.FIRST, topic.topic_id, positions, note="first head"), why


def _refuse_partitions(stream: Stream, request: PlanRequest, topic: TopicView) -> None:
    unknown = {*(request.only or ()), *request.until} - set(topic.partitions)
    if unknown:
        raise Refused(
            f"stream {stream.name}: partition {min(unknown)} was named; topic {topic.name} has {len(topic.partitions)} "
            "partitions, counted from 0",
            partition=min(unknown),
        )


def _refuse_skipped_start(stream: Stream, head: Head, ends: Mapping[int, PartitionEnds]) -> None:
    _refuse_overtaken(stream, {p: at.next_offset for p, at in head.positions.items() if p in ends}, ends)


def _refuse_overtaken(stream: Stream, starts: Mapping[int, int], ends: Mapping[int, PartitionEnds]) -> None:
    gone = {p: at for p, at in sorted(starts.items()) if at < ends[p].log_start}
    if not gone:
        return
    p, position = min(gone.items())
    lost = ", ".join(str(OffsetRange(p, at, ends[p].log_start)) for p, at in gone.items())
    raise DataLost(
        f"retention has overtaken stream {stream.name}: partition {p} of {stream.topic} begins at {ends[p].log_start}, "
        f"the position is {position}; gone are {lost}. Accept that loss by name with `wavestitch rewind {stream.name} "
        f"--to {named(gone, 'earliest', everything=ends)} --accept-skip --apply`; the other partitions stay where they "
        "are, and `wavestitch run --partitions` reads them before that",
        partition=p,
        position=position,
        log_start=ends[p].log_start,
    )


def _backlog(
    stream: Stream,
    head: Head,
    request: PlanRequest,
    topic: TopicView,
    ends: Mapping[int, PartitionEnds],
    log: Log,
) -> tuple[list[OffsetRange], dict[int, str]]:
    """All that could be read, per partition, and why it starts there."""
    if request.ranges:
        return _named(stream, request.ranges, ends)
    if request.scope is not None:
        return _located(stream, request.scope, topic, ends, log)
    starts, why = {}, {}
    for p in filter(request.wants, topic.partitions):
        known = head.positions.get(p)
        starts[p] = known.next_offset if known else 0
        why[p] = f"the head's position ({starts[p]})" if known else "a new partition starts at 0"
    _refuse_overtaken(stream, starts, ends)
    _refuse_cut(stream, starts, ends)
    return [OffsetRange(p, start, _end(stream, request, p, start, ends[p])) for p, start in starts.items()], why


def _end(stream: Stream, request: PlanRequest, partition: int, start: int, here: PartitionEnds) -> int:
    until = request.until.get(partition)
    if until is None:
        return max(start, here.stable_end)
    if not start <= until <= here.stable_end:
        raise Refused(
            f"stream {stream.name}: partition {partition} was to be read until {until}; it stands at {start} and "
            f"can be read until {here.stable_end}",
            partition=partition,
        )
    return until


def _refuse_cut(stream: Stream, starts: Mapping[int, int], ends: Mapping[int, PartitionEnds]) -> None:
    cut = {p: at for p, at in sorted(starts.items()) if at > ends[p].high_watermark}
    if not cut:
        return
    p, start = min(cut.items())
    raise Refused(
        f"stream {stream.name}: partition {p} of {stream.topic} ends at {ends[p].high_watermark}, the position "
        f"is {start}: the log was cut back (an unclean election?) or replaced; what was published stays; "
        f"read again what is there now with `wavestitch rewind {stream.name} --to "
        f"{named(cut, 'earliest', everything=ends)} --apply`, or to a time before the cut: what is published is "
        "recognised (from the new end on, whatever was written since the cut would be passed over)",
        partition=p,
    )


def _named(
    stream: Stream, wanted: Sequence[OffsetRange], ends: Mapping[int, PartitionEnds]
) -> tuple[list[OffsetRange], dict[int, str]]:
    for r in wanted:
        here = ends.get(r.partition)
        if here is None or not here.log_start <= r.start <= r.end <= here.stable_end:
            has = f"[{here.log_start}, {here.stable_end})" if here else "no such partition"
            raise Refused(f"stream {stream.name}: {r} was asked for; the log of {stream.topic} has {has}")
    if len({r.partition for r in wanted}) < len(wanted):
        raise Refused(f"stream {stream.name}: a partition was named twice; name one range a partition")
    return list(wanted), {r.partition: "named by the operator" for r in wanted}


def _located(
    stream: Stream, scope: Scope, topic: TopicView, ends: Mapping[int, PartitionEnds], log: Log
) -> tuple[list[OffsetRange], dict[int, str]]:
    """Where the interval's records lie, by record time, with the stream's search_margin on both sides."""
    margin = stream.search_margin * 1000
    first = scope.start_ns // 1_000_000 - margin
    last = -(-scope.end_ns // 1_000_000) + margin
    starts = log.offsets_at(topic.name, {p: max(first, 0) for p in topic.partitions})
    stops = log.offsets_at(topic.name, {p: max(last, 0) for p in topic.partitions})
    ranges = []
    for p in topic.partitions:
        start = max(starts[p], ends[p].log_start)
        ranges.append(OffsetRange(p, start, max(start, min(stops[p], ends[p].stable_end))))
    return ranges, dict.fromkeys(
        topic.partitions, f"record time of the interval, {stream.search_margin} s earlier and later"
    )


def _ends(
    head: Head, ranges: Sequence[OffsetRange], ends: Mapping[int, PartitionEnds], topic: TopicView
) -> dict[int, Position]:
    """Where an ingest leaves the positions: all partitions, the new ones too."""
    after = {p: head.positions.get(p, Position(0)) for p in topic.partitions}
    for r in ranges:
        after[r.partition] = after[r.partition]._replace(next_offset=r.end, leader_epoch=ends[r.partition].leader_epoch)
    return after


def _nothing(
    stream: Stream,
    request: PlanRequest,
    head: Head,
    ends: Mapping[int, PartitionEnds],
    tables: Tables,
    after: Mapping[int, Position],
    clock_ms: int,
) -> NothingToDo | None:
    """Why there is nothing to do; None where an empty batch still has open waveforms to expire."""
    if request.kind is not PlanKind.INGEST:
        return NothingToDo(f"stream {stream.name}: the log has no records there")
    stuck = {p: e for p, e in ends.items() if e.high_watermark > e.stable_end and request.unbounded(p)}
    if stuck:
        p, e = next(iter(stuck.items()))
        raise Transient(
            f"stream {stream.name}: all there is to read lies behind an open transaction (partition {p}: stable end "
            f"{e.stable_end}, high watermark {e.high_watermark}); wait until its producer commits or times out, or "
            "look for it with kafka-transactions.sh find-hanging",
            partition=p,
        )
    watermark = advance_watermark(after, previous_ms=head.watermark_ms, clock_ms=clock_ms, idle_ms=stream.idle * 1000)
    rows = tables.held_rows()
    if rows:
        decided = committed_decisions(tables, {r.decision for r in rows})
        known = tables.published({r.chunk.waveform_id for r in rows if r.chunk.waveform_id})
        deadlines = open_deadlines(
            effective_held(rows, committed=decided, published=known), allowed_lateness_ms=stream.allowed_lateness * 1000
        )
        if any(head.watermark_ms <= due < watermark for due in deadlines.values()):
            return None
    if request.only is not None or request.until:
        return NothingToDo(f"stream {stream.name}: nothing is left to read of what was named")
    return NothingToDo(f"stream {stream.name}: the head stands at the end of {stream.topic}")
