"""Small data files of published waveforms put together: few large ones with the same rows, sorted by source and start.

Rows are sorted as far as `_SORTED_BYTES` of them reach, all columns counted, and written in row groups of
`_GROUP_BYTES`: then a source, and ids that begin with it, are in few of them. Samples keep the type that their file was
written in, and their bits: no value passes through anything that knows what a number is. What is written is durable,
and nothing names it yet. Decides nothing about which files. Keeps I3 and I5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from wavestitch.contracts.errors import Altered
from wavestitch.contracts.rows import published_schema
from wavestitch.contracts.sample_kinds import Encoding, SampleType
from wavestitch.contracts.sample_types import Values, type_of_list
from wavestitch.parquet.published_file import PublishedFile
from wavestitch.parquet.sample_pages import SamplePages, TypedSamples
from wavestitch.tables.access.durable_file_io import all_or_none
from wavestitch.tables.access.reading import reading, reading_files

_SORTED_BYTES = 256 << 20
_FILE_BYTES = 256 << 20
"""Unpacked, however little of a disk that is: whoever reads a file has it in memory."""
LARGE_BYTES = _FILE_BYTES // 4 * 3
"""A file that has so much is not put together with others."""
_ROW_BYTES = 400
"""Of a row and of each of its chunks, about, beside samples and metadata."""
_GROUP_BYTES = 16 << 20
# Of any type: without samples all are the same.
_WITHOUT_SAMPLES = pa.schema([f for f in published_schema("int") if f.name != "samples"])
_ORDER = [("source", "ascending"), ("start_time_ns", "ascending"), ("waveform_id", "ascending")]


def written_type(table: Table, file: DataFile) -> SampleType:
    """The type of the samples in this file, which may be narrower than the table's. Raises `Altered` where there is no
    such type."""
    with reading_files(table), table.io.new_input(file.file_path).open() as source:
        found = type_of_list(pq.ParquetFile(source).schema_arrow.field("samples").type)
    if found is None:
        raise Altered(f"{file.file_path} has samples of no type that is written; look for what wrote it")
    return found


def put_waveforms_together(
    table: Table, batches: Iterable[pa.RecordBatch], *, samples: SampleType, encoding: Encoding, target_bytes: int
) -> list[str]:
    """Where the files with these rows lie, all of samples of this type; each is of about `target_bytes`. `batches`: as
    `stream_file` gives them."""
    pages = SamplePages(samples, encoding)
    paths: list[str] = []
    with reading(".".join(table.name())), all_or_none(table.io, paths), ExitStack() as open_now:
        file: PublishedFile | None = None
        for rows, found, size in _groups(_sorted_units(batches)):
            if file is None:
                unpacked = 0
                paths.append(table.location_provider().new_data_location(f"{uuid4()}.parquet"))
                sink = open_now.enter_context(table.io.new_output(paths[-1]).create())
                file = PublishedFile(sink, pages)
            file.write_group(rows, found)
            unpacked += size
            if sink.tell() >= target_bytes or unpacked >= _FILE_BYTES:
                file.close()
                open_now.close()
                file = None
        if file is not None:
            file.close()
    return paths


class _Unit:
    """Rows that are sorted together, each with a view of its samples."""

    def __init__(self) -> None:
        self._rows: list[pa.RecordBatch] = []
        self._samples: list[Values] = []
        self._sizes: list[int] = []
        self.bytes = 0

    def take(self, batch: pa.RecordBatch) -> None:
        lists = batch["samples"]
        flat, ends = lists.flatten().to_numpy(), np.cumsum(pc.list_value_length(lists).to_numpy())
        parts = np.split(flat, ends[:-1])
        self._samples += parts
        meta = pc.fill_null(pc.binary_length(batch["meta"]), 0).to_numpy()
        chunks = pc.fill_null(pc.list_value_length(batch["chunks"]), 0).to_numpy()
        sizes = [int(parts[n].nbytes + meta[n] + _ROW_BYTES * (1 + chunks[n])) for n in range(len(parts))]
        self._sizes += sizes
        self._rows.append(batch.select(_WITHOUT_SAMPLES.names).cast(_WITHOUT_SAMPLES))
        self.bytes += sum(sizes)

    def in_order(self) -> Iterator[tuple[pa.Table, TypedSamples, int]]:
        """Its row groups, and how much each takes unpacked."""
        rows = pa.Table.from_batches(self._rows).combine_chunks()
        group: list[int] = []
        size = 0
        for n in pc.sort_indices(rows, sort_keys=_ORDER).to_pylist():
            if group and size + self._sizes[n] > _GROUP_BYTES:
                yield *self._group(rows, group), size
                group, size = [], 0
            group.append(n)
            size += self._sizes[n]
        if group:
            yield *self._group(rows, group), size

    def _group(self, rows: pa.Table, members: list[int]) -> tuple[pa.Table, TypedSamples]:
        parts = [self._samples[n] for n in members]
        bounds = np.concatenate(([0], np.cumsum([len(p) for p in parts])))
        return rows.take(pa.array(members, pa.int64())), TypedSamples(np.concatenate(parts), bounds)


def _sorted_units(batches: Iterable[pa.RecordBatch]) -> Iterator[_Unit]:
    unit = _Unit()
    for batch in batches:
        if batch.num_rows:
            unit.take(batch)
        if unit.bytes >= _SORTED_BYTES:
            yield unit
            unit = _Unit()
    if unit.bytes:
        yield unit


def _groups(units: Iterable[_Unit]) -> Iterator[tuple[pa.Table, TypedSamples, int]]:
    for unit in units:
        yield from unit.in_order()
