"""Which offsets hold which start times, as batches have found them: what a backfill need not read again.

Kept with each batch in the history, in blocks; a cache, and no authority. What is not in it has to be read, and where
two batches say different things of an offset, the one that makes it read counts. A block with what was refused and may
be taken under another definition is always read again. So it costs reading to lose it, and never a waveform. Where the
log has the offsets no more, only what a batch that holds has read is published or held (I8), and nothing that the head
names as skipped: of that an operator has said that it may be gone. It may have been written anew, too: what was read
there before the skip says nothing. Nor does what was read beyond the place where the log was cut off since, which the
leader epoch tells in which it was written, or planned; nothing of it is lost where whoever read it there, as written in
that epoch, holds it, or has published all of that. Nor does what was read before a head under which somebody accepted
that the tables lack some of it count as published or held: nobody knows which. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from wavestitch.contracts.batch_row import BatchRow, describe_head, rows_behind
from wavestitch.contracts.offset_range import OffsetRange, joined, without
from wavestitch.contracts.plain_text import ACCEPTED_MISSING
from wavestitch.contracts.plan import PlanKind, Scope
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import LeaderEpoch, Offset, Partition
from wavestitch.contracts.start_blocks import StartBlock
from wavestitch.contracts.written import NO_EPOCH, epoch_at

Epoch = tuple[Partition, LeaderEpoch]
"""A partition, and a leader epoch of it."""
_KEEPING = frozenset(kind for kind in PlanKind if kind.keeps_all)


class Known(NamedTuple):
    """Of one partition: what batches have read, of that what may hold a waveform that starts in the interval, and of
    it all what was read by those that publish or hold whatever they read (`held`). `cut_off`: what may have held such
    a one, was cut off since, and was read by nobody who holds it. `elsewhere`: what holds none; behind the position
    of an epoch that was cut off less is believed of what can be read again. `left`: what may have held such a one, and
    was read by nobody who holds it, whatever else was read in its place."""

    read: tuple[OffsetRange, ...] = ()
    wanted: tuple[OffsetRange, ...] = ()
    held: tuple[OffsetRange, ...] = ()
    cut_off: tuple[OffsetRange, ...] = ()
    elsewhere: tuple[OffsetRange, ...] = ()
    left: tuple[OffsetRange, ...] = ()

    def unread(self, within: OffsetRange) -> list[OffsetRange]:
        """Of these offsets, those of which nothing is known."""
        return without([within], self.read)

    def found(self, within: OffsetRange) -> list[OffsetRange]:
        """Of these offsets, those that a batch has read and that may hold what is looked for."""
        return [cut for r in self.wanted if (cut := r.cut(within)).size > 0]

    def lost(self, gone: OffsetRange) -> list[OffsetRange]:
        """Of these offsets, that the log has no more, those that may hold what is looked for and that nobody holds."""
        left = [both for r in self.left if (both := r.cut(gone)).size > 0]
        return joined([*without([gone], [*self.held, *self.elsewhere]), *left])

    def held_of(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """Of these offsets, those that a batch that holds has read."""
        return joined(h.cut(r) for r in ranges for h in without(self.held, self.left))


class Piece(NamedTuple):
    """A block that a row notes, as far as it was written in one leader epoch (`written`, None where nobody said so).
    `epoch`: the newest in which it is known to have lain there, when it was planned or written; None where none is."""

    block: StartBlock
    epoch: Epoch | None
    written: Epoch | None


def noted_epochs(rows: Iterable[BatchRow], head: Head) -> dict[Epoch, Offset]:
    """How far the rows have noted what was read in a leader epoch, of the head's topic."""
    found: dict[Epoch, Offset] = {}
    for row in _behind(rows, head):
        for block, epoch, _ in (piece for name in row.starts for piece in _pieces(row, name)):
            if epoch is not None:
                found[epoch] = max(found.get(epoch, Offset(0)), block.end)
    return found


def known_starts(
    rows: Iterable[BatchRow],
    head: Head,
    scope: Scope,
    cuts: Mapping[Epoch, Offset] = MappingProxyType({}),
    anew: Mapping[Partition, Offset] = MappingProxyType({}),
) -> dict[Partition, Known]:
    """By partition, what the history knows of the head's topic. `cuts`: where the log was cut off since it was read in
    an epoch, at the latest; from there on it was written anew. `anew`: from where on the log below a position is
    another one; nothing that was noted behind there is believed, in whichever epoch.

    Beyond the head's positions only batches of its own generation are believed: after a log was cut off below, the
    stream is rewound, and other records may lie there now. Nor is there any of an epoch that was cut off: it may have
    gone on since, from an earlier place. What an epoch proves to be cut off is named all the same.
    """
    found: dict[Partition, _Noted] = defaultdict(_Noted)
    behind = _behind(rows, head)
    accepted = max((row.generation for row in behind if ACCEPTED_MISSING in row.note), default=0)
    for row in behind:
        present, holds = row.generation == head.generation, row.kind in _KEEPING and row.generation >= accepted
        saves = holds or (row.generation >= accepted and row.left_nothing)
        for name in row.starts:
            p = Partition(int(name))
            at = head.positions.get(p)
            stands = Offset(0) if at is None else at.next_offset
            for block, epoch, written in _pieces(row, name):
                cut = None if epoch is None else cuts.get(epoch)
                may_start = block.may_start_in(scope)
                there = OffsetRange(p, block.start, block.end)
                all_of_it = there if present else there._replace(end=min(block.end, stands))
                here = all_of_it._replace(end=min(all_of_it.end, anew.get(p, all_of_it.end)))
                here = here if cut is None else here._replace(end=min(here.end, cut))
                if here.size > 0:
                    # A skip opens a generation: what an older one read there may be another log.
                    known = [here] if present else without([here], head.skipped)
                    found[p].noted += known
                    found[p].may_start += [here] * may_start
                    found[p].held += [here] * holds
                    sure = here if cut is None else here._replace(end=min(here.end, stands))
                    found[p].read += [both for r in known if (both := r.cut(sure)).size > 0]
                    found[p].wanted += [sure] * (may_start and sure.size > 0)
                # Whatever its generation: the epoch proves it, and a rewind below the cut takes nothing of that back.
                found[p].trusted += [(there, epoch)] * (saves and written is None)
                mine = written or epoch
                if mine is None:
                    continue
                found[p].saved[mine] += [there] * saves
                if may_start:
                    off = there._replace(start=max(block.start, block.end if cut is None else cut))
                    to = found[p].off_planned if written is None else found[p].off
                    to[mine] += [off] * (off.size > 0)
                    found[p].left[mine] += [there] * (written is not None)
    known_of = {p: noted.known(head) for p, noted in found.items()}
    return {p: known for p, known in known_of.items() if any(known)}


@dataclass(slots=True)
class _Noted:
    """`noted`, `may_start`: as leader epochs and positions tell; `read`, `wanted`: what of it is believed where it can
    be read again. By the epoch in which it was written: `off`, what was cut off and may have held what is looked for;
    `left`, all that may. `off_planned`: as `off`, of rows that do not say that, by the epoch of their plan. By either:
    `saved`, what is held. `trusted`: what such rows hold, and the epoch of their plan."""

    noted: list[OffsetRange] = field(default_factory=list)
    may_start: list[OffsetRange] = field(default_factory=list)
    read: list[OffsetRange] = field(default_factory=list)
    wanted: list[OffsetRange] = field(default_factory=list)
    held: list[OffsetRange] = field(default_factory=list)
    off: dict[Epoch, list[OffsetRange]] = field(default_factory=lambda: defaultdict(list))
    left: dict[Epoch, list[OffsetRange]] = field(default_factory=lambda: defaultdict(list))
    saved: dict[Epoch, list[OffsetRange]] = field(default_factory=lambda: defaultdict(list))
    off_planned: dict[Epoch, list[OffsetRange]] = field(default_factory=lambda: defaultdict(list))
    trusted: list[tuple[OffsetRange, Epoch | None]] = field(default_factory=list)

    def known(self, head: Head) -> Known:
        # Within one epoch an offset is one record: whoever holds what was read there in another holds another one.
        off, left = (
            [r for epoch, ranges in found.items() for r in without(ranges, [*self.saved[epoch], *self._trusted(epoch)])]
            for found in (self.off, self.left)
        )
        off += [r for epoch, ranges in self.off_planned.items() for r in without(ranges, self.saved[epoch])]
        held = without(self.held, head.skipped)
        elsewhere = without(self.noted, self.may_start)
        found = (self.read, self.wanted, held, off, elsewhere, left)
        return Known(*(tuple(joined(ranges)) for ranges in found))

    def _trusted(self, written: Epoch) -> Iterator[OffsetRange]:
        """What was written in an epoch lay there when a batch of that epoch or a later one was planned."""
        return (there for there, planned in self.trusted if planned is None or planned >= written)


def _pieces(row: BatchRow, name: str) -> Iterator[Piece]:
    """What a row notes of a partition; its blocks are cut where another leader epoch begins."""
    p, planned = Partition(int(name)), row.epochs.get(name)
    runs = row.written_in(p)
    for block in (StartBlock(*b) for b in row.starts[name]):  # type: ignore[arg-type]
        edges = [block.start, *(run.start for run in runs if block.start < run.start < block.end), block.end]
        for start, end in pairwise(edges):
            written = epoch_at(runs, start)
            newest = max(written, NO_EPOCH if planned is None else planned)
            yield Piece(
                block._replace(start=start, end=end),
                None if newest == NO_EPOCH else (p, LeaderEpoch(newest)),
                None if written == NO_EPOCH else (p, written),
            )


def _behind(rows: Iterable[BatchRow], head: Head) -> list[BatchRow]:
    known = rows_behind(head.version, [describe_head(head, stream=""), *rows])
    return [row for row in known if row.topic_id == head.topic_id]
