"""Pieces put together: every waveform's bytes in one stretch of memory, each piece and the whole proven on the way.

Pieces are read from the landing straight to where they belong, in one of two buffers that are used again and again: the
next group is read while one is worked on. Keeps I3: a piece whose CRC is not the landed one is `Altered`; a waveform
whose digest is not the producer's, or that does not fit the table's type exactly, is refused as a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from spark_apps.assignment import Assignment, Ints
from spark_apps.landed_payload import LandedPayload, altered, locate_pieces
from wavestitch.contracts.chunk_header import behind_sequence, crc32, crc_of_id
from wavestitch.contracts.errors import Altered
from wavestitch.contracts.reasons import Reason
from wavestitch.contracts.sample_kinds import SampleType
from wavestitch.contracts.sample_types import misfit
from wavestitch.payload_store import PayloadStore

Bytes = npt.NDArray[np.uint8]
_NUMBERS = ("length", "crc", "count")


class Refusal(NamedTuple):
    """Why a whole waveform is not published after all."""

    reason: Reason
    evidence: str


@dataclass(frozen=True, slots=True)
class Group:
    """Some neighbouring waveforms of an assignment, in order. Those that are proven lie one behind the other:
    `waveforms[i]` is bytes `[bounds[i], bounds[i + 1])` of `data`, `digests` (XXH3-128) are theirs; `refused` has
    the others."""

    waveforms: list[int]
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
        formats: Sequence[str],
        *,
        samples: SampleType,
        group_bytes: int,
        payload: PayloadStore | None = None,
    ) -> None:
        """`formats`: of each waveform's samples; `samples`: the type that they must fit. `payload`: has what is not in
        the files."""
        self._assignment = assignment
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
        kept: list[int] = []
        bounds = [0]
        digests: list[str] = []
        refused: dict[int, Refusal] = {}
        begin = 0
        cut = slice(a.first[lo], a.first[hi])
        pieces = zip(*(a.pieces[n][cut].tolist() for n in _NUMBERS), a.pieces["digest"][cut], strict=True)
        for w in range(lo, hi):
            end = begin + int(a.sizes[w])
            digest = self._prove(w, memory.data[begin:end], islice(pieces, int(a.first[w + 1] - a.first[w])))
            refusal = self._refusal(w, digest, memory[begin:end])
            if refusal is not None:
                refused[w] = refusal
            else:
                to = bounds[-1]
                if to != begin:  # one before it was refused
                    memory[to : to + end - begin] = memory[begin:end]
                kept.append(w)
                digests.append(digest)
                bounds.append(to + end - begin)
            begin = end
        return Group(kept, memory[: bounds[-1]], np.array(bounds, np.int64), digests, refused)

    def _refusal(self, w: int, digest: str, sent: Bytes) -> Refusal | None:
        said = self._assignment.digests[w]
        if said not in (None, digest):
            evidence = f"ws-digest says {said}, the waveform's bytes give {digest}"
            return Refusal(Reason.DIGEST_MISMATCH, evidence)
        why = misfit(sent, self._formats[w], self._type)
        return None if why is None else Refusal(Reason.MISFIT, why)

    def _prove(self, w: int, samples: memoryview, pieces: Iterable[tuple[int, int, int, str | None]]) -> str:
        """Compare the pieces of a waveform with the CRCs they were landed with; its digest."""
        meta, of_id = self._assignment.metas[w].encode(), crc_of_id(self._assignment.waveform_ids[w].encode())
        begin, said, behind = 0, (-2, ""), b""
        for seq, (length, crc, count, digest) in enumerate(pieces):
            if (count, digest or "") != said:  # nearly all pieces of a waveform say the same
                said = count, digest or ""
                behind = behind_sequence(b"" if count < 0 else b"%d" % count, meta, said[1].encode())
            end = begin + length
            seen = crc32(samples[begin:end], crc32(b"%d%b" % (seq, behind), of_id)) & 0xFFFFFFFF
            if seen != crc:
                raise self._altered(w, seq, seen)
            begin = end
        return xxhash.xxh3_128_hexdigest(samples)

    def _altered(self, w: int, seq: int, seen: int) -> Altered:
        piece = int(self._assignment.first[w]) + seq
        file, row, crc = (int(self._assignment.pieces[n][piece]) for n in ("file", "row", "crc"))
        return altered(self._files[file], row, f"the chunk was landed with CRC {crc:08x} and now has {seen:08x}")


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
