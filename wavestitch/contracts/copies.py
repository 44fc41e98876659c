"""What copies of a waveform's chunks say, without their bytes: enough to tell them apart and to see a contradiction.

What one batch has read and another one has to know is kept as these. Pure. Keeps I2 and I3: equal digests of a piece
are equal bytes, metadata and place (`ChunkFacts.identity`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import NamedTuple

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.held import PublishedWaveform
from wavestitch.contracts.quantities import Offset, Partition


class Copy(NamedTuple):
    """One chunk that was read: where, which (`piece`: its digest in hex, over metadata and bytes), and what it says of
    the whole. `meta`: a digest of its metadata."""

    partition: Partition
    offset: Offset
    seq: int
    piece: str
    of: int | None
    digest: str | None
    meta: str

    @classmethod
    def made(cls, c: ChunkFacts) -> Copy:
        meta = hashlib.sha256((c.meta or "").encode()).hexdigest()[:32]
        return cls(c.partition, c.offset, c.seq or 0, c.piece.hex(), c.count, c.digest, meta)


def say_no_more(copies: Iterable[Copy], mine: Collection[ChunkFacts]) -> bool:
    """Whether one's own chunks have all that these say: then it is decided of the waveform as if they had been read."""
    pieces = {(c.seq, c.piece.hex()) for c in mine}
    counts, digests = {None, *(c.count for c in mine)}, {None, *(c.digest for c in mine)}
    return all((c.seq, c.piece) in pieces and c.of in counts and c.digest in digests for c in copies)


def contradict(copies: Collection[Copy]) -> bool:
    """Whether these cannot be of one waveform."""
    pieces = {(c.seq, c.piece) for c in copies}
    counts, digests = {c.of for c in copies if c.of is not None}, {c.digest for c in copies} - {None}
    return (
        len({seq for seq, _ in pieces}) < len(pieces)
        or max(len(counts), len(digests), len({c.meta for c in copies})) > 1
        or any(c.seq >= of for c in copies for of in counts)
    )


def are_published(copies: Iterable[Copy], known: PublishedWaveform) -> bool:
    """Whether each of them is the piece that was published, as `PublishedWaveform.has`."""
    size = len(known.chunks)
    return all(c.seq < size and known.chunks[c.seq].piece.hex() == c.piece and c.of in (None, size) for c in copies)
