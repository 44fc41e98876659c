"""Where payload bytes lie in the landing files, which are mapped and never read as a whole.

Turns (file, row) into (buffer, begin, end) for all pieces of an assignment at once. Whatever does not fit what the
index said is `Altered`: a claim on disk is checked before it becomes an address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from spark_apps.assignment import Assignment, Ints
from wavestitch.contracts.errors import Altered, BadInput
from wavestitch.contracts.rows import LANDING, LANDING_FORMAT


@dataclass(frozen=True, slots=True)
class Located:
    """Every piece of an assignment, in its order: bytes `[begin, end)` of `buffers[buffer]` (one per record batch)."""

    buffers: list[Any]
    buffer: Ints
    begin: Ints
    end: Ints


def locate_pieces(assignment: Assignment, files: Sequence[Path]) -> Located:
    """Map the landing files that the assignment names. Raises `Altered` by file and row, `BadInput` by format."""
    number, row, length = (assignment.pieces[n] for n in ("file", "row", "length"))
    buffers: list[Any] = []
    buffer, begin, end = (np.zeros(len(row), np.int64) for _ in range(3))
    for n in np.unique(number).tolist():
        if not 0 <= n < len(files):
            raise BadInput(f"an assignment names landing file number {n}; the job has {len(files)}")
        mine = np.flatnonzero(number == n)
        rows = row[mine]
        batches = _map(files[n])
        ends = np.cumsum([len(b) for b in batches])
        beyond = np.flatnonzero((rows < 0) | (rows >= (ends[-1] if len(ends) else 0)))
        if len(beyond):
            raise altered(files[n], int(rows[beyond[0]]), "the file has no such row")
        at = np.searchsorted(ends, rows, side="right")
        for i in np.unique(at).tolist():
            here = at == i
            offsets, data = _buffers(batches[i])
            local = rows[here] - (ends[i] - len(batches[i]))
            buffer[mine[here]] = len(buffers)
            begin[mine[here]], end[mine[here]] = offsets[local], offsets[local + 1]
            buffers.append(data)
    sizes = np.array([len(b) for b in buffers], np.int64)
    wrong = np.flatnonzero((begin < 0) | (end - begin != length) | (end > sizes[buffer]))
    if len(wrong):
        i = int(wrong[0])
        raise altered(
            files[int(number[i])], int(row[i]), f"its payload has {end[i] - begin[i]} bytes, the index says {length[i]}"
        )
    return Located(buffers, buffer, begin, end)


def altered(file: Path, row: int, what: str) -> Altered:
    """The error for bytes that are not those that the reader landed."""
    return Altered(
        f"landing file {file} row {row}: {what}; the bytes on disk are not those that were landed. "
        "Run the batch's read step again, and look after the disk",
        file=str(file),
        row=row,
    )


def _map(path: Path) -> list[Any]:
    """The payload column of every record batch, on mapped memory."""
    try:
        # All columns: reading a selection of them would copy the payload out of the mapping.
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        seen = (reader.schema.metadata or {}).get(b"wavestitch.landing-format")
        if seen != LANDING_FORMAT:
            raise BadInput(f"landing file {path} has format {seen!r}; this version reads {LANDING_FORMAT!r}")
        if not reader.schema.equals(LANDING):
            raise Altered(
                f"landing file {path} has columns that a landing file does not have; run the batch's read step again",
                file=str(path),
            )
        return [reader.get_batch(i).column("payload") for i in range(reader.num_record_batches)]
    except FileNotFoundError as error:
        raise Altered(f"landing file {path} is gone; run the batch's read step again", file=str(path)) from error
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise Altered(
            f"landing file {path} is damaged ({error}); run the batch's read step again", file=str(path)
        ) from error


def _buffers(payload: Any) -> tuple[Any, memoryview]:
    _, offsets, data = payload.buffers()
    found = np.frombuffer(offsets, np.int32)[payload.offset : payload.offset + len(payload) + 1]
    return found, memoryview(data).cast("B") if data is not None else memoryview(b"")
