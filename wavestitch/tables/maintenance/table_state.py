"""A table as maintenance sees it: main's snapshots, live files, and every file that any retained snapshot names.

Never changes anything. A file is named if any snapshot of the metadata leads to it, in whatever branch: what cannot be
read is an error, so that nothing is taken for unreferenced by mistake.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from wavestitch.contracts.maintenance import DataFileFacts, SnapshotFacts, TableState
from wavestitch.contracts.position import head_from_properties
from wavestitch.contracts.quantities import EpochMs
from wavestitch.contracts.warehouse import is_stored
from wavestitch.tables.access.file_marks import local_path
from wavestitch.tables.access.reading import reading

_EPOCH = date(1970, 1, 1)


def describe_table(table: Table) -> TableState:
    """The table as it was loaded."""
    name = ".".join(table.name())
    metadata = table.metadata
    main = main_snapshots(table)
    with reading(name):
        files = tuple(file_facts(task.file) for task in table.scan().plan_files())
        size = _size(table)
    return TableState(
        name=name,
        main=tuple(_snapshot_facts(s) for s in main),
        protected=frozenset(ref.snapshot_id for ref in metadata.refs.values()),
        aside=len(metadata.snapshots) - len(main),
        files=files,
        metadata_bytes=size,
    )


def _size(table: Table) -> int:
    """Bytes of the metadata file."""
    path = local_path(table.metadata_location)
    return len(table.io.new_input(path)) if is_stored(path) else Path(path).stat().st_size


def main_snapshots(table: Table) -> list[Snapshot]:
    """Main's ancestry, newest first."""
    by_id = {s.snapshot_id: s for s in table.metadata.snapshots}
    found: list[Snapshot] = []
    current = table.metadata.current_snapshot_id
    while current is not None and current in by_id:
        found.append(by_id[current])
        current = by_id[current].parent_snapshot_id
    return found


class Named(NamedTuple):
    """Files that a table's metadata leads to. `live`: those of them that the table as it is now needs."""

    every: set[str]
    live: set[str]


def named_files(table: Table) -> set[str]:
    """Paths of all files that the table's metadata leads to."""
    return files_named(table).every


def files_named(table: Table) -> Named:
    """Paths of all files that the table's metadata leads to, and of those that its newest snapshot does."""
    metadata = table.metadata
    found = {table.metadata_location, *(e.metadata_file for e in metadata.metadata_log)}
    found |= {s.statistics_path for s in [*metadata.statistics, *metadata.partition_statistics]}
    live = {table.metadata_location}
    by_manifest: dict[str, set[str]] = {}
    with reading(".".join(table.name())):
        for snapshot in metadata.snapshots:
            led_to = {snapshot.manifest_list}
            for manifest in snapshot.manifests(table.io):
                path = manifest.manifest_path
                if path not in by_manifest:
                    entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
                    by_manifest[path] = {path, *(e.data_file.file_path for e in entries)}
                led_to |= by_manifest[path]
            found |= led_to
            if snapshot.snapshot_id == metadata.current_snapshot_id:
                live |= led_to
    return Named({local_path(f) for f in found}, {local_path(f) for f in live})


def _snapshot_facts(snapshot: Snapshot) -> SnapshotFacts:
    summary = snapshot.summary
    head = head_from_properties(summary.additional_properties, snapshot.snapshot_id) if summary else None
    operation = summary.operation.value if summary else ""
    return SnapshotFacts(snapshot.snapshot_id, EpochMs(snapshot.timestamp_ms), operation, head)


def file_facts(file: DataFile) -> DataFileFacts:
    values = [file.partition[n] for n in range(len(file.partition))]
    # The only partitions that our tables have are days, counted from 1970.
    days = ", ".join(str(_EPOCH + timedelta(days=v)) if isinstance(v, int) else str(v) for v in values)
    return DataFileFacts(local_path(file.file_path), file.file_size_in_bytes, file.record_count, days)
