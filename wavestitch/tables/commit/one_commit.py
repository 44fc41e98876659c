"""A change of a table that is sent to the catalog once, for the snapshot that it was decided on.

pyiceberg's own transaction puts a change that lost a race on top of whatever won it, as often as the table's property
`commit.retry.num-retries` says, and deletes what it wrote where it believes that it lost. Here the catalog is always
told which snapshot the branch must stand at, nothing is sent twice, and nothing is deleted: whatever the answer is, the
table is looked at, since a request that was sent again on its way is told that it lost against itself. What a lost
commit wrote is unreferenced, and goes with maintenance. Keeps I6 and I7.
"""

from __future__ import annotations

from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import BadRequestError, CommitFailedException
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    TableRequirement,
    TableUpdate,
)
from sqlalchemy import event

from wavestitch.contracts.errors import BadInput, StateUnknown, Terminal, WavestitchError
from wavestitch.contracts.ports import CommitConflict
from wavestitch.tables.access.catalog_errors import brief, meaning_of
from wavestitch.tables.access.database_answers import Refusal, refusal_of, surely_undone
from wavestitch.tables.access.ordered_times import later_than
from wavestitch.tables.access.own_catalogs import working_in
from wavestitch.tables.access.unsaid import cause_of


class OneCommit(Transaction):
    """Changes of one branch of `table`, as it was loaded: the snapshot that it stands at now is the one decided on."""

    def __init__(self, table: Table, *, branch: str = MAIN_BRANCH) -> None:
        super().__init__(table, autocommit=False)
        ref = table.metadata.refs.get(branch)
        decided: dict[str, Any] = {"ref": branch, "snapshot-id": None if ref is None else ref.snapshot_id}
        self._required = (
            AssertTableUUID(uuid=table.metadata.table_uuid),
            AssertRefSnapshotId(**decided),
        )

    @property
    def table_metadata(self) -> TableMetadata:
        with working_in(self._table.catalog):
            return super().table_metadata

    def _stage(self, updates: tuple[TableUpdate, ...], requirements: tuple[TableRequirement, ...] = ()) -> Transaction:
        return super()._stage(later_than(self._table.metadata, updates), requirements)

    def commit_transaction(self) -> Table:
        """Send it; the table that is returned has it. Raises `CommitConflict` where it certainly is not in the table,
        another error where the catalog did not take it or was never asked, `StateUnknown` where nobody can tell."""
        if self._failed:
            raise RuntimeError("this change was sent before; load the table, and make it anew")
        self._failed = True
        table, name = self._table, ".".join(self._table.name())
        kinds = (AssertTableUUID, AssertRefSnapshotId)
        others = tuple(r for r in self._requirements if not isinstance(r, kinds))
        sent = _Sent(table.catalog)
        try:
            with sent:
                table._do_commit(updates=self._updates, requirements=self._required + others)
        except CommitFailedException as error:
            if not self._landed(error):
                raise CommitConflict(
                    f"somebody else committed to table {name} first; nothing was written"
                ) from cause_of(error)
        except Exception as error:  # whatever a catalog's client throws: it may have been sent
            if surely_undone(error):
                raise self._refused(error) from cause_of(error)
            if not sent.anything or not self._landed(error):
                raise self._why_not(error, sent=sent.anything) from cause_of(error)
        return table

    def _refused(self, error: Exception) -> WavestitchError:
        name = ".".join(self._table.name())
        if refusal_of(error) is Refusal.OTHERS:
            return CommitConflict(f"somebody else changed table {name} first; nothing was written ({brief(error)})")
        return meaning_of(error, name=name) or _unknown(name, error)

    def _why_not(self, error: Exception, *, sent: bool) -> WavestitchError:
        """Of a change that is not in the table. Some servers call it a bad request where the table has gone on in
        another branch, with the sequence number that this change has, too."""
        name = ".".join(self._table.name())
        if not sent and self._moved():
            return CommitConflict(f"somebody else changed table {name} first; nothing was sent")
        if sent and isinstance(error, BadRequestError) and self._moved():
            return CommitConflict(f"somebody else changed table {name} first; nothing was written ({brief(error)})")
        meaning = meaning_of(error, name=name)
        if not sent:
            return meaning or Terminal(f"nothing was sent to table {name}: {brief(error)}")
        # What a database says to a COMMIT tells nothing.
        return meaning if isinstance(meaning, BadInput) and refusal_of(error) is None else _unknown(name, error)

    def _moved(self) -> bool:
        """Whether the table is not as it was loaded: then what went wrong is that the change fits it no more."""
        try:
            return self._table.catalog.load_table(self._table.name()).metadata_location != self._table.metadata_location
        except Exception:  # what is told then is what went wrong first
            return False

    def _landed(self, told: Exception) -> bool:
        """Whether the table has the snapshot of this change, whatever was answered; the table is as it is now then."""
        ours = next((u.snapshot for u in self._updates if isinstance(u, AddSnapshotUpdate)), None)
        if ours is None:
            return False
        table = self._table
        try:
            now = table.catalog.load_table(table.name())
        except Exception as error:
            raise _unknown(".".join(table.name()), told) from cause_of(error)
        found = now.metadata.snapshot_by_id(ours.snapshot_id)
        if now.metadata.table_uuid != table.metadata.table_uuid or not _is(found, ours):
            return False
        table.metadata, table.metadata_location = now.metadata, now.metadata_location
        return True


class _Sent:
    """While it is open, whether a change was sent to the catalog. Only of a SQL catalog it can be told that none was:
    what goes wrong before, a full disk under the new metadata file say, leaves nothing unknown."""

    def __init__(self, catalog: Catalog) -> None:
        self._engine = getattr(catalog, "engine", None)
        self.anything = self._engine is None

    def __enter__(self) -> None:
        if self._engine is not None:
            event.listen(self._engine, "before_cursor_execute", self._note)

    def __exit__(self, *_: object) -> None:
        if self._engine is not None:
            event.remove(self._engine, "before_cursor_execute", self._note)

    def _note(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        self.anything |= not statement.lstrip().upper().startswith("SELECT")


def _is(found: Snapshot | None, ours: Snapshot) -> bool:
    return found is not None and found.manifest_list == ours.manifest_list


def _unknown(name: str, error: Exception) -> StateUnknown:
    return StateUnknown(
        f"whether the commit to table {name} happened is not known: {brief(error)}; read the table before "
        "anything else",
        table=name,
    )
