"""Step 1: pin the inputs of a batch. Decides where it starts and ends, and says why; refuses what would lose data.

Changes nothing by itself: what is to be done about the head and the group's offsets first are stages of the walk,
which a preview only notes. Keeps I1, I5 and I8. A refusal always names its way out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wavestitch.batch.backlog import find_backlog
from wavestitch.batch.plan_request import PlanRequest
from wavestitch.batch.reconciled_head import reconcile_head
from wavestitch.batch.stream_state import load_state, open_since
from wavestitch.batch.walk import Walk
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.batch_size import ReaderStop, batch_offsets, needed_bytes, stops_of
from wavestitch.contracts.errors import Refused, Transient
from wavestitch.contracts.held import HeldLook, open_deadlines
from wavestitch.contracts.held_quota import said_of_junk
from wavestitch.contracts.offset_range import OffsetRange, bound_ranges, cut_slices, pack_units
from wavestitch.contracts.past_cost import RECENT, reading_weights
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.ports import Log, PartitionEnds, Probe, Tables, TopicView
from wavestitch.contracts.position import Head, Position, advance_watermark
from wavestitch.contracts.quantities import EpochMs, milliseconds
from wavestitch.contracts.stages import Told
from wavestitch.contracts.stream import Stream

__all__ = ["NothingToDo", "PlanRequest", "plan_batch", "recent_batches"]


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """There is nothing to read and nothing that would expire: no batch, no snapshot, no Spark. `stages`: what planning
    found to do nevertheless (a reset to take over, a projection to make again)."""

    why: str
    stages: tuple[Told, ...] = ()


def plan_batch(
    stream: Stream,
    request: PlanRequest,
    *,
    walk: Walk,
    clock_ms: EpochMs,
    nonce: str,
    code_version: str,
    stops: Sequence[ReaderStop] = (),
) -> Plan | NothingToDo:
    """The plan of the next batch. `nonce` makes it a new one at every execution; `stops`: what readers of this stream
    had seen that stopped at their budget."""
    log, tables = walk.log, walk.tables
    topic = log.topic(stream.topic)
    _refuse_topic(stream, topic, log.members(stream.group))
    _refuse_partitions(stream, request, topic)
    head, why = reconcile_head(stream, topic, request.kind, walk=walk)
    if head.topic_id != topic.topic_id:
        raise Refused(
            f"topic {topic.name} was recreated: the head of stream {stream.name} knows topic id {head.topic_id}, the "
            f"broker has {topic.topic_id}; begin anew on it with `wavestitch rewind {stream.name} --to new-topic "
            "--accept-skip --apply` (what is published stays)",
            topic=topic.name,
        )
    ends = log.ends(topic.name, topic.partitions)
    backlog, reasons = find_backlog(stream, head, request, topic, ends, log)
    stands = {p: at.next_offset for p, at in head.positions.items()}
    stopped = stops_of(
        [s for s in stops if request.kind is not PlanKind.INGEST or s.positions == stands],
        kind=request.kind,
        wanted=backlog,
    )
    mean = head.mean_record_bytes or _first_estimate(topic, backlog, log)
    mean = max([mean, *(s.mean for s in stopped)])
    most = batch_offsets(stream.limits, mean=mean, stops=stopped)
    if request.kind is not PlanKind.INGEST and sum(r.size for r in backlog) > most:
        raise _too_much(stream, request.kind, sum(r.size for r in backlog), most=most, mean=mean)
    ranges = bound_ranges(backlog, max_records=most)
    positions = dict(head.positions)
    after = _ends(head, ranges, ends, topic)
    if request.kind is PlanKind.INGEST:
        after = _seen_whole(after, request, ends)
    if not ranges:
        nothing = _nothing(stream, request, head, ends, tables, after, clock_ms)
        if nothing is not None:
            return nothing
    workers = stream.reading.workers
    slices = cut_slices(ranges, workers=workers, min_slice=stream.reading.min_slice)
    recent = recent_batches(tables, head)
    return Plan(
        plan_id="",
        kind=request.kind,
        stream=stream,
        topic_id=topic.topic_id,
        partitions=len(topic.partitions),
        ranges=tuple(ranges),
        units=tuple(pack_units(slices, workers=workers, weight=reading_weights(recent))),
        positions=positions,
        ends=after,
        generation=head.generation,
        base_sequence=head.sequence,
        base_snapshot=head.snapshot_id or 0,
        held_snapshot=None if head.held is None else head.held.snapshot_id,
        watermark_ms=head.watermark_ms,
        clock_ms=clock_ms,
        scope=request.scope,
        why={r.partition: why.get(r.partition) or reasons[r.partition] for r in ranges},
        mean_record_bytes=mean,
        code_version=code_version,
        nonce=nonce,
        left=sum(r.size for r in backlog) - sum(r.size for r in ranges),
        remarks=tuple(filter(None, (*_remarks(stream, topic), said_of_junk(stream, head.held, recent)))),
    ).sealed()


def _too_much(stream: Stream, kind: PlanKind, offsets: int, *, most: int, mean: float) -> Refused:
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


def _remarks(stream: Stream, topic: TopicView) -> tuple[str, ...]:
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


def _refuse_partitions(stream: Stream, request: PlanRequest, topic: TopicView) -> None:
    problem = stream.id_partitions and stream.id_partitions.problem(topic.partitions)
    if problem:
        raise Refused(f"stream {stream.name}, topic {topic.name}: {problem}; nothing was read", topic=topic.name)
    unknown = {*(request.only or ()), *request.until} - set(topic.partitions)
    if unknown:
        raise Refused(
            f"stream {stream.name}: partition {min(unknown)} was named; topic {topic.name} has {len(topic.partitions)} "
            "partitions, counted from 0",
            partition=min(unknown),
        )


def _ends(
    head: Head, ranges: Sequence[OffsetRange], ends: Mapping[int, PartitionEnds], topic: TopicView
) -> dict[int, Position]:
    """Where an ingest leaves the positions: all partitions, the new ones too."""
    after = {p: head.positions.get(p, Position(0)) for p in topic.partitions}
    for r in ranges:
        after[r.partition] = after[r.partition]._replace(next_offset=r.end, leader_epoch=ends[r.partition].leader_epoch)
    return after


def _seen_whole(
    after: Mapping[int, Position], request: PlanRequest, ends: Mapping[int, PartitionEnds]
) -> dict[int, Position]:
    """What was planned on was found to be the log that was read, where nothing new lies, too: so it is kept with the
    epoch of now, and not asked about again and again."""
    fresh = {p: at._replace(leader_epoch=ends[p].leader_epoch) for p, at in after.items() if request.wants(p)}
    return {**after, **fresh}


def _nothing(
    stream: Stream,
    request: PlanRequest,
    head: Head,
    ends: Mapping[int, PartitionEnds],
    tables: Tables,
    after: Mapping[int, Position],
    clock_ms: EpochMs,
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
    watermark = advance_watermark(
        after, previous_ms=head.watermark_ms, clock_ms=clock_ms, idle=milliseconds(stream.idle)
    )
    waiting = load_state(tables, topic_id=head.topic_id, look=HeldLook(open_since=open_since(head, stream))).held
    deadlines = open_deadlines(waiting, allowed_lateness=milliseconds(stream.allowed_lateness))
    if any(head.watermark_ms <= due < watermark for due in deadlines.values()):
        return None
    if request.only is not None or request.until:
        return NothingToDo(f"stream {stream.name}: nothing is left to read of what was named")
    return NothingToDo(f"stream {stream.name}: the head stands at the end of {stream.topic}")
