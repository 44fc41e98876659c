"""What is held: rows of the held table, and which of them count.

Only rows of the snapshot that the head names are ever looked at. Of those about one coordinate and what lay there the
newest decision wins; a row is released when the waveform was published with the same piece. All derived, never
rewritten (docs/design.md). Keeps I1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from wavestitch.contracts.assembly import Assembly, ChunkFacts, ChunkKey, Coordinate
from wavestitch.contracts.chunk_proof import ProofKind
from wavestitch.contracts.held_mark import AFTER_DISCARD
from wavestitch.contracts.quantities import EpochMs, Milliseconds, Offset, Partition, after
from wavestitch.contracts.reasons import Reason

HeldKey = ChunkKey


@dataclass(frozen=True, slots=True)
class HeldChunk:
    """One row of the held table, payload aside.

    `chunk` has `carried` set, and `reason` where the record itself is no valid chunk. `reason`: why it is held.
    `sequence`: of the head that the decision was to become; orders decisions about one place and piece. `before`: of a
    discarded chunk, why it was held until then. `proof`: what the stream asked of it when it was read (see `belief`).
    `stored`: whether this very row has the bytes; of what `effective_held` returns, whether any row about the place and
    piece has them. A record that is no chunk may be held without (see `held_quota`); a chunk is so only where somebody
    took the row with its bytes out of the table.
    """

    chunk: ChunkFacts
    reason: Reason
    evidence: str
    decision: str
    sequence: int
    before: Reason | None = None
    stored: bool = field(default=True, compare=False)
    proof: ProofKind = "none"

    @property
    def key(self) -> HeldKey:
        return self.chunk.key

    @property
    def counted_as(self) -> str:
        """The reason; but what came under a discarded id since was never held for another one, and no tombstone."""
        late = self.reason is Reason.DISCARDED and self.before is None
        return AFTER_DISCARD if late else self.reason.value


class PublishedChunk(NamedTuple):
    """Where a published piece came from, and what it is (`piece_digest`); its place in the list is its sequence."""

    partition: Partition
    offset: Offset
    length: int
    piece: bytes


@dataclass(frozen=True, slots=True)
class PublishedWaveform:
    """What the published table keeps of a waveform's pieces."""

    waveform_id: str
    chunks: tuple[PublishedChunk, ...]

    def has(self, chunk: ChunkFacts) -> bool:
        """Whether this very piece (place, metadata and bytes) was published, and it does not say another count. What it
        says of the digest of the whole is not asked: what was accepted says another one than its bytes have."""
        seq = chunk.seq
        if seq is None or not 0 <= seq < len(self.chunks):
            return False
        piece = self.chunks[seq]
        return piece.piece == chunk.piece and chunk.count in (None, len(self.chunks))


def pieces_of(made: Assembly) -> PublishedWaveform:
    """As the published table will keep it."""
    chunks = tuple(PublishedChunk(c.partition, c.offset, c.length, c.piece) for c in made.pieces)
    return PublishedWaveform(made.waveform_id, chunks)


@dataclass(frozen=True, slots=True)
class HeldLook:
    """Which held rows somebody needs; rows that are no chunks come with their coordinates only.

    `open_since`: all open waveforms with a chunk whose record time is not before this; None: no open ones beside
    those asked for. `ids`: all valid chunks of these waveforms. `coordinates`: whatever is held from these places.
    `chunks`: all that are chunks. `everything`: all rows, for whoever proves the table as a whole; neither is a
    batch's.
    """

    open_since: EpochMs | None = None
    ids: frozenset[str] = frozenset()
    coordinates: AbstractSet[Coordinate] = frozenset()
    chunks: bool = False
    everything: bool = False


@dataclass(frozen=True, slots=True)
class IdsLook:
    """Which held waveforms somebody wants to know of, by the rows that are counted: for one of `reasons` (any, where
    none is named), not older than `since_ms`, of `ids` (all, where none is named). `after`: only ids behind this one;
    `most`: the first so many of them, in order."""

    reasons: frozenset[Reason] = frozenset()
    since_ms: EpochMs | None = None
    ids: frozenset[str] = frozenset()
    after: str = ""
    most: int | None = None

    @property
    def counts_all(self) -> bool:
        """Whether all rows of a waveform are counted."""
        return not self.reasons and self.since_ms is None


def effective_held(rows: Iterable[HeldChunk], *, published: Mapping[str, PublishedWaveform]) -> list[HeldChunk]:
    """The held chunks that count: newest decision per place and piece, not released; in order of coordinate.

    `rows`: all rows about the places and pieces in question, of the snapshot that the head names.
    """
    newest: dict[HeldKey, HeldChunk] = {}
    for row in sorted(rows, key=lambda r: r.sequence):
        key = row.key
        known = newest.get(key)
        discards = known is not None and row.reason is Reason.DISCARDED
        was = known.reason if known and known.reason is not Reason.DISCARDED else None
        before = known.before or was if known and discards else row.before
        newest[key] = replace(row, before=before, stored=row.stored or (known is not None and known.stored))
    kept = [h for h in newest.values() if not is_released(h.chunk, published)]
    return sorted(kept, key=lambda h: (h.chunk.coordinate, repr(h.key)))


def bare_keys(held: Iterable[HeldChunk]) -> frozenset[HeldKey]:
    """The chunks that are held without their bytes, which any copy that has them goes before."""
    return frozenset(h.key for h in held if not h.stored and h.chunk.reason is None)


def pieces_without_bytes(held: Iterable[HeldChunk]) -> set[tuple[str | None, int | None, bytes]]:
    """The pieces that are held, and that no copy has the bytes of."""
    of = {True: set[tuple[str | None, int | None, bytes]](), False: set[tuple[str | None, int | None, bytes]]()}
    for h in held:
        if h.chunk.reason is None:
            of[h.stored].add((h.chunk.waveform_id, *h.chunk.identity))
    return of[False] - of[True]


def is_released(chunk: ChunkFacts, published: Mapping[str, PublishedWaveform]) -> bool:
    waveform = published.get(chunk.waveform_id or "")
    return chunk.reason is None and waveform is not None and waveform.has(chunk)


def held_states(held: Sequence[HeldChunk], *, watermark: EpochMs, allowed_lateness: Milliseconds) -> list[Reason]:
    """What each held chunk is now: its reason, but incomplete where it is open and its deadline has passed."""
    due = open_deadlines(held, allowed_lateness=allowed_lateness)
    expired = {i for i, deadline in due.items() if watermark > deadline}
    return [Reason.INCOMPLETE if h.reason is Reason.OPEN and h.chunk.waveform_id in expired else h.reason for h in held]


def open_deadlines(held: Iterable[HeldChunk], *, allowed_lateness: Milliseconds) -> dict[str, EpochMs]:
    """Per waveform held as open: the watermark (ms) above which it counts as incomplete."""
    deadlines: dict[str, EpochMs] = {}
    for h in held:
        if h.reason is Reason.OPEN and h.chunk.waveform_id is not None:
            due = after(h.chunk.timestamp_ms, allowed_lateness)
            deadlines[h.chunk.waveform_id] = max(due, deadlines.get(h.chunk.waveform_id, due))
    return deadlines
