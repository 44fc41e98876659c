"""Samples of one waveform out of a file that `PublishedFile` wrote, a page at a time: the inverse of `sample_pages`.

pyarrow gives a row as a whole, with its levels several times its size in memory. Here the headers of the pages are
walked, what lies before is skipped, and one page is in memory: a part of a waveform costs that part, however long the
waveform is. Pages of another writer are refused, never guessed at. Invariant: what is given is what pyarrow reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.sample_types import Values
from wavestitch.parquet.compact_thrift import BINARY, I32, I64, LIST, STRUCT, Items, Reader, encode, varint
from wavestitch.parquet.sample_pages import PAGE_BYTES

_HEADER_BYTES = 128
_MOST_PAGE_BYTES = 8 * PAGE_BYTES
"""Larger pages than our own, so that a later version may write some; what is larger still is never unpacked."""
_DATA_PAGE, _DELTA, _SPLIT, _RLE = 0, 5, 9, 3
_CODECS = {"UNCOMPRESSED": None, "ZSTD": "zstd", "LZ4": "lz4_raw", "LZ4_RAW": "lz4_raw"}
_DTYPES: dict[str, np.dtype[Any]] = {
    "INT32": np.dtype("<i4"),
    "INT64": np.dtype("<i8"),
    "FLOAT": np.dtype("<f4"),
    "DOUBLE": np.dtype("<f8"),
}
_TYPES = {"INT32": 1, "INT64": 2}
_REQUIRED = 0


class Source(Protocol):
    """An open file."""

    def seek(self, offset: int) -> Any: ...

    def read(self, size: int) -> bytes: ...


class _Page(NamedTuple):
    """Values `[start, end)` of the column are in these bytes of the file."""

    start: int
    end: int
    begin: int
    size: int
    unpacked: int
    encoding: int


@dataclass(frozen=True, slots=True)
class StoredSamples:
    """The column `samples` of one row group. `name`: of the file, for what is said of it."""

    source: Source
    name: str
    begin: int
    end: int
    kind: str
    codec: str

    @classmethod
    def of(cls, source: Source, name: str, group: Any) -> StoredSamples:
        """`group`: pyarrow's `RowGroupMetaData`. Raises `Refused` where the column is none that is written here."""
        columns = (group.column(n) for n in range(group.num_columns))
        about = next((c for c in columns if c.path_in_schema.startswith("samples.")), None)
        if about is None or about.physical_type not in _DTYPES or about.compression not in _CODECS:
            raise _foreign(name, "a column of samples of another kind")
        begin = about.data_page_offset
        # A dictionary would stand before the first page of data: ours have none.
        if about.has_dictionary_page:
            raise _foreign(name, "a dictionary of samples")
        end = begin + about.total_compressed_size
        return cls(source, name, begin, end, about.physical_type, about.compression)

    @property
    def dtype(self) -> np.dtype[Any]:
        return _DTYPES[self.kind]

    def parts(self, start: int, end: int) -> Iterator[Values]:
        """Values `[start, end)` of the row group, one behind the other: shape (n,) each, in the column's dtype. Raises
        `Refused` for pages of another writer."""
        for page in self._pages():
            if page.start >= end:
                return
            if page.end > start:
                values = self._values(page)
                yield values[max(0, start - page.start) : end - page.start]

    def _pages(self) -> Iterator[_Page]:
        at, number = self.begin, 0
        while at < self.end:
            self.source.seek(at)
            reader = Reader(self.source.read(_HEADER_BYTES))
            try:
                header = reader.struct()
                kind, unpacked, packed = (int(header[field][1]) for field in (1, 2, 3))
                values, encoding, *levels = (int(header[5][1][field][1]) for field in (1, 2, 3, 4))
            except (LookupError, TypeError, ValueError) as error:
                raise _foreign(self.name, "a page whose header is another one") from error
            if kind != _DATA_PAGE or encoding not in (_DELTA, _SPLIT) or levels != [_RLE, _RLE]:
                raise _foreign(self.name, f"a page of kind {kind} and encoding {encoding}")
            fits = 0 <= unpacked <= _MOST_PAGE_BYTES and 0 < values <= _MOST_PAGE_BYTES // self.dtype.itemsize
            if not (fits and 0 < packed <= self.end - at):
                raise _foreign(self.name, f"a page of {values} samples in {unpacked} bytes")
            yield _Page(number, number + values, at + reader.at, packed, unpacked, encoding)
            at, number = at + reader.at + packed, number + values

    def _values(self, page: _Page) -> Values:
        self.source.seek(page.begin)
        packed = self.source.read(page.size)
        try:
            return self._unpacked(page, packed)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise _foreign(self.name, "a page that cannot be unpacked") from error

    def _unpacked(self, page: _Page, packed: bytes) -> Values:
        body: Any = packed
        if (codec := _CODECS[self.codec]) is not None:
            body = pa.Codec(codec).decompress(body, decompressed_size=page.unpacked)
        body, count = memoryview(body).cast("B"), page.end - page.start
        for expected in (None, varint(count << 1) + b"\1"):
            length = int.from_bytes(body[:4], "little")
            levels, body = body[4 : 4 + length], body[4 + length :]
            # Each value is there: else the numbers of samples and of values would be two.
            if expected is not None and levels != expected:
                raise _foreign(self.name, "a page with samples that are null")
        return _delta(body, count, self.kind) if page.encoding == _DELTA else _joined(body, count, self.dtype)


def _joined(body: memoryview, count: int, dtype: np.dtype[Any]) -> Values:
    """The inverse of BYTE_STREAM_SPLIT."""
    split: npt.NDArray[np.uint8] = np.frombuffer(body, np.uint8, count * dtype.itemsize).reshape(dtype.itemsize, -1)
    found: Values = np.ascontiguousarray(split.T).view(dtype).reshape(-1)
    return found


def _delta(body: memoryview, count: int, kind: str) -> Values:
    """By pyarrow's decoder, from a file with one page of these values and no levels."""
    page = encode(
        {
            1: (I32, _DATA_PAGE),
            2: (I32, len(body)),
            3: (I32, len(body)),
            5: (STRUCT, {1: (I32, count), 2: (I32, _DELTA), 3: (I32, _RLE), 4: (I32, _RLE)}),
        }
    )
    size = len(page) + len(body)
    about = {
        1: (I32, _TYPES[kind]),
        2: (LIST, Items(I32, [_DELTA, _RLE])),
        3: (LIST, Items(BINARY, [b"x"])),
        4: (I32, 0),
        5: (I64, count),
        6: (I64, size),
        7: (I64, size),
        9: (I64, 4),
    }
    columns = [{2: (I64, 0), 3: (STRUCT, about)}]
    group = {1: (LIST, Items(STRUCT, columns)), 2: (I64, size), 3: (I64, count)}
    schema = [{4: (BINARY, b"schema"), 5: (I32, 1)}, {1: (I32, _TYPES[kind]), 3: (I32, _REQUIRED), 4: (BINARY, b"x")}]
    footer = encode(
        {
            1: (I32, 2),
            2: (LIST, Items(STRUCT, schema)),
            3: (I64, count),
            4: (LIST, Items(STRUCT, [group])),
        }
    )
    file = b"".join((b"PAR1", page, body, footer, len(footer).to_bytes(4, "little"), b"PAR1"))
    found: Values = pq.read_table(pa.BufferReader(file), use_threads=False).column("x").to_numpy()
    return found


def _foreign(name: str, seen: str) -> Refused:
    return Refused(
        f"{name} has {seen}, which Wavestitch did not write; samples are shown out of files of its own alone: read the "
        "waveform in Python, which takes any (docs/reading.md)",
        for_guests=False,
        file=name,
    )
