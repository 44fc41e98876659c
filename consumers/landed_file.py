"""Landing files, read: mapped, not loaded, and checked before a byte is believed."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pyarrow as pa

from wavestitch.contracts.errors import Altered
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.receipt import LandedSlice
from wavestitch.contracts.rows import INDEX_COLUMNS, LANDING, LANDING_FORMAT
from wavestitch.write_once import digest_file

_FORMAT_KEY = b"wavestitch.landing-format"


def open_landing(path: Path) -> pa.Table:
    """All rows, mapped: payload is not copied, and only pages that are touched are read."""
    return _read(path)


def read_index(path: Path) -> pa.Table:
    """All rows, `INDEX_COLUMNS` only; no page of payload is touched."""
    # Arrow's own `included_fields` copies what it leaves out into memory; dropping mapped columns costs nothing.
    index = _read(path).select(list(INDEX_COLUMNS))
    try:
        # What lies on disk becomes addresses: unchecked, a damaged length would end the process.
        index.validate(full=True)
    except pa.ArrowException as error:
        raise _damaged(path, error) from error
    return index


def verify_landed(folder: Path, landed: LandedSlice) -> None:
    """Compare a landing file with its receipt, byte for byte; raises `Altered`."""
    if landed.file is None:
        return
    path = folder / landed.file
    try:
        # A link would lead out of the folder, and reading a pipe need never end.
        if not stat.S_ISREG(path.lstat().st_mode):
            raise Altered(f"{path} is no plain file; delete it and run the batch's read step again", file=str(path))
        seen_bytes, seen_digest = digest_file(path)
    except FileNotFoundError:
        raise Altered(f"{path} is gone; run the batch's read step again", file=str(path)) from None
    if (seen_bytes, seen_digest) != (landed.file_bytes, landed.digest):
        raise Altered(
            f"{path} has {seen_bytes} bytes and XXH3-128 {seen_digest}; written were {landed.file_bytes} bytes with "
            f"{landed.digest}. Delete it and run the batch's read step again",
            file=str(path),
        )


def verify_rows(landed: LandedSlice, index: pa.Table) -> None:
    """Compare the rows of a landing file with its receipt: as many, of this slice, in order. Raises `Altered`."""
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
        with pa.memory_map(str(path)) as mapped:
            reader = pa.ipc.open_file(mapped)
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
    if found != LANDING_FORMAT:
        raise Altered(
            f"{path} has landing format {found!r}; this version reads {LANDING_FORMAT!r}: run the batch's read step "
            "again with one version of wavestitch",
            file=str(path),
        )
    if not schema.equals(LANDING):
        raise Altered(f"{path} has columns that a landing file does not have; run the read step again", file=str(path))
