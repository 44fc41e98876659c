"""What an ingest or a batch of named offsets could read, and why it starts there; refused where that would lose data.

Touches nothing. A refusal names its way out, and no partition that is not concerned. Keeps I1 and I8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wavestitch.batch.cut_log import Earlier, refuse_cut_log
from wavestitch.batch.plan_request import PlanRequest
from wavestitch.contracts.accepted_skip import accepting
from wavestitch.contracts.errors import DataLost, Refused
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.ports import Log, PartitionEnds, TopicView
from wavestitch.contracts.position import Head
from wavestitch.contracts.protocol import named
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.stream import Stream


def refuse_overtaken(
    stream: Stream, starts: Mapping[Partition, Offset], ends: Mapping[Partition, PartitionEnds], *, apart: bool = True
) -> None:
    """Raises `DataLost` where the log begins behind a start. `apart`: the other partitions can be read before."""
    gone = {p: at for p, at in sorted(starts.items()) if at < ends[p].log_start}
    if not gone:
        return
    p, position = min(gone.items())
    lost = [OffsetRange(p, at, ends[p].log_start) for p, at in gone.items()]
    only = ",".join(str(p) for p in sorted(ends) if p not in gone and apart)
    before = f", and `wavestitch run {stream.name} --partitions {only}` reads them before that" if only else ""
    raise DataLost(
        f"retention has overtaken stream {stream.name}: partition {p} of {stream.topic} begins at {ends[p].log_start}, "
        f"the position is {position}; gone are {', '.join(map(str, lost))}. Accept that loss by name with `wavestitch "
        f"rewind {stream.name} --to {named(gone, 'earliest', everything=ends)}{accepting(lost)} --apply`; the other "
        f"partitions stay where they are{before}",
        partition=p,
        position=position,
        log_start=ends[p].log_start,
    )


def find_backlog(
    stream: Stream,
    head: Head,
    request: PlanRequest,
    topic: TopicView,
    ends: Mapping[Partition, PartitionEnds],
    log: Log,
    earlier: Earlier = tuple,
) -> tuple[list[OffsetRange], dict[Partition, str]]:
    """All that could be read, per partition, and why it starts there."""
    if request.ranges:
        return _named(stream, request.ranges, ends)
    starts: dict[Partition, Offset] = {}
    why = {}
    for p in filter(request.wants, topic.partitions):
        known = head.positions.get(p)
        starts[p] = known.next_offset if known else Offset(0)
        why[p] = f"the head's position ({starts[p]})" if known else "a new partition starts at 0"
    refuse_overtaken(stream, starts, ends)
    refuse_cut_log(stream, {p: head.positions[p] for p in starts if p in head.positions}, ends, log, earlier)
    refuse_cut_back(stream, starts, ends)
    reach = {p: _end(stream, request, partition=p, start=start, here=ends[p]) for p, start in starts.items()}
    return [OffsetRange(p, start, reach[p]) for p, start in starts.items()], why


def _end(stream: Stream, request: PlanRequest, *, partition: Partition, start: Offset, here: PartitionEnds) -> Offset:
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


def refuse_cut_back(
    stream: Stream, starts: Mapping[Partition, Offset], ends: Mapping[Partition, PartitionEnds]
) -> None:
    """Raises `Refused` where the log ends before a position, whatever epochs say."""
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
    stream: Stream, wanted: Sequence[OffsetRange], ends: Mapping[Partition, PartitionEnds]
) -> tuple[list[OffsetRange], dict[Partition, str]]:
    for r in wanted:
        here = ends.get(r.partition)
        if here is None or not here.log_start <= r.start <= r.end <= here.stable_end:
            has = f"[{here.log_start}, {here.stable_end})" if here else "no such partition"
            raise Refused(
                f"stream {stream.name}: {r} was asked for; the log of {stream.topic} has {has}. Nothing was read; "
                "ask for offsets that it has"
            )
    if len({r.partition for r in wanted}) < len(wanted):
        raise Refused(f"stream {stream.name}: a partition was named twice; name one range a partition")
    return list(wanted), {r.partition: "named by the operator" for r in wanted}
