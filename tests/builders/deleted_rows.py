"""Rows deleted as engines do it that merge when they read: a file beside the data file says which they are."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
)
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles

from wavestitch.tables.commit.own_place import local_path

_PLACES = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {b"PARQUET:field_id": b"2147483546"}),
        pa.field("pos", pa.int64(), False, {b"PARQUET:field_id": b"2147483545"}),
    ]
)

_BOUNDS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def delete_rows(table: Table, ids: Collection[str]) -> None:
    """The rows of these waveforms, in one snapshot of nobody's of ours."""
    made = [found for task in table.scan().plan_files() if (found := _deletes(table, task, ids)) is not None]
    change = table.transaction()
    snapshot = _Deletes(Operation.OVERWRITE, change, table.io)
    snapshot.of(table, made)
    with snapshot:
        pass
    change.commit_transaction()


def _deletes(table: Table, task: FileScanTask, ids: Collection[str]) -> DataFile | None:
    """The file that says which rows of this one are deleted."""
    of_file = pq.ParquetFile(local_path(task.file.file_path)).read(columns=["waveform_id"])["waveform_id"].to_pylist()
    rows = [n for n, waveform_id in enumerate(of_file) if waveform_id in ids]
    if not rows:
        return None
    path = f"{table.location()}/data/deletes-{uuid4()}.parquet"
    local = Path(local_path(path))
    pq.write_table(pa.table({"file_path": [task.file.file_path] * len(rows), "pos": rows}, schema=_PLACES), local)
    bounds: dict[str, Any] = {key: {} for key in _BOUNDS}
    made = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=task.file.partition,
        record_count=len(rows),
        file_size_in_bytes=local.stat().st_size,
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
        **bounds,
    )
    made.spec_id = task.file.spec_id
    return made


class _Manifest(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _Deletes(_FastAppendFiles):
    """pyiceberg writes no such snapshots."""

    def of(self, table: Table, made: Collection[DataFile]) -> None:
        self._stored, self._made = table, made

    def _manifests(self) -> list[Any]:
        table, found = self._stored, self._existing_manifests()
        for file in self._made:
            out = self._io.new_output(f"{table.location()}/metadata/deletes-{uuid4()}.avro")
            with _Manifest(table.specs()[file.spec_id], table.schema(), out, self._snapshot_id, "null") as writer:
                writer.add_entry(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=None,
                        file_sequence_number=None,
                        data_file=file,
                    )
                )
            found = [*found, writer.to_manifest_file()]
        return found
