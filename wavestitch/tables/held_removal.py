"""Takes rows out of the held table: the files that have them are written anew without them, in one commit.

Decides nothing about which rows. By compare-and-set: what a batch appends at the same moment stays. The old files stay,
too, as long as a retained snapshot names them. Keeps I1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyiceberg.table import FileScanTask, Table

from wavestitch.contracts.errors import Transient
from wavestitch.contracts.maintenance import HeldPlace
from wavestitch.contracts.ports import CommitConflict
from wavestitch.tables.file_scans import files_to_read, read_file
from wavestitch.tables.held_rows import FACTS, held_chunk
from wavestitch.tables.stored_table import StoredTable
from wavestitch.tables.table_layout import HELD

_TRIES = 5


def held_places(table: Table) -> list[HeldPlace]:
    """Every row of the table and where it lies, without its bytes."""
    names = (*FACTS, "plan_id")
    found: list[HeldPlace] = []
    for task in files_to_read(table):
        row = 0
        for batch in read_file(table, task, names):
            columns = [batch[name].to_pylist() for name in names]
            for values in zip(*columns, strict=True):
                held = held_chunk(dict(zip(names, values, strict=True)))
                found.append(HeldPlace(task.file.file_path, row, held, values[-1]))
                row += 1
    return found


def remove_rows(stored: StoredTable, rows: Mapping[str, set[int]]) -> None:
    """Remove these rows, by file and number. Raises `Transient` where the table keeps changing meanwhile."""
    for _ in range(_TRIES):
        table = stored.ensure()
        files = {task.file.file_path: task for task in files_to_read(table)}
        if not rows.keys() <= files.keys():
            raise Transient(f"table {stored.name} was compacted while rows were to be removed; run maintenance again")
        try:
            stored.rewrite(table, [files[f].file for f in sorted(rows)], _rest(table, files, rows))
            return
        except CommitConflict:
            continue
    raise Transient(f"{_TRIES} times others committed to table {stored.name} first; run maintenance again")


def _rest(table: Table, files: Mapping[str, FileScanTask], rows: Mapping[str, set[int]]) -> Iterator[pa.RecordBatch]:
    for path in sorted(rows):
        start = 0
        for batch in read_file(table, files[path], HELD.names):
            stay = [n for n in range(batch.num_rows) if start + n not in rows[path]]
            start += batch.num_rows
            if stay:
                taken = batch.take(pa.array(stay, pa.int64()))
                columns = [taken[f.name].cast(f.type) for f in HELD]
                yield pa.record_batch(columns, schema=HELD)
