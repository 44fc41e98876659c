"""Where payload bytes lie in the landing files, and how they get into memory: read where they are wanted, once.

Turns (file, row) into bytes `[begin, begin + length)` of a file for all pieces of an assignment at once. Whatever does
not fit what the index said is `Altered`: a claim on disk is checked before it becomes an address.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_apps.assignment import Assignment, Ints
from spark_apps.payload_spool import Apart, PayloadSpool
from wavestitch.contracts.errors import Altered, BadInput
from wavestitch.contracts.payload_apart import read_apart
from wavestitch.contracts.rows import LANDING, LANDING_FORMATS
from wavestitch.mapped_file import map_sparsely
from wavestitch.payload_store import PayloadStore, not_named
from wavestitch.plain_files import open_plain

_MOST_PARTS = 1024
"""So many places in memory one call fills (IOV_MAX of Linux)."""
_RUN_BYTES = 4 << 20
"""About so much is taken at once. Its pages go back before the next are taken, which the kernel fetches ahead."""


@dataclass(slots=True)
class _Run:
    """Pieces that lie one behind the other in a file: bytes `[begin, end)`. `parts` says where in memory they go, one
    after another, as (begin, end)."""

    file: int
    begin: int
    end: int
    parts: list[tuple[int, int]]


@dataclass(frozen=True)
class LandedPayload:
    """The payload of an assignment's pieces: piece i is `length[i]` bytes from `begin[i]` on of file `file[i]`. Use as
    a context manager. `spools`: of the files whose payload is apart."""

    files: Sequence[Path]
    file: Ints
    begin: Ints
    length: Ints
    spools: dict[int, PayloadSpool] = field(default_factory=dict)
    _open: dict[int, int] = field(default_factory=dict)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.popitem()[1])
        for spool in self.spools.values():
            spool.close()

    def read(self, pieces: slice, into: memoryview) -> None:
        """Fill `into` with these pieces, one behind the other. Raises `Altered` where a file ends before."""
        for number, spool in self.spools.items():
            mine = self.file[pieces] == number
            begin = self.begin[pieces][mine]
            spool.need(zip(begin.tolist(), (begin + self.length[pieces][mine]).tolist(), strict=True))
        for run in self._runs(pieces):
            file, at = self._descriptor(run.file), run.begin
            waiting = [into[a:b] for a, b in run.parts]
            while waiting:
                seen = os.preadv(file, waiting[:_MOST_PARTS], at)
                if not seen:
                    raise _altered_file(self.files[run.file], f"it ends at byte {at}, within a payload of its index")
                at += seen
                waiting = _behind(waiting, seen)
            # It is read once, and by nobody else: its pages serve what is read next.
            os.posix_fadvise(file, run.begin, run.end - run.begin, os.POSIX_FADV_DONTNEED)

    def _runs(self, pieces: slice) -> Iterator[_Run]:
        length = self.length[pieces]
        columns = (self.file[pieces], self.begin[pieces], length, np.cumsum(length) - length)
        order = np.lexsort(columns[1::-1])
        file, begin, size, to = (c[order] for c in columns)
        # Where one begins elsewhere than the one before it ends: in the files, or in memory.
        torn = np.append(True, (file[1:] != file[:-1]) | (begin[1:] != begin[:-1] + size[:-1]))
        stretch = begin - begin[torn][np.cumsum(torn) - 1]
        torn[1:] |= np.diff(stretch // _RUN_BYTES) > 0
        apart = torn.copy()
        apart[1:] |= to[1:] != to[:-1] + size[:-1]
        starts = np.flatnonzero(apart)
        ends = np.append(starts[1:], len(to)) - 1
        parts = list(zip(to[starts].tolist(), (to[ends] + size[ends]).tolist(), strict=True))
        runs = np.flatnonzero(torn[starts])
        last = ends[np.append(runs[1:], len(starts)) - 1]
        places = (
            file[starts[runs]],
            begin[starts[runs]],
            begin[last] + size[last],
            runs,
            np.append(runs[1:], len(parts)),
        )
        for f, b, e, lo, hi in zip(*(p.tolist() for p in places), strict=True):
            yield _Run(f, b, e, parts[lo:hi])

    def _descriptor(self, file: int) -> int:
        if file in self.spools:
            return self.spools[file].fileno()
        if file not in self._open:
            try:
                with open_plain(self.files[file], step="the batch's read step") as opened:
                    self._open[file] = os.dup(opened.fileno())
            except FileNotFoundError as error:
                raise _gone(self.files[file]) from error
        return self._open[file]


def locate_pieces(assignment: Assignment, files: Sequence[Path], payload: PayloadStore | None = None) -> LandedPayload:
    """Look up the pieces of an assignment. `payload`: has what is not in the files. Raises `Altered` by file and row,
    `BadInput` by format, and where there is no such store."""
    number, row, length = (assignment.pieces[n] for n in ("file", "row", "length"))
    begin, end = np.zeros(len(row), np.int64), np.zeros(len(row), np.int64)
    apart: dict[int, list[Apart]] = {}
    for n in np.unique(number).tolist():
        if not 0 <= n < len(files):
            raise BadInput(f"an assignment names landing file number {n}; the job has {len(files)}")
        mine = np.flatnonzero(number == n)
        rows = row[mine]
        batches, apart[n] = _payload_places(files[n])
        ends = np.cumsum([len(b) - 1 for b in batches])
        beyond = np.flatnonzero((rows < 0) | (rows >= (ends[-1] if len(ends) else 0)))
        if len(beyond):
            raise altered(files[n], int(rows[beyond[0]]), "the file has no such row")
        # Each batch before a row's own has one place more than it has rows.
        places, at = np.concatenate(batches), rows + np.searchsorted(ends, rows, side="right")
        begin[mine], end[mine] = places[at], places[at + 1]
    wrong = np.flatnonzero((begin < 0) | (end - begin != length))
    if len(wrong):
        i = int(wrong[0])
        raise altered(
            files[int(number[i])], int(row[i]), f"its payload has {end[i] - begin[i]} bytes, the index says {length[i]}"
        )
    spools = {n: _spool(files[n], parts, payload) for n, parts in apart.items() if parts}
    return LandedPayload(files, number.astype(np.int64), begin, length.astype(np.int64), spools)


def _spool(file: Path, parts: Sequence[Apart], payload: PayloadStore | None) -> PayloadSpool:
    if payload is None:
        raise not_named(file)
    return PayloadSpool(payload.of(file.parent), parts)


def altered(file: Path, row: int, what: str) -> Altered:
    """The error for bytes that are not those that the reader landed."""
    return Altered(
        f"landing file {file} row {row}: {what}; the bytes on disk are not those that were landed. "
        "Run the batch's read step again, and look after the disk",
        file=str(file),
        row=row,
    )


def _behind(parts: list[memoryview], seen: int) -> list[memoryview]:
    """What is left of `parts` to fill after the first `seen` bytes."""
    for n, part in enumerate(parts):
        if seen < len(part):
            return [part[seen:], *parts[n + 1 :]]
        seen -= len(part)
    return []


def _payload_places(path: Path) -> tuple[list[npt.NDArray[np.int64]], list[Apart]]:
    """For every record batch, where in the file its payloads begin, and last where the last one ends; and the objects
    that have them instead of the file."""
    try:
        mapped = map_sparsely(path)
        # All columns: reading a selection of them would copy the payload out of the mapping.
        reader = pa.ipc.open_file(mapped)
        seen = (reader.schema.metadata or {}).get(b"wavestitch.landing-format")
        if seen not in LANDING_FORMATS:
            raise BadInput(f"landing file {path} has format {seen!r}; this version reads {LANDING_FORMATS!r}")
        if not reader.schema.equals(LANDING):
            raise _altered_file(path, "it has columns that a landing file does not have")
        batches = [reader.get_batch_with_custom_metadata(i) for i in range(reader.num_record_batches)]
    except FileNotFoundError as error:
        raise _gone(path) from error
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise _altered_file(path, f"it is damaged ({error})") from error
    places = [_places(path, batch.column("payload"), mapped.address) for batch, _ in batches]
    parts: list[Apart] = []
    for at, (_, said) in zip(places, batches, strict=True):
        parts += _apart(path, said, int(at[0]), int(at[-1]))
    return places, parts


def _apart(path: Path, said: Any, begin: int, end: int) -> list[Apart]:
    parts: list[Apart] = []
    try:
        for name, size in read_apart(said, end - begin):
            parts.append(Apart(begin, name, size))
            begin += size
    except ValueError as error:
        raise _altered_file(path, f"it is damaged ({error})") from None
    return parts


def _places(path: Path, payload: Any, origin: int) -> npt.NDArray[np.int64]:
    _, offsets, data = payload.buffers()
    try:
        # The size of this buffer is what the file says it is.
        found = np.frombuffer(offsets, np.int32, count=len(payload) + 1, offset=4 * payload.offset)
    except (TypeError, ValueError) as error:
        raise _altered_file(path, f"it is damaged ({error})") from error
    return found.astype(np.int64) + (data.address - origin if data is not None else 0)


def _gone(path: Path) -> Altered:
    return Altered(f"landing file {path} is gone; run the batch's read step again", file=str(path))


def _altered_file(path: Path, what: str) -> Altered:
    return Altered(f"landing file {path}: {what}; run the batch's read step again", file=str(path))
