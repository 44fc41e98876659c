"""Rows that a head has taken out: what had been passed as a copy of one of their chunks is held as such a chunk now."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import xxhash

from tests.histories.events import Committed, Produced, Published

Identity = tuple[str | None, int | None, int, bytes]
"""Waveform, sequence, length, proof."""


class Word(NamedTuple):
    """What is said of a whole waveform: how many chunks it has, and the digest of all its samples."""

    chunks: int | None
    digest: str | None


class Released:
    def __init__(self) -> None:
        self._by_piece: dict[Identity, list[tuple[Committed, Word]]] = defaultdict(list)

    def take_out(self, row: Published, head: Committed) -> None:
        """`head`: the newest before that. What it had passed, the row had."""
        word = Word(len(row.chunks), xxhash.xxh3_128_hexdigest(row.samples))
        for n, (*_, length, proof) in enumerate(row.chunks):
            self._by_piece[row.id, n, length, bytes.fromhex(proof)].append((head, word))

    def words(self, record: Produced, piece: Identity) -> list[Word]:
        """What the rows were of which this record was passed as a copy: what they said of the whole, they said for it,
        and what it says of that, they were."""
        topic_id, p, o = record.coordinate
        return [word for h, word in self._by_piece[piece] if h.topic_id == topic_id and o < h.positions.get(p, 0)]
