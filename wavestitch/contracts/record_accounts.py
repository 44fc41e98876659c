"""What the table has of each record of a verified range: every record that was read falls into exactly one class.

    a row has this very piece                            published
    it counts as held, here or as another copy           held
    the position is before it                            to be read
    a row names its place, and it is no chunk today      no chunk today, published then
    no known batch read it, an operator gave it up       skipped
    no batch that the history knows has read it          read by no known batch
    it is no chunk, and was held once                    no chunk, held no more (maintenance lets them go)
    nothing of this                                      neither published nor held

And the other way round: whether what is held from a place still lies there. A record is the one that is held where the
pieces agree; where it was no chunk then and is one today, or the other way round, place, record time and id say so.
Pure. Keeps I1 and I8.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.held import HeldChunk, PublishedWaveform
from wavestitch.contracts.offset_range import OffsetRange, joined, without
from wavestitch.contracts.quantities import Offset, Partition

Place = tuple[Partition, Offset]


class RecordIs(StrEnum):
    """What a record is to the table."""

    PUBLISHED = "published"
    HELD = "held"
    TO_BE_READ = "to be read"
    SKIPPED = "skipped"
    PUBLISHED_THEN = "no chunk today, published then"
    NOT_READ = "read by no known batch"
    HELD_NO_MORE = "no chunk, held no more"
    NOWHERE = "neither published nor held"


@dataclass(frozen=True, slots=True)
class TableHas:
    """What a snapshot has of some records: `published` by id, `held`: what counts, of their ids and at their places.
    `positions`: the next offset that an ingest reads."""

    topic_id: str
    published: Mapping[str, PublishedWaveform]
    held: Sequence[HeldChunk]
    positions: Mapping[Partition, Offset]


@dataclass(frozen=True, slots=True)
class Misplaced:
    """What is held from a place at which the log has something else, or nothing."""

    held: HeldChunk
    there: str

    @property
    def said(self) -> str:
        bytes_ = "has" if self.held.stored else "has not"
        return f"from {self.held.chunk.place} it is held, where the log has {self.there}; the table {bytes_} its bytes"


@dataclass(slots=True)
class Accounts:
    """Of the records of one batch, or of several. `left`: those that nothing was said of yet, by waveform (None: they
    are no chunks). `as_records`: by waveform that is one today, what its chunks are held
    as that were none. `misplaced`: see there."""

    counts: Counter[RecordIs] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)
    left: dict[str | None, list[OffsetRange]] = field(default_factory=lambda: defaultdict(list))
    as_records: dict[str, list[HeldChunk]] = field(default_factory=lambda: defaultdict(list))
    misplaced: list[Misplaced] = field(default_factory=list)

    def take(self, other: Accounts) -> None:
        self.counts += other.counts
        self.held += other.held
        self.misplaced += other.misplaced
        for name, ranges in other.left.items():
            self.left[name] = joined([*self.left[name], *ranges])
        for name, held in other.as_records.items():
            self.as_records[name] += held


def account(chunks: Iterable[ChunkFacts], read: Sequence[OffsetRange], table: TableHas) -> Accounts:
    """Of the records that a reading of these ranges has found, and of what is held from them."""
    made = Accounts()
    here, pieces = _held_here(table, read), _pieces(table.held)
    left: dict[str | None, list[OffsetRange]] = defaultdict(list)
    lies: dict[Place, ChunkFacts] = {}
    for c in chunks:
        place = (c.partition, c.offset)
        if place in here:
            lies[place] = c
        one = OffsetRange(c.partition, c.offset, Offset(c.offset + 1))
        mine = next((h for h in here.get(place, ()) if is_record_of(h, c)), None)
        if c.reason is None and _is_published(c, table):
            made.counts[RecordIs.PUBLISHED] += 1
        elif mine is not None or (c.reason is None and (c.waveform_id, *c.identity) in pieces):
            made.counts[RecordIs.HELD] += 1
            held = mine if mine is not None else pieces[c.waveform_id, *c.identity]
            made.held[held.reason.value] += 1
            if c.reason is None and c.waveform_id is not None and held.chunk.reason is not None:
                made.as_records[c.waveform_id].append(held)
        elif c.offset >= table.positions.get(c.partition, 0):
            made.counts[RecordIs.TO_BE_READ] += 1
        else:
            left[c.waveform_id if c.reason is None else None].append(one)
    made.left |= {name: joined(ranges) for name, ranges in left.items()}
    made.misplaced = list(_misplaced(here, lies))
    return made


def is_record_of(h: HeldChunk, c: ChunkFacts) -> bool:
    """Whether a record that lies at the place of a held one is that one. Of what is a chunk by one definition and none
    by another, the log may have been cut off and written anew within a millisecond: then it names another waveform."""
    if (h.chunk.reason is None) == (c.reason is None):
        return h.key[1] == c.key[1]
    named = {h.chunk.waveform_id, c.waveform_id} - {None}
    return h.chunk.timestamp_ms == c.timestamp_ms and len(named) < 2


@dataclass(frozen=True, slots=True)
class Settled:
    """`counts`: of all records. By waveform: what is nowhere, what no batch that is known has read and kept, and what
    of that an operator skipped."""

    counts: Counter[RecordIs]
    nowhere: dict[str, Sequence[OffsetRange]]
    not_read: dict[str, Sequence[OffsetRange]]
    skipped: dict[str, Sequence[OffsetRange]]


def settled(
    accounts: Accounts,
    *,
    named: Iterable[OffsetRange],
    known: Iterable[OffsetRange],
    skipped: Iterable[OffsetRange] = (),
) -> Settled:
    """What became of those that nothing was said of yet. `named`: places that rows name; `known`: what batches have
    read, and published or held all of, as the history has it; `skipped`: what an operator gave up. What is both was
    read: whoever goes over it once more gives up nothing."""
    named, known, skipped = joined(named), joined(known), joined(skipped)
    found = Settled(Counter(accounts.counts), {}, {}, {})
    for name, ranges in accounts.left.items():
        rest = ranges if name is not None else without(ranges, named)
        unread = without(rest, known)
        not_read = without(unread, skipped)
        mine = {
            RecordIs.NOWHERE if name is not None else RecordIs.HELD_NO_MORE: without(rest, unread),
            RecordIs.NOT_READ: not_read,
            RecordIs.SKIPPED: without(unread, not_read),
        }
        found.counts[RecordIs.PUBLISHED_THEN] += _size(ranges) - _size(rest)
        for what, some in mine.items():
            found.counts[what] += _size(some)
        if name is not None:
            by = (found.nowhere, found.not_read, found.skipped)
            for kept, some in zip(by, mine.values(), strict=True):
                kept.update({name: some} if some else {})
    return found


def _size(ranges: Iterable[OffsetRange]) -> int:
    return sum(r.size for r in ranges)


def _is_published(c: ChunkFacts, table: TableHas) -> bool:
    row = table.published.get(c.waveform_id or "")
    return row is not None and row.has(c)


def _held_here(table: TableHas, read: Sequence[OffsetRange]) -> dict[Place, list[HeldChunk]]:
    found: dict[Place, list[HeldChunk]] = defaultdict(list)
    ranges = joined(read)
    for h in table.held:
        c = h.chunk
        if c.topic_id == table.topic_id and any(
            r.partition == c.partition and r.start <= c.offset < r.end for r in ranges
        ):
            found[c.partition, c.offset].append(h)
    return dict(found)


def _pieces(held: Iterable[HeldChunk]) -> dict[tuple[str | None, int | None, bytes], HeldChunk]:
    return {(h.chunk.waveform_id, *h.chunk.identity): h for h in held if h.chunk.reason is None}


def _misplaced(here: Mapping[Place, Sequence[HeldChunk]], lies: Mapping[Place, ChunkFacts]) -> Iterable[Misplaced]:
    for place, held in here.items():
        there = lies.get(place)
        for h in held:
            if there is None or not is_record_of(h, there):
                yield Misplaced(h, "no record" if there is None else "another record")
