"""How large the pages of a Parquet column are, read from the file itself: no library tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

_I8, _BINARY, _LIST, _STRUCT = 3, 8, 9, 12


class _Compact:
    """Just enough of Thrift's compact protocol to read the header of a page."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._data[self.at]
            self.at += 1
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found

    def struct(self) -> dict[int, Any]:
        found: dict[int, Any] = {}
        field = 0
        while byte := self._data[self.at]:
            self.at += 1
            field = field + (byte >> 4) if byte >> 4 else self._zigzag()
            found[field] = self._value(byte & 0xF)
        self.at += 1
        return found

    def _zigzag(self) -> int:
        raw = self.varint()
        return (raw >> 1) ^ -(raw & 1)

    def _value(self, kind: int) -> Any:
        if kind in (1, 2):  # true, false: in the type itself
            return kind == 1
        if kind == _BINARY:
            size = self.varint()
            self.at += size
            return self._data[self.at - size : self.at]
        if kind == _STRUCT:
            return self.struct()
        if kind == _I8:
            self.at += 1
            return self._data[self.at - 1]
        if kind == _LIST:
            raise AssertionError("the header of a page has no list")
        return self._zigzag()


def page_sizes(path: Path, column: str) -> list[list[int]]:
    """Per row group, the uncompressed size of each page of a top-level column, in bytes."""
    metadata = pq.ParquetFile(path).metadata
    number = next(
        n for n in range(metadata.num_columns) if metadata.row_group(0).column(n).path_in_schema.split(".")[0] == column
    )
    found = []
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(number)
        begin = chunk.dictionary_page_offset or chunk.data_page_offset
        with path.open("rb") as file:
            file.seek(begin)
            data = file.read(chunk.total_compressed_size)
        sizes, at = [], 0
        while at < len(data):
            reader = _Compact(data[at:])
            header = reader.struct()
            sizes.append(header[2])
            at += reader.at + header[3]
        found.append(sizes)
    return found
