"""What became of a read or a commit, in the words of the error tree.

A commit has three outcomes: done, not done (`CommitConflict`: somebody else was first; `Transient`: try again), and not
known (`StateUnknown`). Anything that is not certainly "not done" is not known. Keeps I6 and I7.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.exceptions import RESTError
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from wavestitch.contracts.errors import Altered, Transient

_SQLITE_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Around whatever reads or writes files and reads the catalog, and never commits. `name`: table or catalog."""
    try:
        yield
    except (SQLAlchemyError, RESTError) as error:
        raise Transient(f"{name}: the catalog did not answer ({brief(error)}); try again") from error
    except FileNotFoundError as error:
        raise Altered(
            f"{name}: a file that should be there is not ({brief(error)}); restore it, or look for what removed it"
        ) from error
    except OSError as error:
        raise Transient(f"{name}: a file could not be read or written ({brief(error)}); try again") from error


def is_locked(error: Exception) -> bool:
    """SQLite gave up waiting for another process. It then holds no lock, also at COMMIT, and has written nothing."""
    if not isinstance(error, DBAPIError) or not isinstance(error.orig, sqlite3.Error):
        return False
    return getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in _SQLITE_LOCKED


def brief(error: Exception) -> str:
    """The first line: what follows can be a whole SQL statement with its values."""
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:300]}"
