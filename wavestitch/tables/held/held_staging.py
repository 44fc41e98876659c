"""Puts held rows where only the head can make them count: a snapshot of the held table on a branch of its own.

Its parent is the snapshot that the decision's base head names, so that it holds what is held, and nothing of decisions
that were never committed. After the commit main of the held table follows the head: a projection, repaired by whoever
comes next. Branches of what can never be committed any more go then, too; their snapshots go with maintenance, by age.
Keeps I1 and I6; decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

import pyarrow as pa
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.update.snapshot import ManageSnapshots

from wavestitch.contracts.commit_tries import CommitTries
from wavestitch.contracts.errors import Altered, StateUnknown, Transient
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.ports import CommitConflict, HeldStaging
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import EpochMs
from wavestitch.tables.access.reading import reading
from wavestitch.tables.commit.one_commit import OneCommit
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.held.held_look import live_files

_TRIES = 50
_LOOKS = 3
_BRANCH = "wavestitch-"
_EMPTY = "wavestitch-empty"
"""A tag on the table's first snapshot, which has no rows: what is staged before anything was held stands on it."""
_SAID = "wavestitch-staged."
_DECISION, _GENERATION, _SEQUENCE, _PLAN = (_SAID + w for w in ("decision", "generation", "sequence", "plan"))
"""Never a key of a head's: no snapshot of this table is one."""

Encode = Callable[[], Iterable[tuple[str, Iterable[pa.RecordBatch]]]]


def stage_rows(
    stored: StoredTable,
    base: HeldMark | None,
    encode: Encode,
    staging: HeldStaging,
    *,
    instead_of: Sequence[DataFile] = (),
) -> HeldMark:
    """The mark of a snapshot with these rows on top of the base's, and without these files of it.

    Staged again, it is the same snapshot.
    """
    paths: list[str] | None = None
    tries = _tries(stored)
    while True:
        table = _with_root(stored)
        base_id = _root(table) if base is None else base.snapshot_id
        branch = f"{_BRANCH}{staging.decision}-{base_id}"
        there = table.metadata.refs.get(branch)
        if there is not None:
            return _staged(table, there.snapshot_id, base_id, staging)
        live_files(table, base_id)
        if paths is None:
            paths = [path for _, batches in encode() for path in stored.write(table, batches)]
        try:
            _commit(stored, table, branch=branch, base_id=base_id, paths=paths, staging=staging, old=instead_of)
        except (CommitConflict, StateUnknown) as error:
            tries.failed(error)  # the table says whether it is there


def settle(stored: StoredTable, heads: Callable[[], Sequence[Head]]) -> None:
    """Main of the held table is what the head names; branches that no commit can name any more go. No snapshot goes:
    that is maintenance's, by age.

    `heads` are looked at after the table is: where main is moved meanwhile, the change fails, so that main never goes
    back to an older head. Whoever is overtaken leaves it to the one who was faster.
    """
    for look in range(_LOOKS):
        table = stored.load()
        if table is None or not table.metadata.snapshots:
            return
        found = heads()
        if not found:
            return
        target = _root(table) if found[0].held is None else found[0].held.snapshot_id
        # Where it is not there, it may have been staged and committed since the table was loaded.
        if table.metadata.snapshot_by_id(target) is not None or look == _LOOKS - 1:
            live_files(table, target)
            _follow(stored.name, table, target, found)
            return


def _follow(name: str, table: Table, target: int, heads: Sequence[Head]) -> None:
    current = table.metadata.current_snapshot_id
    # Of an older generation: committed in a catalog that was set back since, and nobody's any more.
    ahead = current is not None and _newest_version(table, ancestry(table, current)) > heads[0].version
    move = current != target and not ahead
    named = {h.held.snapshot_id for h in heads if h.held is not None}
    on_main = ancestry(table, target) if move or current == target else set[int]()
    dead = sorted(
        branch
        for branch, ref in table.metadata.refs.items()
        if branch.startswith(_BRANCH)
        and branch != _EMPTY
        and _version(table, ref.snapshot_id) <= heads[0].version
        and (ref.snapshot_id in on_main or ref.snapshot_id not in named)
    )
    if not move and not dead:
        return
    change = OneCommit(table)
    with reading(name):
        if move:
            _point(change, MAIN_BRANCH, target)
        if dead:
            refs = ManageSnapshots(change)
            for branch in dead:
                refs.remove_branch(branch)
            refs.commit()
    with suppress(CommitConflict, StateUnknown, Transient):
        change.commit_transaction()


def overtaken_snapshots(table: Table, named: Collection[int], *, made_before: EpochMs) -> list[int]:
    """Snapshots made before this moment that no branch, tag or retained head (`named`) leads to: staged for nothing, or
    put together and overtaken. Which head names what must be read after the table was."""
    roots = {*named, *(ref.snapshot_id for ref in table.metadata.refs.values())}
    reached = {i for root in roots for i in ancestry(table, root)}
    old = {s.snapshot_id for s in table.metadata.snapshots if s.timestamp_ms < made_before}
    return sorted(old - reached)


def _with_root(stored: StoredTable) -> Table:
    """The table, with its empty first snapshot: only then can a branch be made on it."""
    tries = _tries(stored)
    while True:
        table = stored.ensure()
        if table.metadata.snapshots:
            return table
        change = OneCommit(table)
        with reading(stored.name):
            with change.update_snapshot().fast_append():
                pass
            root = change.table_metadata.current_snapshot_id
            assert root is not None
            _point(change, _EMPTY, root, kind=SnapshotRefType.TAG)
        try:
            change.commit_transaction()
        except (CommitConflict, StateUnknown) as error:
            tries.failed(error)


def _tries(stored: StoredTable) -> CommitTries:
    return CommitTries(_TRIES, f"others committed to table {stored.name} first; try again")


def _root(table: Table) -> int:
    found = table.metadata.refs.get(_EMPTY)
    if found is None:
        raise Altered(
            f"table {'.'.join(table.name())} has lost its tag {_EMPTY}, and the head names nothing of it: somebody "
            "else's table stands where ours should be; move it away, an empty one is made"
        )
    return found.snapshot_id


def _commit(
    stored: StoredTable,
    table: Table,
    *,
    branch: str,
    base_id: int,
    paths: Sequence[str],
    staging: HeldStaging,
    old: Sequence[DataFile],
) -> None:
    change = OneCommit(table, branch=branch)
    with reading(stored.name):
        _point(change, branch, base_id)
        summary = {
            _DECISION: staging.decision,
            _GENERATION: str(staging.generation),
            _SEQUENCE: str(staging.sequence),
            _PLAN: staging.plan_id,
        }
        how = change.update_snapshot(snapshot_properties=summary, branch=branch)
        with how.overwrite() if old else how.merge_append() as files:
            for file in old:
                files.delete_data_file(file)
            for path in paths:
                files.append_data_file(parquet_file_to_data_file(table.io, table.metadata, path))
    change.commit_transaction()


def _point(change: OneCommit, name: str, snapshot_id: int, *, kind: SnapshotRefType = SnapshotRefType.BRANCH) -> None:
    updates, requirements = change._set_ref_snapshot(snapshot_id=snapshot_id, ref_name=name, type=kind)
    change._stage(updates, requirements)


def _staged(table: Table, snapshot_id: int, base_id: int, staging: HeldStaging) -> HeldMark:
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    if snapshot is None or snapshot.parent_snapshot_id != base_id:
        raise Altered(
            f"snapshot {snapshot_id} of table {'.'.join(table.name())} was staged on another one than the head names; "
            "somebody else writes to branches whose names begin with wavestitch-: stop that, then try again"
        )
    return staging.mark(snapshot_id, live_files(table, snapshot_id))


def _version(table: Table, snapshot_id: int) -> tuple[int, int]:
    """Of the head that what is on this branch was to become; a branch that is not ours stays."""
    decision, *version = staged_for(table, snapshot_id)
    return (version[0], version[1]) if decision else (1 << 62, 0)


def _newest_version(table: Table, snapshots: Iterable[int]) -> tuple[int, int]:
    return max((staged_for(table, i)[1:] for i in snapshots), default=(0, 0))


def staged_for(table: Table, snapshot_id: int) -> tuple[str, int, int]:
    """Decision, generation and sequence of the head that this was staged for; empty and 0 where it is not ours."""
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    said = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary is not None else {}
    return said.get(_DECISION, ""), int(said.get(_GENERATION, "0")), int(said.get(_SEQUENCE, "0"))


def staged_branches(table: Table) -> dict[str, int]:
    """The snapshots that are staged, by branch."""
    refs = table.metadata.refs.items()
    return {name: ref.snapshot_id for name, ref in refs if name.startswith(_BRANCH) and name != _EMPTY}


def ancestry(table: Table, snapshot_id: int) -> set[int]:
    """The snapshot and those that it stands on, as far as they are there."""
    parents = {s.snapshot_id: s.parent_snapshot_id for s in table.metadata.snapshots}
    found: set[int] = set()
    at: int | None = snapshot_id
    while at is not None and at in parents:
        found.add(at)
        at = parents[at]
    return found
