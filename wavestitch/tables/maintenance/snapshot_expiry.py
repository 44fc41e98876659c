"""Takes snapshots out of a table's metadata, by id. Removes no file: what is unreferenced then goes later, by age.

By compare-and-set: where a batch commits at the same moment, one of the two looks again, and neither is lost. Decides
nothing about which snapshots.
"""

from __future__ import annotations

from collections.abc import Collection

from pyiceberg.table.update.snapshot import ExpireSnapshots

from wavestitch.contracts.commit_tries import CommitTries
from wavestitch.contracts.errors import StateUnknown
from wavestitch.contracts.ports import CommitConflict
from wavestitch.tables.commit.one_commit import OneCommit
from wavestitch.tables.commit.stored_table import StoredTable

_TRIES = 10


def expire_snapshots(stored: StoredTable, snapshot_ids: Collection[int]) -> int:
    """How many went. Those that are gone already, or that a branch or a tag names by now, are passed over."""
    tries = CommitTries(_TRIES, f"others committed to table {stored.name} first; run maintenance again")
    while True:
        table = stored.load_to_change()
        if table is None:
            return 0
        named = {ref.snapshot_id for ref in table.metadata.refs.values()}
        there = {s.snapshot_id for s in table.metadata.snapshots}
        going = sorted((set(snapshot_ids) & there) - named)
        if not going:
            return 0
        change = OneCommit(table)
        ExpireSnapshots(change).by_ids(going).commit()
        try:
            change.commit_transaction()
        except (CommitConflict, StateUnknown) as error:  # unknown: e.g. somebody else has expired one of them since
            tries.failed(error)
        else:
            return len(going)
