"""Whether a catalog or table of ours is being worked on, and how its files are reached.

Said by `own_catalogs`. Imports nothing of pyiceberg's, which asks while it is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_FILE_IO: ContextVar[str | None] = ContextVar("file_io_of_our_catalog", default=None)


@contextmanager
def working_on(file_io: str) -> Iterator[None]:
    """What is called inside is done for a catalog of ours, whose files are reached by this class. Never around a
    `yield` that others wait in."""
    token = _FILE_IO.set(file_io)
    try:
        yield
    finally:
        _FILE_IO.reset(token)


def our_file_io() -> str | None:
    """The class for files of the catalog of ours that is being worked on; None where it is somebody else's."""
    return _FILE_IO.get()


def is_ours() -> bool:
    return _FILE_IO.get() is not None
