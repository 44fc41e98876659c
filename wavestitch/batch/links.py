"""The batches of a backfill: as many as the limits of a batch make of its interval, and of what lies across their cuts.

All stand on the same head, and none moves the positions (I7). What retention took is named with them, never left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wavestitch.batch.located import Located, locate, noted_starts, still_there
from wavestitch.batch.plan_request import Planning, PlanRequest
from wavestitch.batch.survey import Made, Survey, plan_of, size_of, survey, too_much
from wavestitch.batch.unseen_partition import refuse_not_shown
from wavestitch.batch.walk import Walk
from wavestitch.contracts.errors import Refused, Transient
from wavestitch.contracts.offset_range import OffsetRange, cut_links, joined, pack_groups, without
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.position import HeadKind
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.start_index import Known
from wavestitch.contracts.stream import Stream

MOST_LINKS = 1000
"""Batches of one backfill: Airflow maps over no more than 1024."""


@dataclass(frozen=True, slots=True)
class Links:
    """The plans of a backfill, one after another; several where the interval is above the limits of a batch. `lost`,
    `read_before`: see `Located`. `nothing`: why there is nothing to read, where there is nothing."""

    plans: tuple[Plan, ...]
    lost: tuple[OffsetRange, ...] = ()
    read_before: tuple[OffsetRange, ...] = ()
    remarks: tuple[str, ...] = ()
    nothing: str = ""


def plan_links(stream: Stream, request: PlanRequest, *, walk: Walk, by: Planning) -> Links:
    """The batches that a backfill takes: as many as the limits make of it."""
    return links_of(stream, request, survey(stream, request, walk=walk, clock_ms=by.clock_ms), by)


def links_of(stream: Stream, request: PlanRequest, here: Survey, by: Planning) -> Links:
    scope = request.scope
    assert scope is not None, "a backfill has an interval"
    known = noted_starts(here, scope)
    if request.together:
        _refuse_other_view(stream, request, here)
        groups, gone = still_there(request.together, here.ends)
        # What this very backfill read of it is held by nobody.
        held = [r for g in gone for r in known.get(g.partition, Known()).held_of([g])]
        cut_off = _cut_off([r for group in request.together for r in group], known)
        found = Located(
            joined(r for group in groups for r in group),
            tuple(joined([*without(gone, held), *cut_off])),
            tuple(held),
            dict.fromkeys(here.topic.partitions, "waveforms across the cuts of this backfill"),
        )
    else:
        found = locate(stream, scope, topic=here.topic, ends=here.ends, log=here.log, known=known)
    if found.lost:
        _refuse_older_head(stream, here)
    mean, most = size_of(stream, request.kind, here, found.ranges, by.stops)
    offsets = sum(r.size for r in found.ranges)
    if offsets > most * MOST_LINKS:
        raise too_much(stream, request.kind, offsets, most=most * MOST_LINKS, mean=mean)
    if request.together:
        parts = [_closed_up(part, most=most, gap=stream.reading.min_slice) for part in pack_groups(groups, most=most)]
    else:
        parts = cut_links(found.ranges, most=most)
    made = Made(request, mean, by)
    plans: list[Plan] = []
    for part in parts:
        before = (*request.after, *(plan.plan_id for plan in plans))
        plans.append(plan_of(stream, here, made, part, why=found.why, after=before))
    if not plans:
        _refuse_made_anew(stream, here)
    nothing = "" if plans else f"stream {stream.name}: the log has nothing that may start in the interval"
    return Links(tuple(plans), found.lost, found.read_before, tuple(stream.remarks()), nothing)


def _refuse_older_head(stream: Stream, here: Survey) -> None:
    """What the log has no more may have been read, and published, since the head was looked at."""
    head = here.tables.head()
    if head is None and here.head.kind is HeadKind.FIRST:
        return  # a preview commits none
    if head is None or head.version != here.head.version:
        raise Transient(
            f"stream {stream.name}: a batch was committed while it was looked up what the log has lost; plan again",
            for_guests=True,
        )


def _cut_off(read: Sequence[OffsetRange], known: Mapping[Partition, Known]) -> list[OffsetRange]:
    """Of these offsets, those of which an election has cut off what was read there, and nobody holds it."""
    off = (both for r in read for cut in known.get(r.partition, Known()).cut_off if (both := cut.cut(r)).size > 0)
    return list(off)


def _refuse_other_view(stream: Stream, request: PlanRequest, here: Survey) -> None:
    """Offsets of the topic that the backfill has read are other records on one in its place, which may have fewer
    partitions; and a broker may not have heard of all of them yet."""
    if here.topic.topic_id != request.topic_id:
        raise Refused(
            f"topic {here.topic.name} was deleted and made again: this backfill has read id {request.topic_id}, now it "
            f"is {here.topic.topic_id}. What it has published stays; waveforms that lay across its cuts are gone with "
            f"that topic. Run the backfill of stream {stream.name} again for what the new one has",
            topic=here.topic.name,
        )
    read = {r.partition for group in request.together for r in group}
    refuse_not_shown(stream.name, here.topic, read, "this backfill")


def _refuse_made_anew(stream: Stream, here: Survey) -> None:
    """Whoever reads finds that out. A topic that was made in its place since begins at 0: of it nothing is gone."""
    now = here.log.topic(here.topic.name)
    if now.topic_id != here.topic.topic_id:
        raise Refused(
            f"topic {now.name} was deleted and made again while stream {stream.name} looked for the interval: its id "
            f"was {here.topic.topic_id}, now it is {now.topic_id}; ask once more",
            topic=now.name,
        )


def _closed_up(part: list[OffsetRange], *, most: int, gap: int) -> list[OffsetRange]:
    """With what lies between near places, where the batch may be so large: fewer slices, fewer landing files."""
    near = joined(part, gap=gap)
    return near if sum(r.size for r in near) <= most else part
