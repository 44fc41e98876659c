"""What is published of given waveforms, looked up in the whole table (I2).

Ids are looked for first, in the id column alone; what a waveform's chunks were is read only in files that have a hit.
Samples are never read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table import Table

from wavestitch.contracts.held import PublishedChunk, PublishedWaveform
from wavestitch.tables.file_scans import files_to_read, read_file
from wavestitch.tables.row_filter import EVERY_ROW, is_in

_MOST_IN_FILTER = 500


def find_published(
    table: Table, ids: Collection[str], *, snapshot_id: int | None = None
) -> dict[str, PublishedWaveform]:
    """The published ones of these ids, in this snapshot of the table (the current one)."""
    wanted = pa.array(sorted(set(ids)), pa.string())
    found: dict[str, PublishedWaveform] = {}
    if not len(wanted):
        return found
    few = is_in("waveform_id", ids) if len(wanted) <= _MOST_IN_FILTER else EVERY_ROW
    for task in files_to_read(table, few, snapshot_id=snapshot_id):
        hits = [
            i.as_py()
            for batch in read_file(table, task, ["waveform_id"])
            for i in batch.filter(pc.is_in(batch["waveform_id"], value_set=wanted))["waveform_id"]
        ]
        if not hits:
            continue
        for batch in read_file(table, task, ["waveform_id", "chunks"]):
            for row in batch.filter(pc.is_in(batch["waveform_id"], value_set=wanted)).to_pylist():
                found[row["waveform_id"]] = _waveform(row["waveform_id"], row["chunks"])
    return found


def _waveform(waveform_id: str, chunks: list[dict[str, Any]]) -> PublishedWaveform:
    return PublishedWaveform(
        waveform_id, tuple(PublishedChunk(c["partition"], c["offset"], c["length"], c["piece"]) for c in chunks)
    )
