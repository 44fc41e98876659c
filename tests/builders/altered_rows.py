"""Rows that another engine has changed: their data file written anew, in a snapshot of nobody's of ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.types import StringType

from wavestitch.tables.commit.own_place import local_path

_BOUNDS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


def alter_row(table: Table, waveform_id: str, **changes: Any) -> None:
    """`changes`: by column, the new value."""
    for task in table.scan().plan_files():
        found = pq.ParquetFile(local_path(task.file.file_path)).read()
        mine = pc.equal(found["waveform_id"], waveform_id)
        if not pc.any(mine).as_py():
            continue
        for name, value in changes.items():
            at = found.schema.get_field_index(name)
            field = found.schema.field(at)
            values = [value if own else old for own, old in zip(mine.to_pylist(), found[name].to_pylist(), strict=True)]
            found = found.set_column(at, field, pa.array(values, field.type))
        with table.transaction().update_snapshot().overwrite() as change:
            change.delete_data_file(task.file)
            change.append_data_file(_written(table, found, task.file))
        change._transaction.commit_transaction()


def fill_column(table: Table, name: str, of: Mapping[str, str]) -> None:
    """A column of somebody's own, with a text for each waveform, as an engine that copies on write has it."""
    with table.update_schema() as columns:
        columns.add_column(name, StringType())
    kinds = schema_to_pyarrow(table.refresh().schema(), include_field_ids=True)  # files of engines say their ids
    for task in list(table.scan().plan_files()):
        found = pq.ParquetFile(local_path(task.file.file_path)).read()
        texts = pa.array([of[i] for i in found["waveform_id"].to_pylist()], pa.string())
        rows = found.append_column(name, texts).select(kinds.names).cast(kinds)
        with table.transaction().update_snapshot().overwrite() as change:
            change.delete_data_file(task.file)
            change.append_data_file(_written(table, rows, task.file))
        change._transaction.commit_transaction()
        table.refresh()


def _written(table: Table, rows: pa.Table, like: DataFile) -> DataFile:
    path = f"{table.location()}/data/{uuid4()}.parquet"
    local = Path(local_path(path))
    pq.write_table(rows, local)
    bounds: dict[str, Any] = {key: {} for key in _BOUNDS}
    made = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=like.partition,
        record_count=len(rows),
        file_size_in_bytes=local.stat().st_size,
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
        **bounds,
    )
    made.spec_id = like.spec_id
    return made
