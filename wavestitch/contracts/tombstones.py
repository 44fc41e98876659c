"""What an operator discarded of a waveform: pieces that no replay brings back, whatever it says of the whole.

Pure. A piece that is discarded in one copy and kept in another (a pick among equal bytes with different claims) comes
again as the copy that it agrees with. What a repeat says beyond those that were discarded is not lost: it is kept with
them, since a restore may want it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from wavestitch.contracts.assembly import ChunkFacts, Said
from wavestitch.contracts.held import HeldChunk
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.stream import Limits


class Tombstones:
    def __init__(self, mine: Sequence[HeldChunk], limits: Limits) -> None:
        """`mine`: all that is held of one waveform."""
        dead = [h.chunk for h in mine if h.reason is Reason.DISCARDED]
        self._dead = {c.identity for c in dead}
        self._dead_words = {_words(c) for c in dead}
        self._kept: dict[tuple[int | None, bytes], list[ChunkFacts]] = defaultdict(list)
        for h in mine:
            if h.reason is not Reason.DISCARDED and h.chunk.identity in self._dead:
                self._kept[h.chunk.identity].append(h.chunk)
        self._said = Said(dead, limits)

    def cover(self, c: ChunkFacts) -> bool:
        """Whether this is a repeat of what was discarded, and of nothing that was kept. One that says word for word
        what was discarded is, though a copy that is silent of the whole was kept: with that any copy agrees."""
        if c.identity not in self._dead:
            return False
        kept = self._kept.get(c.identity, ())
        if _words(c) in self._dead_words:
            return _words(c) not in map(_words, kept)
        return not any(c.agrees_with(other) for other in kept)

    def learn(self, c: ChunkFacts) -> bool:
        """Whether it says more of the whole than all that was discarded."""
        return self._said.learn(c)


def _words(c: ChunkFacts) -> tuple[tuple[int | None, bytes], int | None, str | None]:
    return c.identity, c.count, c.digest
