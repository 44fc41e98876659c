"""A local cache that rules out most ids before the table is looked at: hashes of all ids ever published (I2).

It only ever answers "certainly not" or "perhaps"; what is published is what the table says. It covers snapshots by id,
follows the table by reading the files that newer ones added, and can be deleted at any time: what it does not cover is
read again. One SQLite file a table, named after the table's own UUID.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Operation, Snapshot

from wavestitch.contracts.errors import Transient
from wavestitch.tables.commit_outcome import reading
from wavestitch.tables.file_scans import read_file

_SCHEMA = """
CREATE TABLE IF NOT EXISTS covered (snapshot INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS ids (hash INTEGER PRIMARY KEY) WITHOUT ROWID;
"""
_AT_ONCE = 500
_BUSY_SECONDS = 60.0


class IdCache:
    """The caches of the tables of one deployment, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def perhaps_published(self, table: Table, ids: Collection[str]) -> set[str]:
        """Those of `ids` that may be published in the table's current snapshot; all others are certainly not.

        Raises `Transient` where the cache cannot be used, and says that it may be deleted.
        """
        snapshot = table.current_snapshot()
        if snapshot is None or not ids:
            return set()
        path = self._folder / f"{table.metadata.table_uuid}.sqlite"
        self._folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        try:
            with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as db:
                db.executescript(_SCHEMA)
                _follow(db, table, snapshot)
                return _known(db, ids)
        except sqlite3.Error as error:
            raise Transient(
                f"the cache of published ids {path} cannot be used ({error}); it can be deleted at any time, and is "
                "made again from the table"
            ) from error


def _follow(db: sqlite3.Connection, table: Table, snapshot: Snapshot) -> None:
    """Cover this snapshot, in one transaction: all of it or nothing."""
    covered = {row[0] for row in db.execute("SELECT snapshot FROM covered")}
    fresh = _not_covered(table, snapshot, covered)
    if fresh == {}:
        return
    hashes = [_hashes_in(table, file) for file in _files_added(table, snapshot, fresh)]
    found = np.unique(np.concatenate(hashes)) if hashes else np.empty(0, np.int64)
    with db:
        # In order, so that a tree of millions is written from one end to the other.
        db.executemany("INSERT OR IGNORE INTO ids VALUES (?)", ((h,) for h in found.tolist()))
        names = [snapshot.snapshot_id] if fresh is None else list(fresh)
        db.executemany("INSERT OR IGNORE INTO covered VALUES (?)", ((s,) for s in names))


def _not_covered(table: Table, snapshot: Snapshot, covered: set[int]) -> dict[int, Snapshot] | None:
    """The snapshots since the last covered one; None where the way back to it is gone, so that all must be read."""
    history = {s.snapshot_id: s for s in table.metadata.snapshots}
    fresh: dict[int, Snapshot] = {}
    at: int | None = snapshot.snapshot_id
    while at not in covered:
        if at is None or at not in history:
            return None
        fresh[at] = history[at]
        at = history[at].parent_snapshot_id
    return fresh


def _files_added(table: Table, snapshot: Snapshot, fresh: dict[int, Snapshot] | None) -> Iterator[DataFile]:
    """The data files that these snapshots added, as far as they are still there; all files where `fresh` is None."""
    # By its definition a replacing snapshot (compaction) holds the same rows in other files: alone it adds no id. After
    # one that does it may have put that one's files, which nobody has looked into yet, into its own.
    only_replaced = fresh is not None and all(_replaces(s) for s in fresh.values())
    adding = None if fresh is None else set[int]() if only_replaced else set(fresh)
    with reading(".".join(table.name())):
        for manifest in snapshot.manifests(table.io):
            if adding is None or manifest.added_snapshot_id in (fresh or {}):
                for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                    if adding is None or entry.snapshot_id in adding:
                        yield entry.data_file


def _replaces(snapshot: Snapshot) -> bool:
    return snapshot.summary is not None and snapshot.summary.operation == Operation.REPLACE


def _hashes_in(table: Table, file: DataFile) -> npt.NDArray[np.int64]:
    batches = read_file(table, FileScanTask(file), ["waveform_id"])
    ids = [i for batch in batches for i in batch["waveform_id"].to_pylist()]
    return np.fromiter(map(_hash, ids), np.int64, len(ids))


def _hash(waveform_id: str) -> int:
    """SQLite's integers have a sign."""
    return xxhash.xxh3_64_intdigest(waveform_id.encode()) - (1 << 63)


def _known(db: sqlite3.Connection, ids: Collection[str]) -> set[str]:
    by_hash: dict[int, list[str]] = {}
    for waveform_id in ids:
        by_hash.setdefault(_hash(waveform_id), []).append(waveform_id)
    hashes, found = list(by_hash), set[str]()
    for first in range(0, len(hashes), _AT_ONCE):
        some = hashes[first : first + _AT_ONCE]
        marks = ",".join("?" * len(some))
        for (hit,) in db.execute(f"SELECT hash FROM ids WHERE hash IN ({marks})", some):  # noqa: S608 - only marks
            found.update(by_hash[hit])
    return found
