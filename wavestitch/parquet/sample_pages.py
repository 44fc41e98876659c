"""The column `samples` as pages of Parquet: levels, values and compression, a mebibyte at a time.

pyarrow's writer makes four bytes of levels for each sample of a list, and one page of a whole waveform: with buffers,
nine times its size in memory. Here the levels of a list are a few bytes, a waveform is cut into pages where it is
larger than one, and values are widened a page at a time. Decides nothing about what a value is (`sample_types`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from wavestitch.contracts.sample_kinds import Encoding, SampleType
from wavestitch.contracts.sample_types import FORMAT_DTYPES, TYPE_DTYPES, Values, as_type, runs_of_formats
from wavestitch.parquet.compact_thrift import I32, STRUCT, Reader, encode, varint

PAGE_BYTES = 1 << 20
"""Of values, before they are encoded. A reader that wants one row takes whole pages into memory."""

_DELTA_BINARY_PACKED, _BYTE_STREAM_SPLIT, _RLE = 5, 9, 3
_UNCOMPRESSED, _ZSTD, _LZ4_RAW = 0, 6, 7
Ints = npt.NDArray[np.int64]


class Samples(Protocol):
    """Samples of some waveforms, one behind the other: waveform i is samples `[bounds[i], bounds[i + 1])`."""

    @property
    def bounds(self) -> Ints: ...

    def values(self, start: int, end: int) -> Values:
        """Samples `[start, end)`, in the dtype of the table's type, or whole numbers in a narrower one."""


@dataclass(frozen=True, slots=True)
class TypedSamples:
    """Samples that are values already."""

    all: Values
    bounds: Ints

    def values(self, start: int, end: int) -> Values:
        return self.all[start:end]


def typed_samples(lists: Any) -> TypedSamples:
    """The samples of a column of lists, as pyarrow has it."""
    flat = lists.flatten()  # without what lies before and behind a slice
    return TypedSamples(flat.to_numpy(), np.concatenate(([0], np.cumsum(pc.list_value_length(lists).to_numpy()))))


class _Run(NamedTuple):
    """Neighbours of one format: samples `[start, end)`, from byte `begin` on."""

    start: int
    end: int
    begin: int
    dtype: str


class SentSamples:
    """Samples as they were sent, which fit the type: waveform i is bytes `[cuts[i], cuts[i + 1])` of `data`, in the
    format `formats[i]`. What is asked for becomes numbers of the type then, and not before."""

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        cuts: Ints,
        formats: Sequence[str] | npt.NDArray[np.str_],
        samples: SampleType,
    ) -> None:
        self._data = data
        self._type = samples
        runs = runs_of_formats(formats)
        counts = np.diff(cuts)
        for lo, hi, sample_format in runs:
            counts[lo:hi] //= np.dtype(FORMAT_DTYPES[sample_format]).itemsize
        self.bounds: Ints = np.concatenate(([0], np.cumsum(counts)))
        self._runs = [
            _Run(int(self.bounds[lo]), int(self.bounds[hi]), int(cuts[lo]), FORMAT_DTYPES[sample_format])
            for lo, hi, sample_format in runs
        ]

    def values(self, start: int, end: int) -> Values:
        parts = [self._part(run, max(start, run.start), min(end, run.end)) for run in self._runs_of(start, end)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _runs_of(self, start: int, end: int) -> list[_Run]:
        return [run for run in self._runs if run.start < end and start < run.end]

    def _part(self, run: _Run, start: int, end: int) -> Values:
        width = np.dtype(run.dtype).itemsize
        begin = run.begin + (start - run.start) * width
        sent = self._data[begin : begin + (end - start) * width].view(run.dtype)
        own = np.dtype(TYPE_DTYPES[self._type])
        narrower = sent.dtype.kind == own.kind == "i" and width < own.itemsize
        return sent if narrower else as_type(sent, self._type)


@dataclass(frozen=True, slots=True)
class Page:
    """A data page, ready to be written: its header, then its body, which is valid until the next page is asked for.
    `size`: bytes before compression, the header included."""

    header: bytes
    body: Any
    size: int
    values: int


class SamplePages:
    """How one stream's samples become pages."""

    def __init__(self, samples: SampleType, encoding: Encoding) -> None:
        self.samples = samples
        self._dtype = np.dtype(TYPE_DTYPES[samples])
        delta = encoding == "small" and self._dtype.kind == "i"
        self.encoding = _DELTA_BINARY_PACKED if delta else _BYTE_STREAM_SPLIT
        self.codec = _UNCOMPRESSED if delta else _ZSTD if encoding == "small" else _LZ4_RAW
        named: dict[int, Any] = {_UNCOMPRESSED: {}, _ZSTD: {"compression": "zstd", "compression_level": 1}}
        how = named.get(self.codec, {"compression": "lz4_raw"})
        self._codec: Any = pa.Codec(**how) if how else None
        # Memory for a page, used again and again: what is asked for anew is cleared by the kernel each time.
        self._room = np.empty(0, np.uint8)

    def pages(self, found: Samples) -> Iterator[Page]:
        """The pages of all these samples, in order. A page holds whole waveforms, or a part of one."""
        most = PAGE_BYTES // self._dtype.itemsize
        bounds, n = found.bounds, 0
        while n < len(bounds) - 1:
            start, end = int(bounds[n]), int(bounds[n + 1])
            if end - start > most:
                for at in range(start, end, most):
                    upto = min(at + most, end)
                    yield self._page(found.values(at, upto), _begun(upto - at) if at == start else _gone_on(upto - at))
                n += 1
                continue
            upto = int(np.searchsorted(bounds, start + most, side="right")) - 1
            lengths = np.diff(bounds[n : upto + 1]).tolist()
            yield self._page(found.values(start, int(bounds[upto])), b"".join(map(_begun, lengths)))
            n = upto

    def _page(self, values: Values, repetition: bytes) -> Page:
        levels = b"".join(len(x).to_bytes(4, "little") + x for x in (repetition, _gone_on(len(values))))
        delta = self.encoding == _DELTA_BINARY_PACKED
        body: Any = self._delta(levels, values) if delta else self._split(levels, values)
        size = len(body)
        if self._codec is not None:
            body = self._codec.compress(body)
        header = encode(
            {
                1: (I32, 0),  # a data page of the first kind: of the second, each would have to begin with a waveform
                2: (I32, size),
                3: (I32, len(body)),
                5: (STRUCT, {1: (I32, len(values)), 2: (I32, self.encoding), 3: (I32, _RLE), 4: (I32, _RLE)}),
            }
        )
        return Page(header, body, len(header) + size, len(values))

    def _split(self, levels: bytes, values: Values) -> npt.NDArray[np.uint8]:
        """BYTE_STREAM_SPLIT in the dtype of the type: the first bytes of all values, then the second ones, …"""
        width, sent = self._dtype.itemsize, values.dtype.itemsize
        size = len(levels) + len(values) * width
        if len(self._room) < size + values.nbytes:
            self._room = np.empty(size + values.nbytes, np.uint8)
        shifted, body = self._room[: values.nbytes].view(values.dtype), self._room[values.nbytes :][:size]
        body[: len(levels)] = np.frombuffer(levels, np.uint8)
        planes = body[len(levels) :].reshape(width, -1)
        if sent == width:
            planes[:] = np.ascontiguousarray(values).view(np.uint8).reshape(-1, width).T
            return body
        # Narrower whole numbers: their own bytes one by one, and then the sign. That is four times as fast as widening
        # them and moving every byte.
        np.copyto(planes[0], values, casting="unsafe")
        for n in range(1, sent):
            np.copyto(planes[n], np.right_shift(values, 8 * n, out=shifted), casting="unsafe")
        np.copyto(planes[sent:], np.right_shift(values, 8 * sent - 1, out=shifted), casting="unsafe")
        return body

    def _delta(self, levels: bytes, values: Values) -> bytes:
        """By pyarrow's encoder, from a file with one page of these values and no levels."""
        values = as_type(values, self.samples)
        schema = pa.schema([pa.field("x", pa.from_numpy_dtype(values.dtype), nullable=False)])
        file = pa.BufferOutputStream()
        whole = {"data_page_size": 1 << 30, "write_batch_size": 1 << 30, "max_rows_per_page": 1 << 30}
        how = {"compression": "none", "use_dictionary": False, "write_statistics": False, "store_schema": False}
        with pq.ParquetWriter(file, schema, column_encoding={"x": "DELTA_BINARY_PACKED"}, **how, **whole) as writer:
            writer.write_batch(pa.record_batch([pa.array(values)], schema=schema))
        written = file.getvalue().to_pybytes()
        reader = Reader(written, 4)
        page = reader.struct()
        if page[5][1][1][1] != len(values):
            raise AssertionError(f"pyarrow made pages of {page[5][1][1][1]} of {len(values)} values")
        packed: bytes = written[reader.at : reader.at + page[2][1]]
        return levels + packed


@lru_cache(maxsize=4096)
def _begun(length: int) -> bytes:
    """Repetition levels of a waveform's first samples: a 0, then 1s; of one bit, as runs."""
    return b"\2\0" + (_gone_on(length - 1) if length > 1 else b"")


def _gone_on(length: int) -> bytes:
    """So many levels of 1, as one run."""
    return varint(length << 1) + b"\1"
