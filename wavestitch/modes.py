"""Who may come to what we make: its owner and the owner's group, whatever the mask of the process says.

A careless mask (0) would open what is made to everybody, a careful one (077) would close it to that part of the
deployment which runs as another user of the group. So modes are set, after a file or folder was made with no more than
them. What was there before keeps its mode: it is another's matter.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = 0o750
FILE = 0o640
OWN_FOLDER = 0o700
"""For what is nobody's but ours: caches, servers' homes."""
MASK = 0o027
"""For programs that make files themselves: it leads to the modes above."""


def make_folder(folder: str | os.PathLike[str], mode: int = FOLDER) -> Path:
    """Make the folder and what is missing above it."""
    path = Path(folder)
    missing = []
    while not path.is_dir():
        missing.append(path)
        if path == path.parent:
            break
        path = path.parent
    for each in reversed(missing):
        try:
            each.mkdir(mode)
        except FileExistsError:
            if not each.is_dir():
                raise
            continue  # another process was first
        each.chmod(mode)
    return Path(folder)


def open_new(path: str | os.PathLike[str], flags: int, mode: int = FILE) -> int:
    """A descriptor; where the file is made by this, with the mode."""
    try:
        handle = os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        if flags & os.O_EXCL:
            raise
        return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, mode)
    os.fchmod(handle, mode)
    return handle


def opener(path: str, flags: int) -> int:
    """For `open`."""
    return open_new(path, flags)


@contextmanager
def masked() -> Iterator[None]:
    """Around code of others that makes files in this process. Its mask is that of all its threads meanwhile."""
    before = os.umask(MASK)
    try:
        yield
    finally:
        os.umask(before)
