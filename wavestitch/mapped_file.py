"""A file as memory, for those who want little of it here and there."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
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


def fetch_besides(path: Path, column: str) -> None:
    """Have the system read all of an Arrow file but the values of this column, which lie together in each record batch.

    For who will touch all the rest: page by page as it is touched, a disk is asked for each and waited for. Only asks;
    of a file that is gone or damaged, whoever reads it says what is wrong with it.
    """
    with suppress(pa.ArrowException, OSError, KeyError), open_plain(path) as file:
        mapped, begin = map_sparsely(path), 0
        reader = pa.ipc.open_file(mapped)
        for n in range(reader.num_record_batches):
            values = reader.get_batch(n).column(column).buffers()[-1]
            if values is not None and begin <= (at := values.address - mapped.address) <= mapped.size:
                # Of no length it would ask for all that is left.
                os.posix_fadvise(file.fileno(), begin, max(1, at - begin), os.POSIX_FADV_WILLNEED)
                begin = at + values.size
        os.posix_fadvise(file.fileno(), begin, max(1, mapped.size - begin), os.POSIX_FADV_WILLNEED)
