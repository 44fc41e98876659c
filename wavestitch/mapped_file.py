"""A file as memory, for those who want little of it here and there."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from wavestitch.plain_files import open_plain


def map_sparsely(path: Path) -> Any:
    """The plain file as an Arrow buffer, of which only pages that are touched are read.

    Of a file that Arrow maps itself, Linux reads what lies around them, too: of a landing file, all payload for the
    sake of the index.
    """
    with open_plain(path) as file:
        if not os.fstat(file.fileno()).st_size:
            return pa.py_buffer(b"")  # nothing cannot be mapped
        mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    mapped.madvise(mmap.MADV_RANDOM)
    return pa.py_buffer(mapped)
