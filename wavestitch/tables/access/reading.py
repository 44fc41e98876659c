"""Reading a catalog and its files, and what a locked SQLite file says, in the words of the error tree.

A commit has three outcomes: done, not done (`CommitConflict`: somebody else was first; `Transient`: try again), and not
known (`StateUnknown`). Anything that is not certainly "not done" is not known. Keeps I6 and I7.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from wavestitch.tables.access.catalog_errors import meaning_of
from wavestitch.tables.access.unsaid import cause_of

_SQLITE_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


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


def is_locked(error: Exception) -> bool:
    """SQLite gave up waiting for another process. It then holds no lock, also at COMMIT, and has written nothing."""
    if not isinstance(error, DBAPIError) or not isinstance(error.orig, sqlite3.Error):
        return False
    return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in _SQLITE_LOCKED
