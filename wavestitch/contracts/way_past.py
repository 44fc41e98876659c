"""The way past offsets that cannot be read, for whoever planned them: each kind of batch has another one.

An ingest stands before a bad place for ever, so its positions are led past it, by name. A backfill and a batch of named
offsets leave the positions where they are: a rewind would move the stream and help them nothing; they read the rest.
Pure: sentences, and every command in them is one that can be given.
"""

from __future__ import annotations

from collections.abc import Sequence

from wavestitch.contracts.accepted_skip import accepting
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.plan import PlanKind
from wavestitch.contracts.quantities import Offset

Interval = tuple[Offset, Offset]
"""Offsets `[start, end)`."""

_NAMED = 100


def past_bad_place(
    kind: PlanKind, stream: str, slice_: OffsetRange, bad: Sequence[Interval], begins: Offset | None = None
) -> str:
    """Past offsets within the slice that no reading will ever deliver. `begins`: where the batch does in the partition,
    of which the slice may be a later part: there is nothing before the first of them where it is that very offset."""
    p, (first, end) = slice_.partition, bad[0]
    if kind is PlanKind.PROMOTE:
        return _preview_again(stream)
    if kind is not PlanKind.INGEST:
        return _around(stream, slice_, bad)
    before = (
        "Go"
        if first == begins
        else f"Take in what is good before them with `wavestitch run {stream} --partitions {p} --until {p}:{first}`, "
        "then go"
    )
    return (
        f"{before} on behind them with `wavestitch rewind {stream} --to {p}:{end}"
        f"{accepting([OffsetRange(p, first, end)])} --apply`, which names the loss"
        f"{'; the others follow in the same way' if len(bad) > 1 else ''}"
    )


def past_retention(
    kind: PlanKind, stream: str, slice_: OffsetRange, log_start: Offset, begins: Offset | None = None
) -> str:
    """Past the beginning of a slice that retention has taken. `begins`: where the batch does in the partition."""
    p = slice_.partition
    if kind is PlanKind.PROMOTE:
        return _preview_again(stream)
    if kind is not PlanKind.INGEST:
        return _around(stream, slice_, [(slice_.start, min(log_start, slice_.end))])
    gone = OffsetRange(p, slice_.start if begins is None else begins, log_start)
    return (
        "Lengthen the topic's retention or run batches more often, and go on where the log begins with `wavestitch "
        f"rewind {stream} --to {p}:{log_start}{accepting([gone])} --apply`, which names the loss"
    )


def past_cut_end(kind: PlanKind, stream: str, slice_: OffsetRange, end: Offset) -> str:
    """The log ends before the slice does. What is written there from now on takes the same offsets, and is read."""
    p = slice_.partition
    if kind is PlanKind.PROMOTE:
        return _preview_again(stream)
    if kind is PlanKind.MANUAL:
        return _around(stream, slice_, [(max(end, slice_.start), slice_.end)])
    if kind is PlanKind.BACKFILL:
        return "A rewind does not help where the positions stay: run the backfill again, which covers what is there now"
    return (
        f"Then plan again with `wavestitch run {stream}`, which goes to the end that the log has now; where partition "
        f"{p} stands beyond it, that plan names the rewind"
    )


def past_exchanged_log(kind: PlanKind, stream: str, slice_: OffsetRange) -> str:
    """The log was cut back behind what was read, and written anew: the same offsets, other records."""
    if kind is PlanKind.INGEST:
        return (
            "What was published stays. Read what is there now from before the cut on, with `wavestitch rewind "
            f"{stream} --to {slice_.partition}:earliest --apply` or to a time before it; what is published is "
            "recognised"
        )
    return "A rewind does not help where the positions stay: plan again, and what is there now is read"


def past_new_topic(kind: PlanKind, stream: str) -> str:
    """The topic was made anew: whatever the plan was, the stream has to be led to the new one first."""
    then = {
        PlanKind.MANUAL: "then name offsets of the new topic: those that were planned mean other records there",
        PlanKind.BACKFILL: "then run the backfill again",
    }.get(kind, "then plan again")
    return f"Lead the stream to it with `wavestitch rewind {stream} --to new-topic --apply`, {then}"


def past_unknown_place(kind: PlanKind, stream: str) -> str:
    """Past a record that ends its reader, somewhere in what was planned."""
    if kind is PlanKind.INGEST:
        return (
            f"read up to the record with `wavestitch run {stream} --partitions PARTITION --until PARTITION:OFFSET`, "
            f"and go on behind it with `wavestitch rewind {stream} --to PARTITION:OFFSET --accept-skip "
            "PARTITION:START-OFFSET --apply`, which names the loss"
        )
    return f"read what is around the record with `wavestitch run {stream} --offsets PARTITION:START-END`"


def _preview_again(stream: str) -> str:
    return (
        "What was shown cannot be done any more, and nothing was changed: have shown what is left of it, with "
        f"`wavestitch promote {stream}` and the same range"
    )


def _around(stream: str, slice_: OffsetRange, bad: Sequence[Interval]) -> str:
    good, at = [], slice_.start
    for a, b in [*bad, (slice_.end, slice_.end)]:
        good += [f"`wavestitch run {stream} --offsets {slice_.partition}:{at}-{a}`"] if a > at else []
        at = b
    rest = f"read the rest of it by {', '.join(good[:_NAMED])}" if good else "nothing of it is left to read"
    return f"A rewind does not help where the positions stay: {rest}"
