"""Python values to Arrow columns by way of numpy and plain buffers.

`pa.array` would do, but its first call imports pandas where that is installed: a quarter of a second of CPU in each
reader process, as much as it takes to land half a gigabyte.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

_DTYPES = {pa.int32(): np.int32, pa.int64(): np.int64, pa.uint32(): np.uint32}


def to_column(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """A column of int32, int64, uint32, string, binary or (without null) binary of one width; None is null."""
    length, missing = len(values), values.count(None)
    if missing == length:
        return pa.nulls(length, type_)
    validity = validity_of([v is not None for v in values])[0] if missing else None
    dtype = _DTYPES.get(type_)
    if dtype is not None:
        numbers = np.array([0 if v is None else v for v in values] if missing else values, dtype=dtype)
        return pa.Array.from_buffers(type_, length, [validity, pa.py_buffer(numbers)], missing)
    if pa.types.is_fixed_size_binary(type_):
        return pa.Array.from_buffers(type_, length, [None, pa.py_buffer(b"".join(values))], 0)
    if type_ == pa.string():
        texts = [v or "" for v in values] if missing else values
        whole = "".join(texts)
        raw: Sequence[bytes | str] = texts if whole.isascii() else [v.encode() for v in texts]
        data = whole.encode() if whole.isascii() else b"".join(raw)  # type: ignore[arg-type]
    else:
        raw = [v or b"" for v in values] if missing else values
        data = b"".join(raw)  # type: ignore[arg-type]
    ends = np.cumsum(np.fromiter(map(len, raw), np.int64, length))
    return pa.Array.from_buffers(type_, length, [validity, ends_to_offsets(ends), pa.py_buffer(data)], missing)


def ends_to_offsets(ends: Any) -> pa.Buffer:
    """Where each value ends, as Arrow's offsets: one more, beginning with 0. int32, as a batch is far below 2 GiB."""
    offsets = np.zeros(len(ends) + 1, dtype=np.int32)
    offsets[1:] = ends
    return pa.py_buffer(offsets)


def validity_of(present: Sequence[bool]) -> tuple[pa.Buffer | None, int]:
    """Arrow's bitmap (none where nothing is null), and the number of nulls."""
    nulls = len(present) - sum(present)
    if not nulls:
        return None, 0
    return pa.py_buffer(np.packbits(np.array(present, dtype=bool), bitorder="little")), nulls
