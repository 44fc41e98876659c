"""Reading a catalog and its files, in the words of the error tree.

A commit has three outcomes: done, not done (`CommitConflict`: somebody else was first; `Transient`: try again), and not
known (`StateUnknown`). Anything that is not certainly "not done" is not known. Keeps I6 and I7.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.table import Table

from wavestitch.contracts.errors import Altered, Transient
from wavestitch.tables.access.catalog_errors import meaning_of
from wavestitch.tables.access.unsaid import cause_of


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Around whatever reads or writes files and reads the catalog, and never commits. `name`: table or catalog."""
    try:
        yield
    except Exception as error:
        found = meaning_of(error, name=name)
        if found is None or found is error:
            raise
        raise found from cause_of(error)


@contextmanager
def reading_files(table: Table, snapshot_id: int | None = None) -> Iterator[None]:
    """As `reading`, around whatever reads files that a snapshot of the table names (the current one, as the table was
    loaded). Raises `Transient` where maintenance has let go of that meanwhile: then a file that is missed is no
    damage."""
    name, snapshot = ".".join(table.name()), snapshot_id or table.metadata.current_snapshot_id
    try:
        with reading(name):
            yield
    except Altered as error:
        if not _expired(table, snapshot):
            raise
        raise Transient(
            f"snapshot {snapshot} of table {name}, which was being read, has expired meanwhile, and a file of it is "
            "gone: read again. Whoever reads for longer than `snapshot_age` and `orphan_age` of the settings allow "
            "asks for less at a time, or raises these"
        ) from error


def _expired(table: Table, snapshot: int | None) -> bool:
    try:
        now = table.catalog.load_table(table.name())
    except Exception:  # what is told then is what went wrong first
        return False
    return snapshot is not None and now.metadata.snapshot_by_id(snapshot) is None
