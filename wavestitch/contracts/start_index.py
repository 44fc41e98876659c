"""Which offsets hold which start times, as batches have found them: what a backfill need not read again.

Kept with each batch in the history, in blocks; a cache, and no authority. What is not in it has to be read, and where
two batches say different things of an offset, the one that makes it read counts. A block with what was refused and may
be taken under another definition is always read again. So it costs reading to lose it, and never a waveform. Where
the log has the offsets no more, only what a batch that holds has read is published or held (I8), and nothing that the
head names as skipped: of that an operator has said that it may be gone. It may have been written anew, too: what was
read there before the skip says nothing. Nor does what was read before a head under which somebody accepted that the
tables lack some of it count as published or held: nobody knows which. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from wavestitch.contracts.batch_row import ACCEPTED_MISSING, BatchRow, describe_head, rows_behind
from wavestitch.contracts.offset_range import OffsetRange, joined, without
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.start_blocks import StartBlock

_HOLDING = frozenset(kind for kind in PlanKind if kind.holds)


class Known(NamedTuple):
    """Of one partition: what batches have read, of that what may hold a waveform that starts in the interval, and of
    it all what was read by those that publish or hold whatever they read (`held`)."""

    read: tuple[OffsetRange, ...] = ()
    wanted: tuple[OffsetRange, ...] = ()
    held: tuple[OffsetRange, ...] = ()

    def unread(self, within: OffsetRange) -> list[OffsetRange]:
        """Of these offsets, those of which nothing is known."""
        return without([within], self.read)

    def found(self, within: OffsetRange) -> list[OffsetRange]:
        """Of these offsets, those that a batch has read and that may hold what is looked for."""
        return [cut for r in self.wanted if (cut := r.cut(within)).size > 0]

    def lost(self, gone: OffsetRange) -> list[OffsetRange]:
        """Of these offsets, that the log has no more, those that may hold what is looked for and that nobody holds."""
        return without([gone], [*self.held, *without(self.read, self.wanted)])

    def held_of(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """Of these offsets, those that a batch that holds has read."""
        return joined(cut for r in ranges for h in self.held if (cut := h.cut(r)).size > 0)


def known_starts(rows: Iterable[BatchRow], head: Head, scope: Scope) -> dict[Partition, Known]:
    """By partition, what the history knows of the head's topic.

    Beyond the head's positions only batches of its own generation count: after a log was cut off below, the stream is
    rewound, and other records may lie there now.
    """
    read: dict[Partition, list[OffsetRange]] = {}
    wanted: dict[Partition, list[OffsetRange]] = {}
    held: dict[Partition, list[OffsetRange]] = {}
    behind = rows_behind(head, [describe_head(head, stream=""), *rows])
    accepted = max((row.generation for row in behind if ACCEPTED_MISSING in row.note), default=0)
    for row in behind:
        if row.topic_id != head.topic_id:
            continue
        for name, blocks in row.starts.items():
            p = Partition(int(name))
            at = head.positions.get(p)
            stands = 0 if at is None else at.next_offset
            for block in (StartBlock(*b) for b in blocks):  # type: ignore[arg-type]
                end = block.end if row.generation == head.generation else min(block.end, stands)
                if block.start < end:
                    here = OffsetRange(p, block.start, Offset(end))
                    # A skip opens a generation: what an older one read there may be another log.
                    known = [here] if row.generation == head.generation else without([here], head.skipped)
                    read.setdefault(p, []).extend(known)
                    if block.may_start_in(scope):
                        wanted.setdefault(p, []).append(here)
                    if row.kind in _HOLDING and row.generation >= accepted:
                        held.setdefault(p, []).append(here)
    held = {p: without(ranges, head.skipped) for p, ranges in held.items()}
    return {p: Known(*(tuple(joined(found.get(p, ()))) for found in (read, wanted, held))) for p in read}
