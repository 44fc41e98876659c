"""The heads in a table's history: walked from main's current snapshot through its parents.

Never looks at snapshots outside main's ancestry: what was rolled back or written to another branch is no head.
Snapshots of maintenance carry none of our keys and are passed over. Keeps I7.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.position import Head, head_from_properties

# Of a table, by snapshot: a snapshot never changes, and a long history is walked several times for each batch.
_heads_of: dict[UUID, dict[int, Head | None]] = {}


def walk_heads(table: Table) -> Iterator[Head]:
    """Newest first. Raises `Refused` where there is history but no head left in it."""
    snapshots = {s.snapshot_id: s for s in table.metadata.snapshots}
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
            f"the head of table {'.'.join(table.name())} has been expired, {len(snapshots)} snapshots are left; "
            "go back to an older metadata file of the table, and let maintenance keep the newest head",
            table=".".join(table.name()),
        )


def newest_head(table: Table) -> Head | None:
    """The head; None before the first."""
    return next(walk_heads(table), None)


def _head(snapshot: Snapshot) -> Head | None:
    if snapshot.summary is None:
        return None
    return head_from_properties(snapshot.summary.additional_properties, snapshot.snapshot_id)
