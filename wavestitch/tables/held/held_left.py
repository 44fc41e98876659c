"""What the held table has where no head says what counts in it: its snapshots, and a mark of one as it is.

Reads the metadata alone; decides nothing: that is `choose_held`.
"""

from __future__ import annotations

from collections import Counter

from pyiceberg.table import Table

from wavestitch.contracts.held_left import HeldLeft, LeftSnapshot
from wavestitch.contracts.held_mark import HeldMark, mark_of
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.held.held_look import live_files
from wavestitch.tables.held.held_staging import ancestry, staged_branches, staged_for


def left_snapshots(stored: StoredTable) -> HeldLeft:
    table = stored.load()
    if table is None:
        return HeldLeft()
    there = {s.snapshot_id: s.parent_snapshot_id for s in table.metadata.snapshots}
    main: list[LeftSnapshot] = []
    at = table.metadata.current_snapshot_id
    while at is not None and at in there:
        main.append(_left(table, at))
        at = there[at]
    on_main = {s.snapshot_id for s in main}
    # What is staged upon something that is staged may have been committed below it.
    staged = {i for tip in staged_branches(table).values() for i in ancestry(table, tip)}
    beside = tuple(_left(table, i) for i in sorted(staged - on_main))
    return HeldLeft(tuple(main), beside, tuple(_left(table, i) for i in there))


def mark_as_it_is(stored: StoredTable, snapshot_id: int) -> HeldMark | None:
    """Its counts are of all rows: those that were released or superseded since are among them."""
    files = live_files(stored.ensure(), snapshot_id)
    counts = Counter[str]()
    for file in files:
        counts[file.reason] += file.rows
    return mark_of(snapshot_id, files, counts, 0) if files else None


def _left(table: Table, snapshot_id: int) -> LeftSnapshot:
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    said = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary is not None else {}
    return LeftSnapshot(snapshot_id, *staged_for(table, snapshot_id), int(said.get("total-records", "0")))
