"""Pieces put together: every waveform's bytes in one stretch of memory, each piece and the whole proven on the way.

Pieces that lie one behind the other in a mapped landing file are taken where they are; others are copied into one
buffer that is used again for every group. Keeps I3: a piece whose CRC is not the landed one is `Altered`; a waveform
whose digest is not the producer's is refused as a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from spark_apps.assignment import Assignment, Ints
from spark_apps.landed_payload import Located, altered, locate_pieces
from wavestitch.contracts.chunk_header import chunk_crc
from wavestitch.contracts.errors import Altered

MIN_DIRECT_BYTES = 64 << 10
"""A shorter stretch is copied: a segment of its own costs more than its bytes."""

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Segment:
    """Proven waveforms one behind the other: `waveforms[i]` is bytes `[bounds[i], bounds[i + 1])` of `data`."""

    waveforms: list[int]
    data: Bytes
    bounds: Ints


@dataclass(frozen=True, slots=True)
class Group:
    """Some neighbouring waveforms of an assignment, in order. `segments` and `digests` (XXH3-128 of the bytes) are of
    those that are proven; `refused` says of the others what digest they were to have and what they have."""

    segments: list[Segment]
    digests: dict[int, str]
    refused: dict[int, str]
    copied_bytes: int


_SCRATCH = -1


class _Stretch(NamedTuple):
    """Bytes `[begin, end)` of the landing buffer `home`, or of the scratch memory."""

    home: int
    begin: int
    end: int

    def is_followed_by(self, other: _Stretch) -> bool:
        return self.home == other.home and self.end == other.begin


class Gatherer:
    """Gathers an assignment group by group. A group's memory is valid until the next one is gathered."""

    def __init__(self, assignment: Assignment, files: Sequence[Path], *, group_bytes: int) -> None:
        self._assignment = assignment
        self._files = files
        self._located = locate_pieces(assignment, files)
        self._direct = _find_direct(assignment, self._located)
        sizes = assignment.sizes
        self._groups = _pack(sizes.tolist(), group_bytes)
        copied = np.where(self._direct, 0, sizes)
        self._scratch = np.empty(max((int(copied[lo:hi].sum()) for lo, hi in self._groups), default=0), np.uint8)

    def groups(self) -> Iterator[Group]:
        """Raises `Altered` at the first piece whose bytes are not those that were landed."""
        for lo, hi in self._groups:
            yield self._gather(lo, hi)

    def _gather(self, lo: int, hi: int) -> Group:
        wanted = self._assignment.digests
        digests, refused = {}, {}
        members: list[list[int]] = []
        stretches: list[_Stretch] = []
        filled = 0
        for w in range(lo, hi):
            found, digest = self._stitch(w, filled)
            if wanted[w] not in (None, digest):
                refused[w] = f"ws-digest says {wanted[w]}, the waveform's bytes give {digest}"
                continue  # its place in the scratch memory is free again
            digests[w] = digest
            if found.home == _SCRATCH:
                filled = found.end
            if stretches and stretches[-1].is_followed_by(found):
                stretches[-1] = stretches[-1]._replace(end=found.end)
                members[-1].append(w)
            else:
                stretches.append(found)
                members.append([w])
        return Group([self._segment(m, s) for m, s in zip(members, stretches, strict=True)], digests, refused, filled)

    def _stitch(self, w: int, filled: int) -> tuple[_Stretch, str]:
        """One waveform's bytes, proven, and their digest. What is scattered is copied to `filled` in the scratch."""
        a, at = self._assignment, self._located
        cut = slice(a.first[w], a.first[w + 1])
        places = zip(at.buffer[cut].tolist(), at.begin[cut].tolist(), at.end[cut].tolist(), strict=True)
        crcs = a.pieces["crc"][cut].tolist()
        waveform_id, meta = a.waveform_ids[w].encode(), a.metas[w].encode()
        direct, scratch, end = self._direct[w], self._scratch.data, filled
        whole = xxhash.xxh3_128()
        # Copy, CRC and digest piece by piece: the second and third pass find the bytes in the processor's cache.
        for seq, (buffer, b, e) in enumerate(places):
            piece = at.buffers[buffer][b:e]
            if not direct:
                copy = scratch[end : end + e - b]
                copy[:] = piece
                piece = copy
                end += e - b
            seen = chunk_crc(waveform_id, b"%d" % seq, meta, piece)
            if seen != crcs[seq]:
                raise self._altered(w, seq, seen)
            whole.update(piece)
        if direct:
            stretch = _Stretch(int(at.buffer[cut][0]), int(at.begin[cut][0]), int(at.end[cut][-1]))
        else:
            stretch = _Stretch(_SCRATCH, filled, end)
        return stretch, whole.hexdigest()

    def _segment(self, members: list[int], stretch: _Stretch) -> Segment:
        memory = self._scratch if stretch.home == _SCRATCH else np.frombuffer(self._located.buffers[stretch.home], "u1")
        sizes = self._assignment.sizes[members]
        return Segment(members, memory[stretch.begin : stretch.end], np.concatenate(([0], np.cumsum(sizes))))

    def _altered(self, w: int, seq: int, seen: int) -> Altered:
        piece = int(self._assignment.first[w]) + seq
        file, row, crc = (int(self._assignment.pieces[n][piece]) for n in ("file", "row", "crc"))
        return altered(self._files[file], row, f"the chunk was landed with CRC {crc:08x} and now has {seen:08x}")


def _find_direct(assignment: Assignment, at: Located) -> npt.NDArray[np.bool_]:
    """Which waveforms lie whole in one stretch of a landing file that is worth a segment."""
    joined = np.zeros(len(at.begin), np.bool_)
    joined[1:] = (at.buffer[1:] == at.buffer[:-1]) & (at.begin[1:] == at.end[:-1])
    first = assignment.first[:-1]
    follows = joined[first]  # the waveform before it ends where this one begins
    joined[first] = True
    whole = np.logical_and.reduceat(joined, first)
    follows[1:] &= whole[:-1]
    run = np.cumsum(~(follows & whole))
    run_bytes = np.bincount(run, weights=assignment.sizes)
    return np.asarray(whole & (run_bytes[run] >= MIN_DIRECT_BYTES), np.bool_)


def _pack(sizes: Sequence[int], group_bytes: int) -> list[tuple[int, int]]:
    """Neighbours packed into half-open groups of at most `group_bytes`; a larger waveform is a group of its own."""
    groups = []
    lo = total = 0
    for w, size in enumerate(sizes):
        if w > lo and total + size > group_bytes:
            groups.append((lo, w))
            lo, total = w, 0
        total += size
    if lo < len(sizes):
        groups.append((lo, len(sizes)))
    return groups
