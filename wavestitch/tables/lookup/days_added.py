"""Which days a snapshot has added files of: asked of its own manifests, no data file is opened."""

from __future__ import annotations

from datetime import date, timedelta

from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table import Table

_BEGIN = date(1970, 1, 1)


def days_added(table: Table, snapshot_id: int) -> list[str]:
    """ISO dates (UTC), sorted; none of a snapshot that expired."""
    snapshot = table.snapshot_by_id(snapshot_id)
    if snapshot is None:
        return []
    entries = (
        entry
        for manifest in snapshot.manifests(table.io)
        if manifest.added_snapshot_id == snapshot_id
        for entry in manifest.fetch_manifest_entry(table.io)
    )
    numbers = {e.data_file.partition[0] for e in entries if e.status == ManifestEntryStatus.ADDED}
    return [(_BEGIN + timedelta(days=n)).isoformat() for n in sorted(numbers)]
