"""Each piece of many waveforms against the CRC that it was landed with: what they share is put together once.

Decides nothing about what a CRC covers (`chunk_header`). Keeps I3.
"""

from __future__ import annotations

from itertools import chain, repeat
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from spark_apps.assignment import Assignment, Ints
from wavestitch.contracts.chunk_header import behind_sequence, crc32, crc_of_id


class OtherPiece(NamedTuple):
    """The number of a piece in its assignment, and the CRC that its bytes have now."""

    piece: int
    crc: int


class PieceProof:
    """Of one assignment."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        texts = assignment.waveform_ids, assignment.metas, assignment.piece_digests
        self._ids, self._metas, self._digests = (t.cast(pa.binary()) for t in texts)

    def first_other(self, samples: memoryview, lo: int, hi: int) -> OtherPiece | None:
        """The first piece of waveforms `[lo, hi)` that is not the landed one. `samples`: their bytes, in order."""
        a = self._assignment
        begin, end = int(a.first[lo]), int(a.first[hi])
        length, count, digest, crc = (a.pieces[n][begin:end] for n in ("length", "count", "digest", "crc"))
        sizes = np.diff(a.first[lo : hi + 1])
        whose = np.repeat(np.arange(lo, hi), sizes)
        seqs = np.arange(begin, end) - np.repeat(a.first[lo:hi], sizes)
        # Nearly all pieces of a waveform say the same: what stands behind the sequence number is made once of these.
        new = (whose[1:] != whose[:-1]) | (count[1:] != count[:-1]) | (digest[1:] != digest[:-1])
        runs = np.flatnonzero(np.append(True, new))
        counts = [b"" if n < 0 else b"%d" % n for n in count[runs].tolist()]
        # Texts once a waveform, tails one at a time: a count in every other piece makes as many runs as pieces.
        metas = self._metas.slice(lo, hi - lo).to_pylist()
        tails = map(behind_sequence, counts, (metas[w - lo] for w in whose[runs]), self._digests_of(digest[runs]))
        behind = chain.from_iterable(map(repeat, tails, np.diff(np.append(runs, end - begin)).tolist()))
        heads = map(crc_of_id, self._ids.slice(lo, hi - lo).to_pylist())
        before = chain.from_iterable(map(repeat, heads, sizes.tolist()))
        ends = np.cumsum(length, dtype=np.int64)
        pieces = zip((ends - length).tolist(), ends.tolist(), seqs.tolist(), behind, before, strict=True)
        seen = [crc32(samples[b:e], crc32(b"%d%b" % (n, tail), head)) & 0xFFFFFFFF for b, e, n, tail, head in pieces]
        wrong = np.flatnonzero(np.array(seen, np.uint32) != crc)
        return OtherPiece(begin + int(wrong[0]), seen[wrong[0]]) if len(wrong) else None

    def _digests_of(self, numbers: Ints) -> list[bytes]:
        """Of a negative number, none."""
        return [text or b"" for text in self._digests.take(pa.array(numbers, mask=numbers < 0)).to_pylist()]
