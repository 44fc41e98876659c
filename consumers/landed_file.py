"""Landing files, read: mapped, not loaded, and compared with their receipt before what they say is believed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from wavestitch.contracts.errors import Altered
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.receipt import LandedSlice
from wavestitch.contracts.rows import INDEX_COLUMNS, LANDING, LANDING_FORMATS, meta_numbers
from wavestitch.mapped_file import map_sparsely
from wavestitch.plain_files import open_plain

_FORMAT_KEY = b"wavestitch.landing-format"


def open_landing(path: Path) -> pa.Table:
    """All rows, mapped: payload is not copied, and only pages that are touched are read."""
    return _read(path)


def read_index(folder: Path, landed: LandedSlice) -> pa.Table:
    """All rows of a slice, `INDEX_COLUMNS` only, after comparing them with its receipt; raises `Altered`.

    No page of payload is touched: its CRCs are in the index, and whoever takes a payload compares it with its own.
    """
    if landed.file is None:
        return LANDING.empty_table().select(list(INDEX_COLUMNS))
    path = folder / landed.file
    _check_place(path, landed)
    table = _read(path)
    seen = hashlib.sha256()
    try:
        # What lies on disk becomes addresses: unchecked, a damaged length would end the process.
        table.drop_columns(["payload"]).validate(full=True)
        for batch in table.to_batches():
            seen.update(besides_payload(batch))
    except pa.ArrowException as error:
        raise _damaged(path, error) from error
    if seen.hexdigest() != landed.index_digest:
        raise Altered(
            f"{path}: what it says of its records has SHA-256 {seen.hexdigest()}, written was {landed.index_digest}. "
            "Delete it and run the batch's read step again",
            file=str(path),
        )
    # Arrow's own `included_fields` copies what it leaves out into memory; dropping mapped columns costs nothing.
    index = table.select(list(INDEX_COLUMNS))
    _check_rows(landed, index)
    try:
        for batch in index.to_batches():
            meta_numbers(batch)
    except ValueError as error:
        raise _damaged(path, error) from error
    return index


def besides_payload(batch: pa.RecordBatch) -> Any:
    """What a record batch says of its records beside their payload, as bytes: the same before and after the disk."""
    return batch.drop_columns(["payload"]).serialize()


def _check_place(path: Path, landed: LandedSlice) -> None:
    try:
        with open_plain(path, step="the batch's read step") as file:
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise Altered(f"{path} is gone; run the batch's read step again", file=str(path)) from None
    if size != landed.file_bytes:
        raise Altered(
            f"{path} has {size} bytes, written were {landed.file_bytes}. Delete it and run the batch's read step again",
            file=str(path),
        )


def _check_rows(landed: LandedSlice, index: pa.Table) -> None:
    """As many rows as the receipt says, of this slice, in order."""
    offsets = index.column("offset").to_numpy()
    partitions = index.column("partition").to_numpy()
    inside = bool(np.all((partitions == landed.partition) & (offsets >= landed.start) & (offsets < landed.end)))
    if len(offsets) != landed.records or not inside or bool(np.any(np.diff(offsets) <= 0)):
        raise Altered(
            f"{landed.file} has {len(offsets)} rows that are not the {landed.records} records of "
            f"{OffsetRange(landed.partition, landed.start, landed.end)}, in order; delete it and run the batch's read "
            "step again",
            file=str(landed.file),
        )


def _read(path: Path) -> pa.Table:
    try:
        reader = pa.ipc.open_file(map_sparsely(path))
        _check_schema(path, reader.schema)
        return reader.read_all()
    except FileNotFoundError:
        raise Altered(f"{path} is gone; run the batch's read step again", file=str(path)) from None
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the machine's trouble (no memory, no descriptor, a bad disk), and no word about the file
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> Altered:
    said = (str(error).splitlines() or [""])[0][:200]
    return Altered(
        f"{path} is no whole landing file ({said}); delete it and run the batch's read step again", file=str(path)
    )


def _check_schema(path: Path, schema: pa.Schema) -> None:
    found = (schema.metadata or {}).get(_FORMAT_KEY)
    if found not in LANDING_FORMATS:
        raise Altered(
            f"{path} has landing format {ascii(found)[:80]}; this version reads {LANDING_FORMATS!r}: run the batch's "
            "read step again with one version of wavestitch",
            file=str(path),
        )
    if not schema.equals(LANDING):
        raise Altered(f"{path} has columns that a landing file does not have; run the read step again", file=str(path))
