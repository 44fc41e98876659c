"""Rows taken out of published files, which are never written again: others with all rows that stay stand for them. And
rows of an older snapshot, written once more.

Written, proven to be the same row for row, and durable before a snapshot names them; that is the commit's, in which
what comes in the place of the rows is added. Decides nothing about which rows. Keeps I2 and I3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table

from wavestitch.contracts.errors import Altered, Refused
from wavestitch.contracts.sample_kinds import Encoding
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.lookup.file_scans import deleted_rows, read_file, stream_file
from wavestitch.tables.lookup.row_filter import EVERY_ROW
from wavestitch.tables.maintenance.put_together import put_waveforms_together, written_type
from wavestitch.tables.maintenance.replacement_proof import prove_same, sum_of_files, sum_of_rows

_FILE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class TakenOut:
    """Files that go, and those that come in their place; of a file that has no other row, none does."""

    old: list[DataFile]
    new: list[DataFile]


def take_out(
    stored: StoredTable, table: Table, tasks: Collection[FileScanTask], ids: Collection[str], *, encoding: Encoding
) -> TakenOut:
    """`tasks`: the files that may have rows with these ids. Each id is in one of them. Raises `Altered` where one is
    in none, `Refused` for a file of which another tool has deleted rows, and where a column is not as we made it."""
    wanted = pa.array(sorted(ids), pa.string())
    found = TakenOut([], [])
    for task in _with_rows(stored, table, tasks, wanted):
        found.old.append(task.file)
        found.new.extend(_again(stored, table, task.file, lambda b: pc.invert(_among(b, wanted)), encoding))
    return found


def rows_again(
    stored: StoredTable, table: Table, tasks: Collection[FileScanTask], ids: Collection[str], *, encoding: Encoding
) -> list[DataFile]:
    """Files with the rows with these ids, and no others, as these files have them. Raises as `take_out`."""
    wanted = pa.array(sorted(ids), pa.string())
    there = list(_with_rows(stored, table, tasks, wanted))
    return [new for task in there for new in _again(stored, table, task.file, lambda b: _among(b, wanted), encoding)]


def _with_rows(
    stored: StoredTable, table: Table, tasks: Collection[FileScanTask], ids: pa.Array
) -> Iterator[FileScanTask]:
    missing = set(ids.to_pylist())
    if missing:
        refuse_fixed_rows(stored, table)
    for task in tasks if missing else ():
        here = _ids_in(table, task, ids)
        if not here:
            continue
        if deleted_rows(table, task) is not None:
            raise Refused(
                f"another tool deleted rows of {task.file.file_path}, which has {min(here)!r}: taken out of it, its "
                "others could come back. Have that tool write the file anew (`rewrite_data_files`), and do it again",
                for_guests=False,
            )
        missing -= here
        yield task
    if missing:
        raise Altered(f"table {stored.name} has no row {min(missing)!r} any more; nothing was committed")


def refuse_fixed_rows(stored: StoredTable, table: Table) -> None:
    """Files are written with our columns alone: what others have in theirs would be lost for every row beside these."""
    if strange := stored.strange_columns(table):
        raise Refused(
            f"rows are taken out of files by writing them anew with Wavestitch's columns alone, and {strange[0]}. "
            "Nothing was changed: keep what that column has in a table of its own (CREATE TABLE ... AS SELECT "
            "waveform_id, ...), set the column back or drop it, and do it again",
            for_guests=False,
        )


def _among(batch: pa.RecordBatch, ids: pa.Array) -> pa.Array:
    return pc.is_in(batch["waveform_id"], value_set=ids)


def _ids_in(table: Table, task: FileScanTask, wanted: pa.Array) -> set[str]:
    batches = read_file(table, task, ["waveform_id"], EVERY_ROW)
    return {i for batch in batches for i in batch["waveform_id"].filter(_among(batch, wanted)).to_pylist()}


def _again(
    stored: StoredTable,
    table: Table,
    file: DataFile,
    chosen: Callable[[pa.RecordBatch], pa.Array],
    encoding: Encoding,
) -> list[DataFile]:
    """Files with those rows of this one that are chosen, proven to be the same."""

    def rows() -> Iterator[pa.RecordBatch]:
        return (batch.filter(chosen(batch)) for batch in stream_file(table, file))

    samples = written_type(table, file)
    paths = put_waveforms_together(table, rows(), samples=samples, encoding=encoding, target_bytes=_FILE_BYTES)
    new = stored.data_files(table, paths)
    prove_same(stored.name, sum_of_rows(rows()), sum_of_files(table, new))
    return new
