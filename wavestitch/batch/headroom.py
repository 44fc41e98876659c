"""How long a stream's unread records stay: asks the log for times and sizes, and the history how long reading takes.

Looks from where the next ingest would begin, as planning does: so a reset counts, and another log than the one that was
read, or a catalog that lacks what the group shows, is an error and no figure.
Unread is all up to the high watermark: what waits behind an open transaction, too, since retention takes that, too.
Needs no right to read records: when the first unread one was written is found by asking which offset belongs to a time,
as retention reckons. With it, brokers that lost count of leader epochs are no loss, and freshness knows the time of the
first unread record itself, which one in front of it with a later time hides otherwise.
Decides nothing; `contracts.headroom` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wavestitch.batch.backlog import refuse_cut_back
from wavestitch.batch.cut_log import find_cuts, refuse_cut_log
from wavestitch.batch.plan_request import PlanRequest
from wavestitch.batch.record_ages import ages_of
from wavestitch.batch.survey import Survey, survey
from wavestitch.batch.walk import Walk
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.batch_size import batch_offsets
from wavestitch.contracts.freshness import Freshness, judge_freshness, read_before
from wavestitch.contracts.headroom import Retention, Room, Thresholds, Unread, judge_room
from wavestitch.contracts.headroom_told import Told
from wavestitch.contracts.past_cost import reading_seconds
from wavestitch.contracts.ports import Log, PartitionEnds, Tables, TopicView
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import BEGINNING, EpochMs, Milliseconds, Offset, Partition, before, elapsed
from wavestitch.contracts.stream import Stream

_WINDOWS_MS = (60_000, 600_000)
NOTHING_TOLD = Told()


def measure_room(
    stream: Stream,
    *,
    log: Log,
    tables: Tables,
    past: Sequence[BatchRow],
    now: EpochMs,
    thresholds: Thresholds,
    told: Told = NOTHING_TOLD,
) -> Room | None:
    """`told`: what was last told. None where the stream has not begun; where it declares a freshness, that alone is
    seen. Raises what the next plan would be refused with, but for what retention took: that is what is asked for.
    `Transient` where the log does not answer."""
    here = survey(stream, PlanRequest(), walk=Walk(stream, log, tables, apply=False), clock_ms=now)
    topic, head, ends = here.topic, here.head, here.ends
    if tables.head() is None:
        unread = _unread({p: at.next_offset for p, at in head.positions.items()}, ends)
        fresh = _freshness(stream, here, tables, past, unread, now=now, told=told.late)
        return None if fresh is None else Room((), topic=topic.name, freshness=fresh)
    # What lies in the log costs more than a look may: it is asked only where leader epochs look as if it were another
    # one, and who may not read it goes by those. The next plan compares in any case.
    bare = {p: at._replace(last_batch=None) for p, at in head.positions.items() if p in ends}
    odd = {p: head.positions[p] for p in find_cuts(stream.topic, bare, ends, log)}
    refuse_cut_log(stream, odd, ends, log, here.earlier)
    refuse_cut_back(stream, {p: at.next_offset for p, at in head.positions.items() if p in ends}, ends)
    # A partition that was added since is read from 0, as the plan has it: what retention took of it is lost.
    at = {p: head.positions[p].next_offset if p in head.positions else Offset(0) for p in topic.partitions}
    unread = _unread(at, ends)
    ages = ages_of(log, topic.name, unread, now=now)
    rates = _rates(log, topic, {p: ends[p] for p in unread}, now=now)
    seen = [
        Unread(p, at[p], ends[p].log_start, ends[p].high_watermark, ages.get(p), rates.get(p, 0.0))
        for p in sorted(topic.partitions)
    ]
    room = judge_room(
        seen,
        retention=Retention(_ms(topic.retention_ms), topic.retention_bytes),
        mean_bytes=head.mean_record_bytes,
        reading_s=_reading(stream, head, past, sum(u.end - unread[u.partition] for u in seen if u.partition in unread)),
        thresholds=thresholds,
        before={p: of.alarm for p, of in told.partitions.items()},
    )
    fresh = _freshness(stream, here, tables, past, unread, now=now, told=told.late)
    return replace(room, open=tuple(here.held_up), topic=topic.name, freshness=fresh)


def _freshness(
    stream: Stream,
    here: Survey,
    tables: Tables,
    past: Sequence[BatchRow],
    unread: Mapping[Partition, Offset],
    *,
    now: EpochMs,
    told: bool,
) -> Freshness | None:
    """None where the stream declares none. `unread`: the first unread offsets."""
    if stream.freshness is None:
        return None
    known, topic = read_before(tables.heads(), here.topic.topic_id), here.topic
    first = _unread({p: max(start, known.get(p, start)) for p, start in unread.items()}, here.ends)
    times = here.log.times_at(topic.name, first)
    hidden = {p: first[p] for p, at in times.items() if at is None}
    ages = {p: elapsed(since=at, until=now) for p, at in times.items() if at is not None and at >= BEGINNING}
    return judge_freshness(
        stream.freshness,
        [(r.committed_ms, r.waits) for r in past if r.waits is not None],
        {**ages, **ages_of(here.log, topic.name, hidden, now=now)},
        hidden=hidden.keys(),
        now=now,
        told=told,
        by_broker=topic.append_time,
        at_gate=next((b.plan_id for b in here.head.at_gate if b.moves), ""),
    )


def _unread(at: Mapping[Partition, Offset], ends: Mapping[Partition, PartitionEnds]) -> dict[Partition, Offset]:
    """The first offset from there on that the log has; none where nothing is unread."""
    first = {p: max(start, ends[p].log_start) for p, start in at.items()}
    return {p: start for p, start in first.items() if start < ends[p].high_watermark}


def _rates(
    log: Log, topic: TopicView, ends: Mapping[Partition, PartitionEnds], *, now: EpochMs
) -> dict[Partition, float]:
    """Offsets a second, written lately; asked only where it is needed to say how long bytes last."""
    if topic.retention_bytes is None or not ends:
        return {}
    rates = dict.fromkeys(ends, 0.0)
    for window in _WINDOWS_MS:
        since = dict.fromkeys(ends, before(now, Milliseconds(window)))
        found = log.offsets_at(topic.name, since, committed=False)
        rates = {p: max(rate, (ends[p].high_watermark - found[p]) * 1000 / window) for p, rate in rates.items()}
    return rates


def _reading(stream: Stream, head: Head, past: Sequence[BatchRow], backlog: int) -> float | None:
    mean = head.mean_record_bytes
    if not backlog or mean is None:
        return None
    most = batch_offsets(stream.limits, mean=mean, stops=())
    return reading_seconds(past, batches=-(-backlog // most), size=round(backlog * mean))


def _ms(length: int | None) -> Milliseconds | None:
    return None if length is None else Milliseconds(length)
