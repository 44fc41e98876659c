"""Takes rows out of the held table: the files that have them are written anew without them, or dropped whole.

Decides nothing about which rows. What it makes is a snapshot on a branch, on top of what the head names, and counts
once a head of maintenance names it: a batch that commits at the same moment wins. The old files stay, too, as long as a
retained head names a snapshot that has them. Keeps I1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.conversions import from_bytes
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table
from pyiceberg.types import LongType

from wavestitch.contracts.held_mark import JUNK, HeldFile, HeldMark
from wavestitch.contracts.maintenance import HeldPlace
from wavestitch.contracts.quantities import EpochMs
from wavestitch.tables.commit.table_layout import HELD
from wavestitch.tables.held.held_files import held_file
from wavestitch.tables.held.held_rows import FACTS, held_chunk
from wavestitch.tables.lookup.file_scans import files_to_read, read_file

_DAY_MS = 86_400_000
_UNREAD = {"meta": None, "evidence": "", "evidence_of_record": None}
_TEXTS = ("topic_id", "waveform_id", "record_reason", "reason", "decision", "proof", "plan_id")
_HELD_MS = HELD.get_field_index("held_ms") + 1


_SAYS_WHAT = (*(name for name in FACTS if name not in _UNREAD), "plan_id")
"""Without the texts that a producer chooses: a few rows of a file can have gigabytes of them."""


def held_places(table: Table, mark: HeldMark, ids: Collection[str] | None = None) -> list[HeldPlace]:
    """Every chunk of these waveforms (all, where none are given) in the snapshot that the head names, and where it
    lies, without bytes, metadata and evidence; no records that are none."""
    wanted = None if ids is None else pa.array(sorted(ids), pa.string())
    found: list[HeldPlace] = []
    for task in files_to_read(table, snapshot_id=mark.snapshot_id):
        if held_file(task.file).reason in JUNK:
            continue
        start = 0
        for batch in read_file(table, task, _SAYS_WHAT, repeated=_TEXTS):
            rows = np.arange(start, start + batch.num_rows)
            start += batch.num_rows
            if wanted is not None:
                some = pc.is_in(batch["waveform_id"], value_set=wanted)
                rows, batch = rows[some.to_numpy(zero_copy_only=False)], batch.filter(some)  # noqa: PLW2901
            columns = [batch[name].to_pylist() for name in _SAYS_WHAT]
            for row, *values in zip(rows.tolist(), *columns, strict=True):
                held = held_chunk({**_UNREAD, **dict(zip(_SAYS_WHAT, values, strict=True))})
                found.append(HeldPlace(task.file.file_path, row, held, values[-1]))
    return found


def held_since(table: Table, mark: HeldMark) -> dict[str, tuple[HeldFile, EpochMs | None]]:
    """The files by path, and since when the newest row of each is held; None where that is not known.

    None of them is opened: the reason is their partition, and the newest row follows from their bounds.
    """
    tasks = files_to_read(table, snapshot_id=mark.snapshot_id)
    return {task.file.file_path: (held_file(task.file), _newest_ms(task.file)) for task in tasks}


def day_of_junk(file: DataFile) -> str:
    """The day since which the newest of its rows is held, where it has records that are no chunks; nothing for others.
    Junk goes with the newest row of its file: put together with that of later days, it would never go."""
    newest = _newest_ms(file) if held_file(file).reason in JUNK else None
    return "" if newest is None else f"held on day {newest // _DAY_MS}"


def _newest_ms(file: DataFile) -> EpochMs | None:
    newest = (file.upper_bounds or {}).get(_HELD_MS)
    return None if newest is None else EpochMs(int(from_bytes(LongType(), newest)))


def rows_that_stay(
    table: Table, tasks: Sequence[FileScanTask], rows: Mapping[str, Collection[int]]
) -> Iterator[tuple[str, Iterator[pa.RecordBatch]]]:
    """By reason, of junk by day as well, what is left of these files without these rows (by file and number)."""
    apart: dict[tuple[str, str], list[FileScanTask]] = {}
    for task in tasks:
        apart.setdefault((held_file(task.file).reason, day_of_junk(task.file)), []).append(task)
    for (reason, _), some in sorted(apart.items()):
        yield reason, _rest(table, some, rows)


def _rest(table: Table, tasks: Sequence[FileScanTask], rows: Mapping[str, Collection[int]]) -> Iterator[pa.RecordBatch]:
    for task in tasks:
        start = 0
        for batch in read_file(table, task, HELD.names):
            gone = rows[task.file.file_path]
            stay = [n for n in range(batch.num_rows) if start + n not in gone]
            start += batch.num_rows
            if stay:
                taken = batch.take(pa.array(stay, pa.int64()))
                columns = [taken[f.name].cast(f.type) for f in HELD]
                yield pa.record_batch(columns, schema=HELD)
