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
_IN_PLACE: dict[Any, Any] = {**dict.fromkeys(_DTYPES, 0), pa.string(): ""}
"""Of a null; of all other types no bytes."""


def to_column(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """A column of int32, int64, uint32, string, binary or (without null) binary of one width; None is null."""
    try:
        # Nearly all columns have no null, and looking for one takes longer than storing them.
        return _whole_column(values, type_)
    except TypeError:
        missing = values.count(None)
        if not missing or pa.types.is_fixed_size_binary(type_):
            raise
    if missing == len(values):
        return pa.nulls(missing, type_)
    nothing = _IN_PLACE.get(type_, b"")
    there = _whole_column([nothing if v is None else v for v in values], type_)
    validity = validity_of([v is not None for v in values])[0]
    return pa.Array.from_buffers(type_, len(values), [validity, *there.buffers()[1:]], missing)


def _whole_column(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """The same without nulls. Raises `TypeError` where there are some."""
    length = len(values)
    dtype = _DTYPES.get(type_)
    if dtype is not None:
        return pa.Array.from_buffers(type_, length, [None, pa.py_buffer(np.array(values, dtype=dtype))], 0)
    if pa.types.is_fixed_size_binary(type_):
        return pa.Array.from_buffers(type_, length, [None, pa.py_buffer(b"".join(values))], 0)
    if type_ == pa.string():
        whole = "".join(values)
        raw: Sequence[bytes | str] = values if whole.isascii() else [v.encode() for v in values]
        data = whole.encode() if whole.isascii() else b"".join(raw)  # type: ignore[arg-type]
    else:
        raw, data = values, b"".join(values)
    ends = np.cumsum(np.fromiter(map(len, raw), np.int64, length))
    return pa.Array.from_buffers(type_, length, [None, ends_to_offsets(ends), pa.py_buffer(data)], 0)


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
