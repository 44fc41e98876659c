"""The versions of a table's metadata in its folder that no table of the catalog names, as plain values.

Changes nothing. What cannot be read as one is what a killed process has left half written, and proves nothing.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Collection
from typing import Any

from pyiceberg.table import Table

from wavestitch.contracts.table_versions import TableVersion, find_doubtful
from wavestitch.tables.access.file_marks import Marks
from wavestitch.tables.access.reading import reading
from wavestitch.tables.commit.stored_table import StoredTable

_GZIP = b"\x1f\x8b"


def doubtful_versions(
    stored: StoredTable, *, named_by_others: Callable[[], Collection[str]], remembered: Collection[str]
) -> list[TableVersion]:
    """Versions that may have been the table once, the newest first; none where the catalog has no such table.

    `named_by_others`: asked only where there is one.
    """
    table = stored.load()
    if table is None:
        return []
    marks = Marks()
    named = marks.of_names([table.metadata_location, *(e.metadata_file for e in table.metadata.metadata_log)])
    unnamed = _unnamed(stored, named, marks)
    if not unnamed or not _doubtful(table, unnamed.values(), remembered):
        return []
    theirs = marks.of_names(named_by_others())
    return _doubtful(table, [v for path, v in unnamed.items() if theirs.isdisjoint(marks.of_names([path]))], remembered)


def _doubtful(table: Table, unnamed: Collection[TableVersion], remembered: Collection[str]) -> list[TableVersion]:
    metadata = table.metadata
    return find_doubtful(
        unnamed,
        table=str(metadata.table_uuid),
        sequence=getattr(metadata, "last_sequence_number", 0),  # a table of format 1 has none
        past_ms=min((e.timestamp_ms for e in metadata.metadata_log), default=0),
        remembered=remembered,
    )


def _unnamed(stored: StoredTable, named: set[str], marks: Marks) -> dict[str, TableVersion]:
    with reading(stored.name):
        paths = [p for p in stored.files.versions() if named.isdisjoint(marks.of_names([p]))]
        found = {p: read_version(p, stored.files.read) for p in paths}
    return {path: version for path, version in found.items() if version is not None}


def read_version(path: str, read: Callable[[str], bytes]) -> TableVersion | None:
    """What a metadata file says of itself; None where it is none. What `read` raises is not passed over, but where it
    is gone: a version that cannot be read now may be the one that matters."""
    try:
        raw = read(path)
    except FileNotFoundError:
        return None
    try:
        found: Any = json.loads(gzip.decompress(raw) if raw.startswith(_GZIP) else raw)
        log = found.get("metadata-log") or [{"metadata-file": ""}]
        return TableVersion(
            file=path.rpartition("/")[2],
            table=str(found["table-uuid"]),
            sequence=int(found.get("last-sequence-number", 0)),
            snapshots=len(found.get("snapshots") or ()),
            updated_ms=int(found["last-updated-ms"]),
            parent=str(log[-1]["metadata-file"]).rpartition("/")[2],
        )
    except (OSError, EOFError, ValueError, RecursionError, KeyError, TypeError, AttributeError, IndexError):
        return None
