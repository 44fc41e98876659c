"""The heads in a table's history: walked from main's current snapshot through its parents.

Never looks at snapshots outside main's ancestry: what was rolled back or written to another branch is no head.
Snapshots of maintenance carry none of our keys and are passed over. Keeps I7.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from uuid import UUID

from cachetools import LRUCache, cached
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.ports import Remains
from wavestitch.contracts.position import Head, head_from_properties
from wavestitch.contracts.quantities import EpochMs

# Of a table, by snapshot: a snapshot never changes, and a long history is walked several times for each batch.
_heads_of: dict[UUID, dict[int, Head | None]] = {}
_VERSIONS = 6
"""Of the metadata of tables: so many are known by their snapshots, and by their heads."""


def _version(table: Table) -> tuple[str, int | None, int]:
    """A file of metadata never changes; what is loaded of it may have been changed since, and not written."""
    return table.metadata_location, table.metadata.current_snapshot_id, len(table.metadata.snapshots)


@cached(LRUCache(_VERSIONS), key=_version, lock=Lock())
def heads_of(table: Table) -> tuple[Head, ...]:
    """All of them, newest first. Raises as `walk_heads` does."""
    return tuple(walk_heads(table))


@cached(LRUCache(_VERSIONS), key=_version, lock=Lock())
def _snapshots(table: Table) -> dict[int, Snapshot]:
    return {s.snapshot_id: s for s in table.metadata.snapshots}


def walk_heads(table: Table) -> Iterator[Head]:
    """Newest first. Raises `Refused` where there is history but no head left in it."""
    snapshots = _snapshots(table)
    known = _heads_of.setdefault(table.metadata.table_uuid, {})
    if len(known) > len(snapshots):  # some have been expired; a new dict, since another walk may be in the old one
        known = {i: head for i, head in list(known.items()) if i in snapshots}
        _heads_of[table.metadata.table_uuid] = known
    current = table.metadata.current_snapshot_id
    found = current is None
    while current is not None and current in snapshots:  # a parent may have been expired
        if current not in known:
            known[current] = _head(snapshots[current])
        head = known[current]
        if head is not None:
            found = True
            yield head
        current = snapshots[current].parent_snapshot_id
    if not found:
        # A table's first snapshot is a head. Taken for "none yet", this would start the stream afresh, forgetting all.
        raise Refused(
            f"the head of table {'.'.join(table.name())} has been expired, {len(snapshots)} snapshots are left; look "
            f"at what a new one can be made from with `wavestitch rewind {table.name()[0]} --to rebuilt`, and let no "
            "other tool expire snapshots of this table",
            table=".".join(table.name()),
        )


def newest_head(table: Table) -> Head | None:
    """The head; None before the first."""
    return next(walk_heads(table), None)


def find_remains(table: Table) -> Remains | None:
    """What is left where main has no head; None where it has one."""
    try:
        if newest_head(table) is not None:
            return None
    except Refused:
        pass
    metadata = table.metadata
    current = metadata.snapshot_by_id(metadata.current_snapshot_id) if metadata.current_snapshot_id else None
    summary = current.summary.additional_properties if current is not None and current.summary is not None else {}
    left = [head for s in metadata.snapshots if (head := _head(s)) is not None]
    return Remains(
        table=str(metadata.table_uuid),
        snapshot_id=metadata.current_snapshot_id,
        last_sequence=getattr(metadata, "last_sequence_number", len(metadata.snapshots)),
        rows=int(summary.get("total-records", "0")),
        left=max(left, key=lambda h: h.version, default=None),
    )


def _head(snapshot: Snapshot) -> Head | None:
    if snapshot.summary is None:
        return None
    properties = snapshot.summary.additional_properties
    return head_from_properties(properties, snapshot.snapshot_id, committed_ms=EpochMs(snapshot.timestamp_ms))
