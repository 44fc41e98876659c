"""Proves that what replaced data files holds the same rows, byte for byte, before anybody lets go of the old files.

Looks at snapshots that say of themselves that they replace (compaction), and compares the rows of the files that each
took out with those of the files that it put in, every column of them. Changes nothing. Keeps I3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import pyarrow as pa
import xxhash
from pyiceberg.manifest import DataFile, ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from wavestitch.contracts.errors import Altered
from wavestitch.contracts.sample_types import sent_bytes
from wavestitch.tables.access.reading import reading
from wavestitch.tables.lookup.file_scans import stream_file
from wavestitch.tables.maintenance.table_state import main_snapshots


def prove_replacements(table: Table, *, since: int | None) -> int:
    """How many rows were compared, in the replacing snapshots of main that are newer than snapshot `since`.

    Raises `Altered` where they differ: the old files are still there, in the snapshots before.
    """
    compared = 0
    for snapshot in main_snapshots(table):
        if snapshot.snapshot_id == since:
            break
        if snapshot.summary is not None and snapshot.summary.operation == Operation.REPLACE:
            compared += _prove(table, snapshot)
    return compared


def _prove(table: Table, snapshot: Snapshot) -> int:
    name = ".".join(table.name())
    taken, put = (
        _changed(table, snapshot, ManifestEntryStatus.DELETED),
        _changed(table, snapshot, ManifestEntryStatus.ADDED),
    )
    before, after = Counter(_rows(table, taken)), Counter(_rows(table, put))
    if before != after:
        raise Altered(
            f"compaction of table {name} changed it: snapshot {snapshot.snapshot_id} has {(after - before).total()} "
            f"rows that were not there and lacks {(before - after).total()}; the snapshot before it "
            f"({snapshot.parent_snapshot_id}) is whole: set the table back to that one, and run no maintenance until "
            "then",
            table=name,
        )
    return before.total()


def _changed(table: Table, snapshot: Snapshot, status: ManifestEntryStatus) -> list[DataFile]:
    with reading(".".join(table.name())):
        return [
            entry.data_file
            for manifest in snapshot.manifests(table.io)
            if manifest.added_snapshot_id == snapshot.snapshot_id
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
            if entry.status == status and entry.snapshot_id == snapshot.snapshot_id
        ]


def _rows(table: Table, files: Iterable[DataFile]) -> Iterator[bytes]:
    for file in files:
        for batch in stream_file(table, file):
            yield from _digests(batch)


def _digests(batch: pa.RecordBatch) -> Iterator[bytes]:
    """XXH3-128 of each row, all columns; of samples the bytes as they were sent, however they are encoded now."""
    for n in range(batch.num_rows):
        seen = xxhash.xxh3_128()
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            value = column[n]
            if name == "samples":
                sent = sent_bytes(value, batch["sample_format"][n].as_py())
                seen.update(b"%d:" % len(sent))
                seen.update(sent)
            elif pa.types.is_binary(value.type) or pa.types.is_large_binary(value.type):
                raw = value.as_buffer()
                seen.update(b"none" if raw is None else f"{raw.size}:".encode())
                seen.update(b"" if raw is None else raw)
            else:
                seen.update(repr(value.as_py()).encode())
            seen.update(b"\0")
        yield seen.digest()
