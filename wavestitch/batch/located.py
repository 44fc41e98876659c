"""Where the waveforms of an interval lie: which offsets a backfill has to read, and which of those retention has taken.

`start`: all of the log from `max_clock_skew` before the interval on, less what earlier batches have read and found to
start elsewhere. `record_time`: what the log has of the interval's own time, `search_margin` earlier and later. Asks the
log for times; touches nothing. What may be lost is named, never passed over (I8).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from wavestitch.batch.cut_log import find_cuts, find_cuts_since
from wavestitch.batch.survey import Survey
from wavestitch.contracts.offset_range import OffsetRange, joined
from wavestitch.contracts.plan import Scope
from wavestitch.contracts.ports import Log, PartitionEnds, TopicView
from wavestitch.contracts.quantities import (
    BEGINNING,
    EpochMs,
    Milliseconds,
    Offset,
    Partition,
    after,
    before,
    epoch_ms,
    milliseconds,
)
from wavestitch.contracts.start_index import Known, known_starts, noted_epochs
from wavestitch.contracts.stream import Stream


class Located(NamedTuple):
    """`ranges`: what is to be read, in order. `lost`: what the log has no more (retention, or a cut), no batch that
    holds has read, and may have held waveforms of the interval. `read_before`: what the log has no more, and such a
    batch has read: published or held. `why`: per partition."""

    ranges: list[OffsetRange]
    lost: tuple[OffsetRange, ...]
    read_before: tuple[OffsetRange, ...]
    why: dict[Partition, str]


def locate(
    stream: Stream,
    scope: Scope,
    *,
    topic: TopicView,
    ends: Mapping[Partition, PartitionEnds],
    log: Log,
    known: Mapping[Partition, Known],
) -> Located:
    """`known`: see `noted_starts`."""
    windows, why = _windows(stream, scope, topic, ends, log)
    # After the times: what retention took since `ends` were asked for looks older than the interval by what is left.
    begins = {p: at.log_start for p, at in log.ends(topic.name, topic.partitions).items()}
    ranges: list[OffsetRange] = []
    lost: list[OffsetRange] = []
    before_it: list[OffsetRange] = []
    for window in windows:
        index = known.get(window.partition, Known())
        log_start = begins[window.partition]
        # Less than that between two places is read, too: another slice costs more.
        ranges += joined([*index.unread(window), *index.found(window)], gap=stream.reading.min_slice)
        gone = OffsetRange(window.partition, Offset(0), log_start)
        before_it += index.held_of(index.found(gone))
        if window.start <= log_start or not _tells_of_before(stream, topic):
            # What lay before it is as old as the interval, or nobody knows how old.
            lost += index.lost(gone)
        lost += index.cut_off
    return Located(ranges, tuple(lost), tuple(before_it), why)


def _tells_of_before(stream: Stream, topic: TopicView) -> bool:
    """Whether the time of a record says that all before it is older: where the broker says when. A producer says what
    it likes, in whatever order; a search by record time goes by that, and says so."""
    return topic.append_time or stream.backfill_by == "record_time"


def noted_starts(here: Survey, scope: Scope) -> dict[Partition, Known]:
    """What the history knows of the interval, as far as the log still is the one that was read."""
    rows = here.tables.batches()
    noted = noted_epochs(rows, here.head)
    stands = {p: at for p, at in here.head.positions.items() if p in here.ends}
    anew = find_cuts(here.topic.name, stands, here.ends, here.log, here.earlier)
    cuts = find_cuts_since(here.topic.name, noted, here.ends, here.log)
    for (p, epoch), end in noted.items():
        # In an epoch of then or before; its number may be that of another one today.
        if p in anew and epoch <= (stands[p].leader_epoch or 0) and end > anew[p]:
            cuts[p, epoch] = min(anew[p], cuts.get((p, epoch), end))
        # Where retention has passed all of it, no leader says any more whether it was cut off, and no position is whole
        # behind it.
        stood = stands[p].next_offset if p in stands else Offset(0)
        if p in here.ends and stood < end <= here.ends[p].log_start and epoch != here.ends[p].leader_epoch:
            cuts[p, epoch] = min(stood, cuts.get((p, epoch), end))
    return known_starts(rows, here.head, scope, cuts, anew)


def _windows(
    stream: Stream, scope: Scope, topic: TopicView, ends: Mapping[Partition, PartitionEnds], log: Log
) -> tuple[list[OffsetRange], dict[Partition, str]]:
    by_start = stream.backfill_by == "start"
    margin = milliseconds(stream.limits.max_clock_skew if by_start else stream.search_margin)
    starts = log.offsets_at(topic.name, dict.fromkeys(topic.partitions, _from(scope, margin)))
    if by_start:
        stops = {p: here.stable_end for p, here in ends.items()}
        said = "what may start in the interval, by the record time and by what batches have read"
    else:
        stops = log.offsets_at(topic.name, dict.fromkeys(topic.partitions, _until(scope, margin)))
        said = f"record time of the interval, {stream.search_margin} s earlier and later"
    windows = []
    for p in topic.partitions:
        start = max(starts[p], ends[p].log_start)
        windows.append(OffsetRange(p, start, max(start, min(stops[p], ends[p].stable_end))))
    return windows, dict.fromkeys(topic.partitions, said)


def _from(scope: Scope, margin: Milliseconds) -> EpochMs:
    return max(before(epoch_ms(scope.start_ns), margin), BEGINNING)


def _until(scope: Scope, margin: Milliseconds) -> EpochMs:
    return max(after(epoch_ms(scope.end_ns - 1), Milliseconds(margin + 1)), BEGINNING)


def still_there(
    groups: tuple[tuple[OffsetRange, ...], ...], ends: Mapping[Partition, PartitionEnds]
) -> tuple[list[list[OffsetRange]], list[OffsetRange]]:
    """Of the offsets of each group what the log still has, and all that it has no more."""
    there, gone = [], []
    for group in groups:
        log = {
            r.partition: OffsetRange(r.partition, ends[r.partition].log_start, ends[r.partition].stable_end)
            for r in group
        }
        kept = [cut for r in group if (cut := r.cut(log[r.partition])).size > 0]
        gone += [r._replace(end=min(r.end, s)) for r in group if r.start < (s := log[r.partition].start)]
        if kept:
            there.append(kept)
    return there, joined(gone)
