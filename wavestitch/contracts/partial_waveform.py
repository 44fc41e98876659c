"""Where the chunks that are there would lie in a waveform that is not whole: what a picture of it is drawn from.

Of several copies one is laid out, the one that `pick` would take. How long a chunk is that nobody has is not known: it
is what `ws-meta` leaves for it, else as long as most of its neighbours, and said to be supposed wherever it is. Never
decides what becomes of a waveform. Pure.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from wavestitch.contracts.assembly import ChunkFacts
from wavestitch.contracts.chunk_metadata import Metadata, parse_metadata
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.held_choice import pick_copy


class PlacedChunk(NamedTuple):
    """A chunk as samples `[start, end)`."""

    chunk: ChunkFacts
    start: int
    end: int


class Gap(NamedTuple):
    """Samples `[start, end)`, of chunks `[first, behind)`, which miss. `supposed`: nobody says how long they are."""

    first: int
    behind: int
    start: int
    end: int
    supposed: bool


@dataclass(frozen=True, slots=True)
class PartialWaveform:
    """`chunks`, in order, and `gaps` between them. `others`: chunks that contradict those, and are not laid out."""

    waveform_id: str
    metadata: Metadata
    chunks: tuple[PlacedChunk, ...]
    gaps: tuple[Gap, ...]
    others: int

    @property
    def samples(self) -> int:
        return max([at.end for at in self.chunks] + [gap.end for gap in self.gaps], default=0)

    @property
    def borders(self) -> list[int]:
        """Between chunks and gaps, ascending."""
        return sorted({at.start for at in self.chunks} | {gap.start for gap in self.gaps})[1:]

    @property
    def supposed(self) -> bool:
        """Whether where some of it lies is not known."""
        return any(gap.supposed for gap in self.gaps)

    @property
    def digest(self) -> str:
        """Names the samples and where they lie."""
        places = "\n".join(f"{at.start} {at.chunk.piece.hex()}" for at in self.chunks)
        return hashlib.sha256(f"{self.samples}\n{places}".encode()).hexdigest()


def lay_out(waveform_id: str, held: Sequence[HeldChunk], *, copy: str = "first") -> PartialWaveform | None:
    """Of the copy that is named as `pick` does. None where no chunk is of that copy, or none has its bytes. Raises
    `BadInput` where the name is none."""
    stored = {h.chunk.key for h in held if h.stored}
    picked, others = pick_copy([h.chunk for h in held], copy)
    copies: dict[int, ChunkFacts] = {}
    for c in picked:
        known = copies.get(c.seq or 0)
        if known is None or (known.key not in stored and c.key in stored):
            copies[c.seq or 0] = c
    metadata = parse_metadata(picked[0].meta or "") if picked else ""
    if isinstance(metadata, str) or all(c.key not in stored for c in copies.values()):
        return None
    count = max(next((c.count for c in picked if c.count is not None), 0), max(copies) + 1)
    long = _lengths(copies, count, metadata)
    chunks: list[PlacedChunk] = []
    gaps: list[Gap] = []
    at = done = 0
    for seq in (*sorted(copies), count):
        if seq > done:
            width = long.of(done, seq)
            gaps.append(Gap(done, seq, at, at + width, long.supposed))
            at += width
        if seq == count:
            break
        samples, c = copies[seq].length // metadata.sample_bytes, copies[seq]
        if c.key in stored:
            chunks.append(PlacedChunk(c, at, at + samples))
        else:
            gaps.append(Gap(seq, seq + 1, at, at + samples, supposed=False))
        at, done = at + samples, seq + 1
    return PartialWaveform(waveform_id, metadata, tuple(chunks), tuple(gaps), len(others))


class _Lengths(NamedTuple):
    """`of(first, behind)`: samples in these chunks, which miss."""

    of: Callable[[int, int], int]
    supposed: bool


def _lengths(copies: dict[int, ChunkFacts], count: int, metadata: Metadata) -> _Lengths:
    there = sorted(copies)
    runs = sum(b > a + 1 for a, b in pairwise((-1, *there, count)))
    missing = count - len(there)
    left = (metadata.sample_count or 0) - sum(c.length for c in copies.values()) // metadata.sample_bytes
    if missing and left >= missing:
        # By how many miss before: rounded so, the parts are together what is left.
        def share(first: int, behind: int) -> int:
            before = first - sum(seq < first for seq in there)
            return left * (before + behind - first) // missing - left * before // missing

        return _Lengths(share, runs > 1)
    # The last one is as long as what was left for it.
    usual = _most_common(c.length for seq, c in copies.items() if seq < count - 1 or len(copies) == 1)
    return _Lengths(lambda first, behind: (behind - first) * (usual // metadata.sample_bytes), True)


def _most_common(lengths: Iterable[int]) -> int:
    return Counter(lengths).most_common(1)[0][0]
