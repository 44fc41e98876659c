"""Pieces put together: every waveform's bytes in one stretch of memory, each piece and the whole proven on the way.

Pieces are read from the landing straight to where they belong, in one of two buffers that are used again and again: the
next group is read while one is worked on. Keeps I3: a piece whose CRC is not the landed one is `Altered`; a waveform
whose digest is not the producer's, or that does not fit the table's type exactly, is refused as a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from spark_apps.assignment import Assignment, Ints
from spark_apps.landed_payload import LandedPayload, altered, locate_pieces
from spark_apps.piece_proof import OtherPiece, PieceProof
from wavestitch.contracts.errors import Altered
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.sample_kinds import SampleType
from wavestitch.contracts.sample_types import fits_always, misfit, runs_of_formats
from wavestitch.payload_store import PayloadStore

Bytes = npt.NDArray[np.uint8]
_AT_ONCE = 512 << 10
"""Bytes of waveforms, or one larger waveform."""


class Refusal(NamedTuple):
    """Why a whole waveform is not published after all."""

    reason: Reason
    evidence: str


@dataclass(frozen=True, slots=True)
class Group:
    """Some neighbouring waveforms of an assignment, in order. Those that are proven lie one behind the other:
    `waveforms[i]` is bytes `[bounds[i], bounds[i + 1])` of `data`, `digests` (XXH3-128) are theirs; `refused` has
    the others."""

    waveforms: Ints
    data: Bytes
    bounds: Ints
    digests: list[str]
    refused: dict[int, Refusal]


class Gatherer:
    """Gathers an assignment group by group. A group's memory is valid until the next one is asked for."""

    def __init__(
        self,
        assignment: Assignment,
        files: Sequence[Path],
        formats: Sequence[str] | npt.NDArray[np.str_],
        *,
        samples: SampleType,
        group_bytes: int,
        payload: PayloadStore | None = None,
    ) -> None:
        """`formats`: of each waveform's samples; `samples`: the type that they must fit. `payload`: has what is not in
        the files."""
        self._assignment = assignment
        self._proof = PieceProof(assignment)
        self._formats = formats
        self._type = samples
        self._files = files
        self._payload = payload
        self._groups = _pack(assignment.sizes.tolist(), group_bytes)
        self._sizes = [int(assignment.sizes[lo:hi].sum()) for lo, hi in self._groups]
        room = max((s for s in self._sizes if s <= group_bytes), default=0)
        self._rooms = (np.empty(room, np.uint8), np.empty(room, np.uint8))

    def groups(self) -> Iterator[Group]:
        """Raises `Altered` at the first piece whose bytes are not those that were landed."""
        with locate_pieces(self._assignment, self._files, self._payload) as payload, ThreadPoolExecutor(1) as ahead:
            coming: Future[Bytes] | None = None
            for n, (lo, hi) in enumerate(self._groups):
                memory = self._read(payload, n) if coming is None else coming.result()
                # A waveform that is larger than a group has the memory for itself.
                both_fit = max(self._sizes[n : n + 2]) <= len(self._rooms[0])
                coming = ahead.submit(self._read, payload, n + 1) if both_fit and n + 1 < len(self._groups) else None
                yield self._gather(memory, lo, hi)

    def _read(self, payload: LandedPayload, n: int) -> Bytes:
        size, room = self._sizes[n], self._rooms[n % 2]
        memory = room if size <= len(room) else np.empty(size, np.uint8)
        first, end = (int(self._assignment.first[w]) for w in self._groups[n])
        payload.read(slice(first, end), memory.data)
        return memory

    def _gather(self, memory: Bytes, lo: int, hi: int) -> Group:
        a = self._assignment
        bounds = np.concatenate(([0], np.cumsum(a.sizes[lo:hi])))
        digests: list[str] = []
        # What is proven by CRC is digested while it is in the processor's cache.
        for first, end in _pack(a.sizes[lo:hi].tolist(), _AT_ONCE):
            some = memory.data[bounds[first] : bounds[end]]
            other = self._proof.first_other(some, lo + first, lo + end)
            if other is not None:
                raise self._altered(other)
            cuts = (bounds[first : end + 1] - bounds[first]).tolist()
            digests += [xxhash.xxh3_128_hexdigest(some[b:e]) for b, e in pairwise(cuts)]
        refused = self._refusals(lo, hi, digests, memory, bounds)
        return _without(Group(np.arange(lo, hi), memory[: bounds[-1]], bounds, digests, refused))

    def _refusals(self, lo: int, hi: int, digests: Sequence[str], memory: Bytes, bounds: Ints) -> dict[int, Refusal]:
        refused: dict[int, Refusal] = {}
        said = self._assignment.digests.slice(lo, hi - lo)
        unlike = pc.not_equal(said, pa.array(digests, said.type)).fill_null(False)
        for n in np.flatnonzero(np.asarray(unlike)).tolist():
            evidence = f"ws-digest says {said[n].as_py()}, the waveform's bytes give {digests[n]}"
            refused[lo + n] = Refusal(Reason.DIGEST_MISMATCH, evidence)
        for first, end, sample_format in runs_of_formats(self._formats[lo:hi]):
            for n in range(first, 0 if fits_always(sample_format, self._type) else end):
                why = misfit(memory[bounds[n] : bounds[n + 1]], sample_format, self._type)
                if why is not None:
                    refused.setdefault(lo + n, Refusal(Reason.MISFIT, why))
        return refused

    def _altered(self, other: OtherPiece) -> Altered:
        file, row, crc = (int(self._assignment.pieces[n][other.piece]) for n in ("file", "row", "crc"))
        return altered(self._files[file], row, f"the chunk was landed with CRC {crc:08x} and now has {other.crc:08x}")


def _without(group: Group) -> Group:
    """The group with what is refused closed up."""
    if not group.refused:
        return group
    kept, digests, bounds, to = [], [], [0], 0
    for n, w in enumerate(group.waveforms.tolist()):
        begin, end = int(group.bounds[n]), int(group.bounds[n + 1])
        if w in group.refused:
            continue
        if to != begin:
            group.data[to : to + end - begin] = group.data[begin:end]
        to += end - begin
        kept.append(w)
        digests.append(group.digests[n])
        bounds.append(to)
    return Group(np.array(kept, np.int64), group.data[:to], np.array(bounds, np.int64), digests, group.refused)


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
