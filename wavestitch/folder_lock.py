"""One process at a time in a folder of this machine. The lock goes with its process, however that ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wavestitch.modes import make_folder, open_new


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Waits until no other process holds this folder. The lock file stays: removing it would let two in."""
    make_folder(folder)
    with os.fdopen(open_new(folder / ".lock", os.O_WRONLY), "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
