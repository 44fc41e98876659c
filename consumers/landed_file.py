"""Landing files, read: mapped, not loaded, and checked before a byte is believed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from wavestitch.contracts.errors import Altered
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
    return _read(path).select(list(INDEX_COLUMNS))


def verify_landed(folder: Path, landed: LandedSlice) -> None:
    """Compare a landing file with its receipt, byte for byte; raises `Altered`."""
    if landed.file is None:
        return
    path = folder / landed.file
    try:
        seen_bytes, seen_digest = digest_file(path)
    except FileNotFoundError:
        raise Altered(f"{path} is gone; run the batch's read step again", file=str(path)) from None
    if (seen_bytes, seen_digest) != (landed.file_bytes, landed.digest):
        raise Altered(
            f"{path} has {seen_bytes} bytes and XXH3-128 {seen_digest}; written were {landed.file_bytes} bytes with "
            f"{landed.digest}. Delete it and run the batch's read step again",
            file=str(path),
        )


def _read(path: Path) -> pa.Table:
    try:
        with pa.memory_map(str(path)) as mapped:
            reader = pa.ipc.open_file(mapped)
            _check_schema(path, reader.schema)
            return reader.read_all()
    except FileNotFoundError:
        raise Altered(f"{path} is gone; run the batch's read step again", file=str(path)) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise Altered(
            f"{path} is no whole landing file ({str(error).splitlines()[0]}); delete it and run the batch's read step "
            "again",
            file=str(path),
        ) from error


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
