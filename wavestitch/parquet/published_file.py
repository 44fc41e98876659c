"""Writes a Parquet file of published waveforms, a row group at a time, to wherever bytes go.

pyarrow writes each row group without its samples, as a file of one group in memory; the samples' pages follow it, and
what the group's footer says of sizes and places is set right. Each group lies together, its first column first: readers
that deal out a file by row groups go by where they begin. The same input gives the same bytes (I6).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from wavestitch.contracts.errors import Altered
from wavestitch.contracts.rows import published_schema
from wavestitch.contracts.sample_types import type_of_list
from wavestitch.parquet.compact_thrift import I16, I32, I64, LIST, STRUCT, Items, Reader, Struct, encode
from wavestitch.parquet.sample_pages import SamplePages, Samples

_MAGIC = b"PAR1"
_REPEATING = ["source", "channel", "sample_format", "units", "topic_id", "plan_id"]
_NOT_COMPARED = frozenset(("samples", "meta", "chunks", "digest"))  # statistics of these help no reader
_COPIED = 4 << 20
_RLE = 3
# Of a column of a row group: where things begin, that move with it.
_PLACES = (9, 10, 11, 14)
_LEVEL_STATISTICS = (8, 10, 11, 12, 13, 14, 15, 16)


class Sink(Protocol):
    def write(self, data: Any) -> int: ...

    def tell(self) -> int: ...


class PublishedFile:
    """One file in the making."""

    def __init__(self, sink: Sink, pages: SamplePages) -> None:
        self._sink = sink
        self._pages = pages
        self.schema = published_schema(pages.samples)
        self._footer: Struct | None = None
        self._groups: list[Struct] = []

    def write_group(self, rows: pa.Table, found: Samples) -> None:
        """A row group of these rows, all columns but `samples`, in order; `found` has theirs."""
        if not self._groups:
            self._sink.write(_MAGIC)
        begin = self._sink.tell()
        body, footer = self._without_samples(rows)
        self._sink.write(body)
        group = _only_group(footer)
        _move(group, by=begin - len(_MAGIC))
        chunk = next(c for c in group[1][1].values if c[3][1][3][1].values[0] == b"samples")
        written = self._write_pages(self._pages.pages(found))
        _set_samples(group, chunk, written, self._pages)
        group[7] = (I16, len(self._groups))
        self._groups.append(group)
        self._footer = self._footer or footer

    def copy_group(self, group: StoredGroup) -> None:
        """A row group of another such file, byte for byte."""
        if not self._groups:
            self._sink.write(_MAGIC)
        begin = self._sink.tell()
        for part in group.parts():
            self._sink.write(part)
        _move(group.about, by=begin - group.begin)
        group.about[7] = (I16, len(self._groups))
        self._groups.append(group.about)
        self._footer = self._footer or group.footer

    def close(self) -> None:
        """Write the footer. A file without a row group has none, and nothing in it."""
        if self._footer is None:
            return
        self._footer[3] = (I64, sum(g[3][1] for g in self._groups))
        self._footer[4] = (LIST, Items(STRUCT, self._groups))
        footer = encode(self._footer)
        self._sink.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)

    def _without_samples(self, rows: pa.Table) -> tuple[memoryview, Struct]:
        """What pyarrow writes of a group, and its footer; each waveform has no samples there."""
        none = pa.ListArray.from_arrays(
            pa.array([0] * (rows.num_rows + 1), pa.int32()),
            pa.array([], self.schema.field("samples").type.value_type),
            type=self.schema.field("samples").type,
        )
        columns = [none if f.name == "samples" else rows.column(f.name) for f in self.schema]
        whole = pa.table(columns, schema=self.schema)
        file = pa.BufferOutputStream()
        ids = {"waveform_id": {"ndv": rows.num_rows, "fpp": 0.01}}
        with pq.ParquetWriter(
            file,
            self.schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=_REPEATING,
            write_statistics=[n for n in self.schema.names if n not in _NOT_COMPARED],
            # Who looks for one id among files whose bounds do not rule it out reads these few bytes of each group.
            bloom_filter_options=ids,
        ) as writer:
            writer.write_table(whole, row_group_size=rows.num_rows)
        written = memoryview(file.getvalue())
        size = int.from_bytes(written[-8:-4], "little")
        return written[len(_MAGIC) : -8 - size], Reader(bytes(written[-8 - size : -8])).struct()

    def _write_pages(self, pages: Iterator[Any]) -> tuple[int, int, int, int]:
        """Where the first begins; bytes, bytes before compression, and values of all."""
        begin, size, whole, values = self._sink.tell(), 0, 0, 0
        for page in pages:
            written = self._sink.write(page.header) + self._sink.write(page.body)
            size, whole, values = size + written, whole + page.size, values + page.values
        return begin, size, whole, values


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A row group of such a file: bytes `[begin, end)` of it."""

    path: Path
    begin: int
    end: int
    about: Struct
    footer: Struct

    def parts(self) -> Iterator[bytes]:
        """Its bytes, some at a time."""
        with self.path.open("rb") as file:
            file.seek(self.begin)
            for at in range(self.begin, self.end, _COPIED):
                yield file.read(min(_COPIED, self.end - at))


def stored_groups(path: Path) -> list[StoredGroup]:
    """The row groups of a file that `PublishedFile` has written, in order."""
    with path.open("rb") as file:
        size = file.seek(-8, os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        file.seek(size - length)
        footer = Reader(file.read(length)).struct()
    groups = footer[4][1].values
    begins = [_begin(g) for g in groups]
    ends = [*begins[1:], size - length]
    return [StoredGroup(path, b, e, g, footer) for g, b, e in zip(groups, begins, ends, strict=True)]


def pages_as_in(path: Path) -> SamplePages:
    """How the samples of such a file were made pages."""
    with pq.ParquetFile(path) as file:
        samples = type_of_list(file.schema_arrow.field("samples").type)
        group = file.metadata.row_group(0)
        columns = (group.column(n) for n in range(group.num_columns))
        packed = next(c for c in columns if c.path_in_schema.startswith("samples."))
    if samples is None:
        raise Altered(f"{path} has samples of no type that is written; run the batch's reassemble step again")
    return SamplePages(samples, "fast" if packed.compression == "LZ4" else "small")


def _begin(group: Struct) -> int:
    """Where the first page of the first column is: the first of the group."""
    about = group[1][1].values[0][3][1]
    return min(int(about[field][1]) for field in (9, 11) if field in about)


def _only_group(footer: Struct) -> Struct:
    [group] = footer[4][1].values
    found: Struct = group
    return found


def _move(group: Struct, *, by: int) -> None:
    for chunk in group[1][1].values:
        about = chunk[3][1]
        for field in _PLACES:
            if field in about:
                about[field] = (I64, about[field][1] + by)
        if chunk[2][1]:
            chunk[2] = (I64, chunk[2][1] + by)
    if 5 in group:
        group[5] = (I64, group[5][1] + by)


def _set_samples(group: Struct, chunk: Struct, written: tuple[int, int, int, int], pages: SamplePages) -> None:
    begin, size, whole, values = written
    about = chunk[3][1]
    group[2] = (I64, group[2][1] + whole - about[6][1])
    group[6] = (I64, group[6][1] + size - about[7][1])
    for field in _LEVEL_STATISTICS:
        about.pop(field, None)
    about[2] = (LIST, Items(I32, [_RLE, pages.encoding]))
    about[4] = (I32, pages.codec)
    about[5], about[6], about[7], about[9] = (I64, values), (I64, whole), (I64, size), (I64, begin)
