"""The bytes of held chunks for whoever looks at them: out of the table, a few mebibytes at a time, and never to disk.

Proves nothing: what the bytes must be is in their key, which whoever takes them asks. Keeps I5.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from pyiceberg.table import FileScanTask, Table

from wavestitch.contracts.held import HeldKey
from wavestitch.tables.access.reading import reading_files
from wavestitch.tables.held.held_payloads import find_rows
from wavestitch.tables.lookup.file_scans import deleted_rows
from wavestitch.tables.lookup.unpacked import unpacked_bytes

_BUFFER = 1 << 20
_AT_ONCE_BYTES = 8 << 20


def stored_payloads(table: Table, snapshot_id: int, chunks: Collection[HeldKey]) -> Iterator[tuple[HeldKey, Any]]:
    """The chunks and their bytes (a buffer), file by file. Raises `Terminal` where one has none in this snapshot."""
    for task, rows in find_rows(table, snapshot_id, chunks):
        with reading_files(table, snapshot_id), table.io.new_input(task.file.file_path).open() as source:
            # Through a buffer a column is read page by page; without one, a row group of it at once.
            parquet = pq.ParquetFile(source, buffer_size=_BUFFER)
            yield from _of_file(parquet, dict(_as_written(table, task, rows)))


def _as_written(table: Table, task: FileScanTask, rows: list[tuple[int, HeldKey]]) -> Iterator[tuple[int, HeldKey]]:
    """A scan does not count rows that another tool has deleted."""
    gone = deleted_rows(table, task)
    if gone is None:
        yield from rows
        return
    live = np.delete(np.arange(task.file.record_count), gone)
    for row, key in rows:
        yield int(live[row]), key


def _of_file(parquet: pq.ParquetFile, wanted: dict[int, HeldKey]) -> Iterator[tuple[HeldKey, Any]]:
    before = 0
    for n in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(n)
        if any(before <= row < before + group.num_rows for row in wanted):
            some = _AT_ONCE_BYTES * group.num_rows // max(1, unpacked_bytes(group))
            at = before
            for batch in parquet.iter_batches(batch_size=max(1, some), row_groups=[n], columns=["payload"]):
                payloads = batch["payload"]
                for row in range(at, at + batch.num_rows):
                    if (key := wanted.get(row)) is not None:
                        yield key, payloads[row - at].as_buffer()
                at += batch.num_rows
        before += group.num_rows
