"""Proves that a table still has what producers sent: every row against the digests that were made of it as it came.

Reads all data files of the newest snapshot, one after another, about 16 MiB at a time. Samples become the bytes again
that were sent: whatever a column's type, its encoding, or whoever put files together since, the same bits must come
out, and with them all that is said of them (`row_proof`). Changes nothing, repairs nothing. Keeps I3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from wavestitch.contracts.errors import Altered
from wavestitch.contracts.row_proof import MAY_LACK, PROVEN, row_problem
from wavestitch.contracts.sample_types import FORMAT_DTYPES, came_exactly, sent_bytes
from wavestitch.tables.lookup.file_scans import Rows, deleted_rows, files_to_read, stream_file

_MOST_NAMED = 1000
_ODD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a file or a row can bring about that is not as this table's are."""


@dataclass(frozen=True, slots=True)
class AlteredRow:
    """A row that is not what its digests say. `why` names no sample."""

    waveform_id: str
    file: str
    why: str


@dataclass(frozen=True, slots=True)
class Verified:
    """`rows`: without those that another tool deleted, which are not the table's any more; `deleted`: how many these
    are. `altered`: the first thousand; `more`: how many there are beyond."""

    files: int
    rows: int
    bytes: int
    deleted: int
    altered: tuple[AlteredRow, ...]
    more: int


def verify_waveforms(table: Table, *, progress: Callable[[int, int], None] = lambda rows, size: None) -> Verified:
    """Every row of the table as its readers see it."""
    tasks = files_to_read(table)
    rows = size = deleted = more = 0
    altered: list[AlteredRow] = []
    for task in tasks:
        gone = deleted_rows(table, task)
        deleted += 0 if gone is None else len(gone)
        for waveform_id, sent, why in _proofs_of(table, task.file, gone):
            rows, size = rows + 1, size + sent
            if why and len(altered) < _MOST_NAMED:
                altered.append(AlteredRow(waveform_id, task.file.file_path, why))
            elif why:
                more += 1
            progress(rows, size)
    return Verified(len(tasks), rows, size, deleted, tuple(altered), more)


def _proofs_of(table: Table, file: DataFile, gone: Rows | None) -> Iterator[tuple[str, int, str]]:
    """Of each row of a file; one that cannot be read as the table's is named itself, and the others are looked at."""
    try:
        for batch in stream_file(table, file, gone=gone):
            yield from _proofs(batch)
    except (Altered, pa.ArrowException, *_ODD) as error:
        yield "", 0, f"the file is none of this table's any more ({type(error).__name__}: {str(error)[:200]})"


def _proofs(batch: pa.RecordBatch) -> Iterator[tuple[str, int, str]]:
    """Of each row: who it is, the bytes that were sent, and what is wrong with it, if anything is."""
    about = batch.select(list(PROVEN))
    # Whole microseconds: there are times that no calendar has.
    whole = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in about.columns]
    for n, row in enumerate(pa.RecordBatch.from_arrays(whole, names=about.schema.names).to_pylist()):
        samples = batch["samples"][n]
        lacks = None in [value for name, value in row.items() if name not in MAY_LACK]
        if not samples.is_valid or samples.values.null_count or lacks:
            yield str(row["waveform_id"]), 0, "lacks a sample, or what says how it was sent"
            continue
        if row["sample_format"] not in FORMAT_DTYPES:
            yield row["waveform_id"], 0, f"sample_format is {row['sample_format']!r}, which nobody can have sent"
            continue
        if not came_exactly(samples, row["sample_format"]):
            yield row["waveform_id"], 0, f"has a sample that no {row['sample_format']} can be"
            continue
        sent = sent_bytes(samples, row["sample_format"])
        try:
            why = row_problem(row, sent, len(samples.values))
        except _ODD as error:
            why = f"is no row that was ever published ({type(error).__name__}: {str(error)[:200]})"
        yield row["waveform_id"], len(sent), why
