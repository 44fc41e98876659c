"""A table's times never go back, whatever clocks its commits are made by.

pyiceberg writes the clock of whoever commits into a table's metadata and looks at nothing. Iceberg's Java library (so
Spark, Trino, Flink) reads no table whose logs of snapshots and of metadata files, and its last change behind them, go
back by more than a minute: one commit by a clock that was ahead, and the next ones, by a right one, close the table to
it for days. So whatever is committed is at least a millisecond later than what the table says already: by the clock, or
just behind the newest entry. Changes nothing for catalogs that are not ours (`own_catalogs`). A REST server makes the
metadata itself: there it holds for snapshots, which are sent with their time, and the rest goes by the server's clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from pyiceberg import catalog
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AddSnapshotUpdate, TableUpdate

from wavestitch.contracts.quantities import EpochMs, Milliseconds, after
from wavestitch.tables.access.at_work import is_ours

_A_MOMENT, _TOLERATED = Milliseconds(1), Milliseconds(60_000)
_update_really = catalog.update_table_metadata


def keep_times_in_order() -> None:
    """From now on, in this process, the metadata of our tables are never older than what they follow."""
    vars(catalog)["update_table_metadata"] = _updated


def newest_time(metadata: TableMetadata) -> EpochMs:
    """The newest that a table says of itself. Where others wrote to it, its log may be ahead of its last change."""
    return EpochMs(max(metadata.last_updated_ms, *(e.timestamp_ms for e in metadata.snapshot_log[-1:]), 0))


def later_than(metadata: TableMetadata, updates: Iterable[TableUpdate]) -> tuple[TableUpdate, ...]:
    """These changes, with each new snapshot later than anything that the table says."""
    least = after(newest_time(metadata), _A_MOMENT)
    return tuple(_not_before(least, update) for update in updates)


def times_that_go_back(name: str, metadata: TableMetadata) -> list[str]:
    """A sentence where others' commits, or those of an older version, have left what Iceberg's Java library refuses."""
    snapshots, files = metadata.snapshot_log, metadata.metadata_log
    logs = [[e.timestamp_ms for e in log] + [metadata.last_updated_ms] for log in (snapshots, files)]
    back = max((a - b for log in logs for a, b in pairwise(log)), default=0)
    if back <= _TOLERATED:
        return []
    return [
        f"the log of table {name} goes back by {back / 1000:.0f} s, 60 s are allowed: a clock was ahead when it was "
        "committed to, and Spark, Trino and Flink do not read the table until maintenance has let these entries go "
        "(`wavestitch maintain`, by `snapshot_age` and `most_snapshots`)"
    ]


def _not_before(least: EpochMs, update: TableUpdate) -> TableUpdate:
    if not isinstance(update, AddSnapshotUpdate) or update.snapshot.timestamp_ms >= least:
        return update
    return update.model_copy(update={"snapshot": update.snapshot.model_copy(update={"timestamp_ms": least})})


def _updated(base_metadata: TableMetadata, *args: Any, **more: Any) -> TableMetadata:
    """Of changes without a snapshot, too: an expiry, a branch that is moved."""
    made = _update_really(base_metadata, *args, **more)
    if not is_ours() or not base_metadata.snapshot_log:
        return made
    least = after(newest_time(base_metadata), _A_MOMENT)
    known = {id(entry) for entry in base_metadata.snapshot_log}
    log = [
        e if id(e) in known or e.timestamp_ms >= least else e.model_copy(update={"timestamp_ms": least})
        for e in made.snapshot_log
    ]
    return made.model_copy(update={"snapshot_log": log, "last_updated_ms": max(made.last_updated_ms, least)})
