"""A file as memory, for those who want little of it here and there."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import pyarrow as pa


def map_sparsely(path: Path) -> Any:
    """The file as an Arrow buffer, of which only pages that are touched are read.

    Of a file that Arrow maps itself, Linux reads what lies around them, too: of a landing file, all payload for the
    sake of the index.
    """
    with path.open("rb") as file:
        if not path.stat().st_size:
            return pa.py_buffer(b"")  # nothing cannot be mapped
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    mapped.madvise(mmap.MADV_RANDOM)
    return pa.py_buffer(mapped)
