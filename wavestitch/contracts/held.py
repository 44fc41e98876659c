"""What is held: rows of the held table, and which of them count.

A row counts only if its decision was committed; the newest committed decision about a coordinate wins; a row is
released when the waveform was published with the same piece. All derived, never rewritten (docs/design.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.reasons import Reason


@dataclass(frozen=True, slots=True)
class HeldChunk:
    """One row of the held table, payload aside.

    `chunk` has `carried` set, and `reason` where the record itself is no valid chunk. `reason`: why it is held.
    `sequence`: of the head that the decision was to become; orders decisions about one coordinate.
    """

    chunk: ChunkFacts
    reason: Reason
    evidence: str
    decision: str
    sequence: int


class PublishedChunk(NamedTuple):
    """Where a published piece came from, and what it is (`piece_digest`); its place in the list is its sequence."""

    partition: int
    offset: int
    length: int
    piece: bytes


@dataclass(frozen=True, slots=True)
class PublishedWaveform:
    """What the published table keeps of a waveform's pieces."""

    waveform_id: str
    chunks: tuple[PublishedChunk, ...]

    def has(self, chunk: ChunkFacts) -> bool:
        """Whether this very piece (place, metadata and bytes) was published, and it does not say another count."""
        seq = chunk.seq
        if seq is None or not 0 <= seq < len(self.chunks):
            return False
        piece = self.chunks[seq]
        return piece.piece == chunk.piece and chunk.count in (None, len(self.chunks))


def effective_held(
    rows: Iterable[HeldChunk], *, committed: Collection[str], published: Mapping[str, PublishedWaveform]
) -> list[HeldChunk]:
    """The held chunks that count: committed, newest per coordinate, not released; in order of coordinate."""
    newest: dict[tuple[str, int, int], HeldChunk] = {}
    for row in rows:
        if row.decision in committed:
            known = newest.get(row.chunk.coordinate)
            if known is None or row.sequence > known.sequence:
                newest[row.chunk.coordinate] = row
    return [newest[k] for k in sorted(newest) if not _released(newest[k].chunk, published)]


def _released(chunk: ChunkFacts, published: Mapping[str, PublishedWaveform]) -> bool:
    waveform = published.get(chunk.waveform_id or "")
    return chunk.reason is None and waveform is not None and waveform.has(chunk)


def held_states(held: Sequence[HeldChunk], *, watermark_ms: int, allowed_lateness_ms: int) -> list[Reason]:
    """What each held chunk is now: its reason, but incomplete where it is open and its deadline has passed."""
    due = open_deadlines(held, allowed_lateness_ms=allowed_lateness_ms)
    expired = {i for i, deadline in due.items() if watermark_ms > deadline}
    return [Reason.INCOMPLETE if h.reason is Reason.OPEN and h.chunk.waveform_id in expired else h.reason for h in held]


def open_deadlines(held: Iterable[HeldChunk], *, allowed_lateness_ms: int) -> dict[str, int]:
    """Per waveform held as open: the watermark (ms) above which it counts as incomplete."""
    deadlines: dict[str, int] = {}
    for h in held:
        if h.reason is Reason.OPEN and h.chunk.waveform_id is not None:
            due = h.chunk.timestamp_ms + allowed_lateness_ms
            deadlines[h.chunk.waveform_id] = max(due, deadlines.get(h.chunk.waveform_id, due))
    return deadlines
