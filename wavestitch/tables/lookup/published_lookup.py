"""What is published of given waveforms, looked up in the whole table (I2).

The index says which files have them, and only these are opened. Without an index every file that can have them is, for
its id column alone. Samples are never read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table

from wavestitch.contracts.held import PublishedChunk, PublishedWaveform
from wavestitch.tables.lookup.file_scans import files_to_read, read_file
from wavestitch.tables.lookup.id_index import FileWithIds, IdIndex
from wavestitch.tables.lookup.row_filter import EVERY_ROW, is_in

_MOST_IN_FILTER = 500


def find_published(
    table: Table, ids: Collection[str], *, index: IdIndex | None = None, snapshot_id: int | None = None
) -> dict[str, PublishedWaveform]:
    """The published ones of these ids, in this snapshot of the table (the current one)."""
    found = published_in_files(table, ids, index=index, snapshot_id=snapshot_id)
    return {row.waveform_id: row for _, row in found}


def published_in_files(
    table: Table, ids: Collection[str], *, index: IdIndex | None = None, snapshot_id: int | None = None
) -> Iterator[tuple[DataFile, PublishedWaveform]]:
    """The same, each with the file that has it."""
    if not ids:
        return
    if index is None:
        few = is_in("waveform_id", ids) if len(ids) <= _MOST_IN_FILTER else EVERY_ROW
        files = [FileWithIds(task, set(ids)) for task in files_to_read(table, few, snapshot_id=snapshot_id)]
    else:
        files = index.tasks_of(table, ids, snapshot_id=snapshot_id)
    for task, some in files:
        wanted = pa.array(sorted(some), pa.string())
        if index is None and not _has_any(table, task, wanted, snapshot_id):
            continue
        few = is_in("waveform_id", some) if len(some) <= _MOST_IN_FILTER else EVERY_ROW
        for batch in read_file(table, task, ["waveform_id", "chunks"], few, snapshot_id=snapshot_id):
            for row in batch.filter(pc.is_in(batch["waveform_id"], value_set=wanted)).to_pylist():
                yield task.file, _waveform(row["waveform_id"], row["chunks"])


def count_by_plan(table: Table) -> dict[str, int]:
    """How many rows there are of each plan."""
    found = Counter[str]()
    for task in files_to_read(table):
        for batch in read_file(table, task, ["plan_id"]):
            for one in pc.value_counts(batch["plan_id"]).to_pylist():
                found[one["values"]] += one["counts"]
    return dict(found)


def _has_any(table: Table, task: FileScanTask, wanted: pa.Array, snapshot_id: int | None) -> bool:
    ids = (batch["waveform_id"] for batch in read_file(table, task, ["waveform_id"], snapshot_id=snapshot_id))
    return any(pc.any(pc.is_in(i, value_set=wanted)).as_py() for i in ids)


def _waveform(waveform_id: str, chunks: list[dict[str, Any]]) -> PublishedWaveform:
    return PublishedWaveform(
        waveform_id, tuple(PublishedChunk(c["partition"], c["offset"], c["length"], c["piece"]) for c in chunks)
    )
