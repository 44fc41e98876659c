"""Keeps pyiceberg from copying a table's whole history a score of times for each commit.

It applies every update to a deep copy of the metadata, the snapshots of all time included: 2.5 ms of a commit's CPU for
each retained one. They are frozen models, so a copy may be the thing itself. Changes nothing else about them.
"""

from __future__ import annotations

from typing import Any

from pyiceberg.table.snapshots import MetadataLogEntry, Snapshot, SnapshotLogEntry

_FROZEN = (Snapshot, SnapshotLogEntry, MetadataLogEntry)


def share_history() -> None:
    """From now on, in this process, a copy of a table's metadata has the same snapshot objects as its original."""
    for kind in _FROZEN:
        kind.__deepcopy__ = _itself  # type: ignore[method-assign,assignment]


def _itself(frozen: Any, _memo: dict[int, Any] | None = None) -> Any:
    return frozen
