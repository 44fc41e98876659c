"""One process at a time in a folder of this machine. The lock goes with its process, however that ends."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wavestitch.modes import make_folder, opener


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Waits until no other process holds this folder. The lock file stays: removing it would let two in."""
    make_folder(folder)
    with open(folder / ".lock", "w", opener=opener) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
