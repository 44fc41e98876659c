"""What a plan is made on: the topic, the head, the log's ends; and what every kind of plan has in common.

Refuses a topic, a group and partitions that no batch may read. A refusal names its way out. Changes nothing by itself:
what reconciling the head takes are stages of the walk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wavestitch.batch.cut_log import Earlier, earlier_positions, said_of_unproven, with_last_batches
from wavestitch.batch.last_definition import recent_batches, refuse_torn
from wavestitch.batch.plan_request import Planning, PlanRequest
from wavestitch.batch.reconciled_head import reconcile_head, refuse_partitions
from wavestitch.batch.record_ages import open_transactions
from wavestitch.batch.walk import Walk
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.batch_size import ReaderStop, batch_offsets, needed_bytes, stops_of
from wavestitch.contracts.definition_since import said_of_definition
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.held_quota import said_of_junk
from wavestitch.contracts.offset_range import OffsetRange, cut_slices, pack_units
from wavestitch.contracts.open_transaction import OpenTransaction, said_of_open
from wavestitch.contracts.past_cost import reading_weights
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.ports import Log, PartitionEnds, Probe, Tables, TopicView
from wavestitch.contracts.position import Head, Position
from wavestitch.contracts.quantities import EpochMs, Offset, Partition
from wavestitch.contracts.stream import Stream


@dataclass(frozen=True, slots=True)
class Survey:
    """What a plan is made on. `why`: what was done about the group's offsets, per partition. `held_up`: what open
    transactions keep from being read. `recent`: the newest rows of the history."""

    topic: TopicView
    head: Head
    ends: Mapping[Partition, PartitionEnds]
    why: Mapping[Partition, str]
    held_up: Sequence[OpenTransaction]
    recent: Sequence[BatchRow]
    log: Log
    tables: Tables

    @property
    def earlier(self) -> Earlier:
        return earlier_positions(self.tables, self.topic.topic_id)


@dataclass(frozen=True, slots=True)
class Made:
    """Of what a plan is made beside what it reads."""

    request: PlanRequest
    mean: float
    by: Planning


def survey(stream: Stream, request: PlanRequest, *, walk: Walk, clock_ms: EpochMs) -> Survey:
    topic = walk.log.topic(stream.topic)
    _refuse_topic(stream, topic, walk.log.members(stream.group))
    # Before a reset is taken over: a definition that lost its end may have lost what it says of that.
    recent = refuse_torn(stream, walk.tables)
    head, why = reconcile_head(stream, topic, request, walk=walk)
    return _survey_on(stream, request, topic, head, why, recent, log=walk.log, tables=walk.tables, clock_ms=clock_ms)


def survey_beside(
    stream: Stream, request: PlanRequest, head: Head, *, log: Log, tables: Tables, clock_ms: EpochMs
) -> Survey:
    """For whoever only compares with what a head says: nothing is read for the group, so it is not asked. It may show a
    newer head by now."""
    topic = log.topic(stream.topic)
    _refuse_topic(stream, topic, ())
    refuse_partitions(stream, request, topic, head)
    recent = recent_batches(tables, head)
    return _survey_on(stream, request, topic, head, {}, recent, log=log, tables=tables, clock_ms=clock_ms)


def _survey_on(
    stream: Stream,
    request: PlanRequest,
    topic: TopicView,
    head: Head,
    why: Mapping[Partition, str],
    recent: Sequence[BatchRow],
    *,
    log: Log,
    tables: Tables,
    clock_ms: EpochMs,
) -> Survey:
    if head.topic_id != topic.topic_id:
        raise Refused(
            f"topic {topic.name} was recreated: the head of stream {stream.name} knows topic id {head.topic_id}, the "
            f"broker has {topic.topic_id}; begin anew on it with `wavestitch rewind {stream.name} --to new-topic "
            "--apply` (what is published stays)",
            topic=topic.name,
        )
    ends = log.ends(topic.name, topic.partitions)
    wanted = {p: at for p, at in ends.items() if request.wants(p)}
    held_up = open_transactions(log, topic.name, wanted, now=clock_ms)
    return Survey(topic, head, ends, why, held_up, recent, log, tables)


def size_of(
    stream: Stream, kind: PlanKind, here: Survey, wanted: Sequence[OffsetRange], stops: Sequence[ReaderStop]
) -> tuple[float, int]:
    """Bytes of a record, and how many offsets a batch may have."""
    stands = {p: at.next_offset for p, at in here.head.positions.items()}
    stopped = stops_of(
        [s for s in stops if kind is not PlanKind.INGEST or s.positions == stands], kind=kind, wanted=wanted
    )
    mean = here.head.mean_record_bytes or _first_estimate(here.topic, wanted, here.log)
    mean = max([mean, *(s.mean for s in stopped)])
    return mean, batch_offsets(stream.limits, mean=mean, stops=stopped)


def plan_of(
    stream: Stream,
    here: Survey,
    made: Made,
    ranges: Sequence[OffsetRange],
    *,
    why: Mapping[Partition, str],
    left: int = 0,
    after: tuple[str, ...] = (),
) -> Plan:
    workers, head, request = stream.reading.workers, here.head, made.request
    ends = _with_last_batches(here, request, left_at(here, request, ranges))
    unproven = _said_of_unproven(here, request, ends)
    slices = cut_slices(ranges, workers=workers, min_slice=stream.reading.min_slice)
    return Plan(
        plan_id="",
        kind=request.kind,
        stream=stream,
        topic_id=here.topic.topic_id,
        partitions=len(here.topic.partitions),
        ranges=tuple(ranges),
        units=tuple(pack_units(slices, workers=workers, weight=reading_weights(here.recent))),
        positions=dict(head.positions),
        ends=ends,
        generation=head.generation,
        base_sequence=head.sequence,
        base_snapshot=head.snapshot_id or 0,
        held_snapshot=None if head.held is None else head.held.snapshot_id,
        watermark_ms=head.watermark_ms,
        clock_ms=made.by.clock_ms,
        scope=request.scope,
        why={r.partition: why[r.partition] for r in ranges},
        mean_record_bytes=made.mean,
        code_version=made.by.code_version,
        nonce=made.by.nonce,
        left=left,
        after=after,
        remarks=(*_remarks(stream, here), *unproven),
    ).sealed()


def left_at(here: Survey, request: PlanRequest, ranges: Sequence[OffsetRange]) -> dict[Partition, Position]:
    """Where an ingest leaves the positions: all partitions, the new ones too.

    What was planned on was found to be the log that was read, where nothing new lies, too: so it is kept with the epoch
    of now, and not asked about again and again."""
    after = ends_after(here.head, ranges, here.ends, here.topic)
    if request.kind is not PlanKind.INGEST:
        return after
    seen = {p: end for p, end in here.ends.items() if request.wants(p)}
    return {**after, **{p: after[p]._replace(leader_epoch=end.leader_epoch) for p, end in seen.items()}}


def _with_last_batches(
    here: Survey, request: PlanRequest, after: Mapping[Partition, Position]
) -> dict[Partition, Position]:
    """With what the log has there now, by which another one is found out; also where an earlier version kept none."""
    if request.kind is not PlanKind.INGEST:
        return dict(after)
    moved = {p for p, at in after.items() if at.last_batch is None or at.next_offset != _stands(here.head, p)}
    fresh = {p: after[p] for p in moved if p in here.ends and request.wants(p)}
    return {**after, **with_last_batches(here.topic.name, fresh, here.ends, here.log)}


def _said_of_unproven(here: Survey, request: PlanRequest, after: Mapping[Partition, Position]) -> tuple[str, ...]:
    if request.kind is not PlanKind.INGEST:
        return ()
    stands = {p: at for p, at in here.head.positions.items() if p in here.ends and request.wants(p)}
    goes = {p: at for p, at in after.items() if p in here.ends and request.wants(p)}
    return said_of_unproven(here.topic.name, stands, goes, here.ends)


def _stands(head: Head, partition: Partition) -> Offset | None:
    at = head.positions.get(partition)
    return None if at is None else at.next_offset


def too_much(stream: Stream, kind: PlanKind, offsets: int, *, most: int, mean: float) -> Refused:
    """Both limits are named, with what they have to be: whoever raises only one is not sent back for the other."""
    wanted = [("max_batch_records", offsets, stream.limits.max_batch_records)]
    wanted.append(("max_batch_bytes", needed_bytes(offsets, mean=mean), stream.limits.max_batch_bytes))
    raises = " and ".join(f"limits.{name} to {least}" for name, least, now in wanted if least > now)
    fewer = "name fewer offsets" if kind is PlanKind.MANUAL else "take a smaller interval"
    return Refused(
        f"stream {stream.name}: the {kind} covers {offsets} offsets of about {mean:.0f} bytes; a batch may have {most} "
        f"(max_batch_records, max_batch_bytes): {fewer}, or raise {raises}",
        offsets=offsets,
        allowed=most,
    )


def _remarks(stream: Stream, here: Survey) -> tuple[str, ...]:
    junk = said_of_junk(stream, here.head.held, here.recent)
    said = (
        *said_of_definition(stream, here.recent),
        *_said_of_compression(stream, here.topic),
        *said_of_open(here.topic.name, here.held_up),
        junk,
    )
    return tuple(filter(None, said))


def _said_of_compression(stream: Stream, topic: TopicView) -> tuple[str, ...]:
    if stream.trusted_producers or topic.compression == "uncompressed":
        return ()
    return (
        f"topic {topic.name} takes compressed batches (compression.type={topic.compression}): one of a few kilobytes "
        "may hold gigabytes, which costs its readers time. Set compression.type=uncompressed on the topic, and the "
        "broker refuses such a batch; or say `trusted_producers: true` in the stream, if nobody who may write means "
        "harm",
    )


def _first_estimate(topic: TopicView, backlog: Sequence[OffsetRange], log: Log) -> float:
    """Bytes of a record, asked of the log; the largest that the topic takes where it has none to show."""
    places = {r.partition: r.start for r in backlog if r.size}
    found = log.probe(topic.name, places) if places else Probe(0, 0)
    return found.bytes / found.records if found.records else float(topic.max_message_bytes)


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


def ends_after(
    head: Head, ranges: Sequence[OffsetRange], ends: Mapping[Partition, PartitionEnds], topic: TopicView
) -> dict[Partition, Position]:
    """Where an ingest leaves the positions: all partitions, the new ones too."""
    after = {p: head.positions.get(p, Position(Offset(0))) for p in topic.partitions}
    for r in ranges:
        after[r.partition] = after[r.partition]._replace(next_offset=r.end, leader_epoch=ends[r.partition].leader_epoch)
    return after
