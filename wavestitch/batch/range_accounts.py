"""The accounts of a verified range: what the table has of each record, and what of it is held from places where the log
has something else, or nothing any more. Keeps them batch by batch; decides nothing (`contracts/record_accounts.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from wavestitch.batch.publishes_nothing import ComparingEdges
from wavestitch.batch.read_and_kept import read_and_kept
from wavestitch.contracts.chunk_table import ChunkTable
from wavestitch.contracts.held import (
    HeldChunk,
    HeldKey,
    HeldLook,
    effective_held,
    held_states,
    pieces_without_bytes,
)
from wavestitch.contracts.offset_range import OffsetRange, joined, without
from wavestitch.contracts.quantities import Offset, milliseconds
from wavestitch.contracts.read_places import RangePlaces
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.record_accounts import Accounts, Misplaced, RecordIs, TableHas, account, settled
from wavestitch.contracts.row_face import RowPiece
from wavestitch.contracts.verification import HeldNow, NotThere


@dataclass(frozen=True, slots=True)
class Accounted:
    """`records`: how many are what, each class is there; `held`: those that are held, by reason. By waveform:
    `nowhere`, `not_read`, `skipped`: where records of it lie that the table has not; `as_records`: what its chunks are
    held as that were none then; `gone`: what is held from offsets that the log has no more. `misplaced`: what is held
    from places where something else lies."""

    records: Mapping[str, int]
    held: Mapping[str, int]
    nowhere: Mapping[str, Sequence[OffsetRange]]
    not_read: Mapping[str, Sequence[OffsetRange]]
    skipped: Mapping[str, Sequence[OffsetRange]]
    as_records: Mapping[str, Sequence[HeldChunk]]
    gone: Sequence[HeldChunk]
    misplaced: Sequence[Misplaced]

    def not_there(self, waveform_id: str) -> NotThere:
        some = (tuple(by.get(waveform_id, ())) for by in (self.nowhere, self.not_read, self.skipped))
        return NotThere(*some)


@dataclass(slots=True)
class RangeAccounts:
    """`holes`: offsets that were proven to hold no record. `counted`: chunks that are held of the waveforms that
    `held_of` was asked for, as a head counts them."""

    edges: ComparingEdges
    topic_id: str
    accounts: Accounts = field(default_factory=Accounts)
    holes: int = 0
    counted: Counter[str] = field(default_factory=Counter)

    def note(self, chunks: ChunkTable, read: Sequence[OffsetRange], *, holes: int) -> None:
        """A batch that has read these ranges, all of them for the first time."""
        ids = {chunks.ids[n].as_py() for n in np.unique(chunks.waveform[chunks.valid]).tolist()}
        self.accounts.take(account(chunks, read, self._table(ids, read)))
        self.holes += holes

    def close(
        self,
        *,
        asked: Sequence[OffsetRange],
        read: Sequence[OffsetRange],
        lost: Sequence[OffsetRange],
        claims: Mapping[str, Sequence[RowPiece]],
    ) -> Accounted:
        """When all is read. `read`: what of it the log has delivered, `lost`: what retention took. `claims`: the rows
        of the range, and their places."""
        away = without(asked, read)
        found = account((), away, self._table((), away)) if away else Accounts()
        gone = [m.held for m in found.misplaced if _is_in(m.held, lost)]
        self.accounts.misplaced += [m for m in found.misplaced if not _is_in(m.held, lost)]
        left = [r for ranges in self.accounts.left.values() for r in ranges]
        known = read_and_kept(self.edges, self.topic_id, left) if left else ()
        skipped = self.edges.snapshot.head.skipped
        done = settled(self.accounts, named=self._named(claims, read), known=known, skipped=skipped)
        return Accounted(
            {kind.value: done.counts[kind] for kind in RecordIs},
            dict(sorted(self.accounts.held.items())),
            done.nowhere,
            done.not_read,
            done.skipped,
            self.accounts.as_records,
            gone,
            self.accounts.misplaced,
        )

    def held_of(self, ids: Collection[str], accounted: Accounted) -> dict[str, HeldNow]:
        """What is held of these waveforms at the snapshot, and where that is not as it was."""
        found: dict[str, list[HeldChunk]] = defaultdict(list)
        for h in held_now(self.edges, HeldLook(ids=frozenset(ids))):
            found[h.chunk.waveform_id or ""].append(h)
            self.counted[Reason.OPEN if h.reason is Reason.INCOMPLETE else h.counted_as] += 1
        for i in ids:
            if (more := accounted.as_records.get(i)) is not None:
                found[i] += more
        gone, wrong = {h.key for h in accounted.gone}, {m.held.key: m for m in accounted.misplaced}
        return {i: _held_now(some, gone, wrong) for i, some in found.items()}

    def beyond_the_head(self) -> list[str]:
        """Where more is held than the head counts in all: what a published row had released is held again since that
        row is gone."""
        mark = self.edges.snapshot.head.held
        counts = {} if mark is None else mark.counts
        more = [(reason, n, counts.get(reason, 0)) for reason, n in sorted(self.counted.items())]
        return [
            f"{n} chunks of its waveforms are held as {reason}, and the head counts {most} in all: others of them were "
            "published, and that row is gone from the table"
            for reason, n, most in more
            if n > most
        ]

    def _table(self, ids: Collection[str], ranges: Sequence[OffsetRange]) -> TableHas:
        edges, head = self.edges, self.edges.snapshot.head
        return TableHas(
            self.topic_id,
            edges.snapshot.published(ids) if ids else {},
            held_now(edges, HeldLook(ids=frozenset(ids), coordinates=RangePlaces(self.topic_id, ranges))),
            {p: at.next_offset for p, at in head.positions.items()},
        )

    def _named(self, claims: Mapping[str, Sequence[RowPiece]], read: Sequence[OffsetRange]) -> list[OffsetRange]:
        """Where rows say that chunks of theirs lie; asked of the whole table only for what nothing else was said of."""
        if not self.accounts.left.get(None):
            return []
        named = [*claims.values(), *(pieces for _, pieces in self.edges.snapshot.rows_from(read, self.topic_id))]
        places = {(p.partition, p.offset) for pieces in named for p in pieces if p.topic_id == self.topic_id}
        return joined(OffsetRange(p, o, Offset(o + 1)) for p, o in places)


def held_now(edges: ComparingEdges, look: HeldLook) -> list[HeldChunk]:
    """What counts of it at the snapshot, and of all waveforms that are among it, for what it is held by now."""
    if not look.ids and not look.coordinates:
        return []
    rows = edges.snapshot.held(look)
    more = {r.chunk.waveform_id for r in rows if r.chunk.reason is None and r.chunk.waveform_id} - look.ids
    if more:
        rows = [*rows, *edges.snapshot.held(HeldLook(ids=frozenset(more)))]
    ids = {r.chunk.waveform_id for r in rows if r.chunk.reason is None and r.chunk.waveform_id}
    held = effective_held(rows, published=edges.snapshot.published(ids) if ids else {})
    lateness = milliseconds(edges.stream.allowed_lateness)
    states = held_states(held, watermark=edges.snapshot.head.watermark_ms, allowed_lateness=lateness)
    return [h if h.reason is state else replace(h, reason=state) for h, state in zip(held, states, strict=True)]


def _held_now(held: Sequence[HeldChunk], gone: Collection[HeldKey], wrong: Mapping[HeldKey, Misplaced]) -> HeldNow:
    """`held`: all of one waveform. What became of a chunk that somebody discarded says nothing of those that stand."""
    said = next((h for h in held if h.reason is Reason.DISCARDED), held[0])
    standing = [h for h in held if h.reason is not Reason.DISCARDED] or held
    lost, odd = [h for h in standing if h.key in gone], [h for h in standing if h.key in wrong]
    bare = pieces_without_bytes(held)
    away = [h for h in (*lost, *odd) if (h.chunk.waveform_id, *h.chunk.identity) in bare]
    return HeldNow(
        tuple(h.reason for h in held),
        said.evidence,
        tuple(h.chunk.coordinate for h in held),
        tuple(joined(map(_place, lost))),
        tuple(joined(map(_place, away))),
        tuple(wrong[h.key].said for h in odd),
    )


def _place(h: HeldChunk) -> OffsetRange:
    return OffsetRange(h.chunk.partition, h.chunk.offset, Offset(h.chunk.offset + 1))


def _is_in(h: HeldChunk, ranges: Iterable[OffsetRange]) -> bool:
    return any(r.partition == h.chunk.partition and r.start <= h.chunk.offset < r.end for r in ranges)
