"""Step 1: pin the inputs of a batch. Decides where it starts and ends, and says why; refuses what would lose data.

Changes nothing by itself: what is to be done about the head and the group's offsets first are stages of the walk,
which a preview only notes. Keeps I1, I5 and I8. A refusal always names its way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wavestitch.batch.backlog import find_backlog
from wavestitch.batch.held_waveforms import HeldWaveform, open_waveforms
from wavestitch.batch.links import Links, links_of, plan_links
from wavestitch.batch.plan_request import Planning, PlanRequest
from wavestitch.batch.survey import Made, left_at, plan_of, size_of, survey, too_much
from wavestitch.batch.walk import Walk
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.held import open_deadlines
from wavestitch.contracts.offset_range import bound_ranges
from wavestitch.contracts.open_transaction import WAY_OUT
from wavestitch.contracts.plan import Plan, PlanKind
from wavestitch.contracts.ports import PartitionEnds, Tables
from wavestitch.contracts.position import Head, Position, advance_watermark
from wavestitch.contracts.quantities import EpochMs, Partition, milliseconds
from wavestitch.contracts.stages import Told
from wavestitch.contracts.stream import Stream

__all__ = ["Links", "NothingToDo", "PlanRequest", "Planning", "plan_batch", "plan_links"]


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """There is nothing to read and nothing that would expire: no batch, no snapshot, no Spark. `stages`: what planning
    found to do nevertheless (a reset to take over, a projection to make again)."""

    why: str
    stages: tuple[Told, ...] = ()


def plan_batch(stream: Stream, request: PlanRequest, *, walk: Walk, by: Planning) -> Plan | NothingToDo:
    """The plan of the next batch. Raises `Refused` for a backfill that needs more than one."""
    here = survey(stream, request, walk=walk, clock_ms=by.clock_ms)
    if request.scope is not None:
        links = links_of(stream, request, here, by)
        if len(links.plans) > 1:
            offsets = sum(plan.records for plan in links.plans)
            first = links.plans[0]
            raise too_much(stream, request.kind, offsets, most=first.records, mean=first.mean_record_bytes)
        return links.plans[0] if links.plans else NothingToDo(links.nothing)
    backlog, reasons = find_backlog(stream, here.head, request, here.topic, here.ends, here.log, here.earlier)
    mean, most = size_of(stream, request.kind, here, backlog, by.stops)
    if request.kind is not PlanKind.INGEST and sum(r.size for r in backlog) > most:
        raise too_much(stream, request.kind, sum(r.size for r in backlog), most=most, mean=mean)
    ranges = bound_ranges(backlog, max_records=most)
    if not ranges:
        after = left_at(here, request, ranges)
        nothing = _nothing(stream, request, here.head, here.ends, walk.tables, after, by.clock_ms)
        if nothing is not None:
            return nothing
    why = {r.partition: here.why.get(r.partition) or reasons[r.partition] for r in ranges}
    left = sum(r.size for r in backlog) - sum(r.size for r in ranges)
    kind = Made(request, mean, by)
    return plan_of(stream, here, kind, ranges, why=why, left=left)


def _nothing(
    stream: Stream,
    request: PlanRequest,
    head: Head,
    ends: Mapping[Partition, PartitionEnds],
    tables: Tables,
    after: Mapping[Partition, Position],
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
            f"{e.stable_end}, high watermark {e.high_watermark}); {WAY_OUT}",
            partition=p,
        )
    head = head.as_of(clock_ms)
    watermark = advance_watermark(
        after, previous_ms=head.watermark_ms, clock_ms=clock_ms, idle=milliseconds(stream.idle)
    )
    lateness = milliseconds(stream.allowed_lateness)
    # Where nothing is held there is no table of it yet, when a first plan is only looked at.
    for one in open_waveforms(tables, stream, head) if head.held is not None else ():
        waits = open_deadlines(one.held, allowed_lateness=lateness) if isinstance(one, HeldWaveform) else {}
        if any(head.watermark_ms <= due < watermark for due in waits.values()):
            return None
    if request.only is not None or request.until:
        return NothingToDo(f"stream {stream.name}: nothing is left to read of what was named")
    return NothingToDo(f"stream {stream.name}: the head stands at the end of {stream.topic}")
