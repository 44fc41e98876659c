"""What a SQL server or SQLite says by its code: which kind of refusal it is, and whether nothing was done for certain.

Never decides what somebody is told of it (`catalog_errors`), nor what a commit ends as (`one_commit`). Keeps I6 and I7.
"""

from __future__ import annotations

import re
import sqlite3
from enum import Enum, auto

from sqlalchemy.exc import DBAPIError


class Refusal(Enum):
    """Why it was not done."""

    LOGIN = auto()
    """Who asks is not known, or has no right to this."""
    SETTINGS = auto()
    """There is no such database or schema; or the address is none that can be."""
    READ_ONLY = auto()
    """It takes no changes now, as a stand-by does."""
    FULL = auto()
    """Its disk, memory or connections are used up."""
    LOCKED = auto()
    """It was waited for as long as is allowed: somebody has a lock on it, or it is slow."""
    OTHERS = auto()
    """It gave way to what others change at the same time."""


_BY_STATE = {
    "28": Refusal.LOGIN,
    "3D": Refusal.SETTINGS,
    "3F": Refusal.SETTINGS,
    "53": Refusal.FULL,
    "25006": Refusal.READ_ONLY,
    "40001": Refusal.OTHERS,
    "40P01": Refusal.OTHERS,
    "42501": Refusal.LOGIN,
    "55P03": Refusal.LOCKED,
    "57014": Refusal.LOCKED,
}
"""By SQLSTATE, or its class."""
_BY_SQLITE = {
    sqlite3.SQLITE_BUSY: Refusal.LOCKED,
    sqlite3.SQLITE_LOCKED: Refusal.LOCKED,
    sqlite3.SQLITE_FULL: Refusal.FULL,
    sqlite3.SQLITE_READONLY: Refusal.LOGIN,
}
_AT_LOGIN = (
    (
        re.compile(
            r"FATAL: +(\S+ authentication failed|no pg_hba\.conf entry|pg_hba\.conf rejects|permission denied|"
            r'connection requires a valid client certificate|role ".*" (does not exist|is not permitted to log in)|'
            r"no such user)|no password supplied"
        ),
        Refusal.LOGIN,
    ),
    (
        re.compile(
            r'FATAL: +(database ".*" (does not exist|is not currently accepting connections)|no such database|'
            r"unrecognized configuration parameter|unsupported startup parameter|"
            r"invalid (value for parameter|command-line argument))|"
            r"server does not support SSL|channel binding (is )?required|authentication method requirement|"
            r'failed: ((root )?certificate|private key) file "|failed: could not \w+ .*(certificate|private key|CRL)|'
            r"invalid (connection option|integer value)|bad value for|could not match|could not parse network address|"
            # What libpq says of a server it begins so; all else is of the address, and it has asked no server.
            r"connection is bad: (?!connection to server|out of memory|could not (translate|look up|create|open))"
        ),
        Refusal.SETTINGS,
    ),
    (
        re.compile(
            r"FATAL: +(too many (connections|clients)|no more connections allowed|.*remaining connection slots)|"
            r"sorry, too many"
        ),
        Refusal.FULL,
    ),
)
"""Before there is a connection psycopg has no code, and of a server that speaks another language this is not known."""


def refusal_of(error: Exception) -> Refusal | None:
    """None: the database did not answer, or says something else."""
    if not isinstance(error, DBAPIError):
        return None
    if isinstance(error.orig, sqlite3.Error):
        return _BY_SQLITE.get(_sqlite_code(error.orig))
    state = _state(error.orig)
    if state:
        return _BY_STATE.get(state) or _BY_STATE.get(state[:2])
    said = str(error.orig).partition("\n")[0]
    return next((kind for text, kind in _AT_LOGIN if text.search(said)), None)


def surely_undone(error: Exception) -> bool:
    """Whether nothing was done: a statement was refused, so that no COMMIT came after it. What is said to a COMMIT
    tells nothing, but where SQLite gave up waiting for another process: that is rolled back (`open_catalog`)."""
    if not isinstance(error, DBAPIError) or refusal_of(error) is None:
        return False
    of_sqlite = isinstance(error.orig, sqlite3.Error) and refusal_of(error) is Refusal.LOCKED
    return of_sqlite or error.statement is not None


def _sqlite_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _state(error: BaseException | None) -> str:
    """As psycopg, psycopg2 and pg8000 say it."""
    said = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if said is None and error is not None and error.args and isinstance(error.args[0], dict):
        said = error.args[0].get("C")
    return str(said or "")
