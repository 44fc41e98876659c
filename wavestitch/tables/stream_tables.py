"""The tables of one stream in Iceberg: waveforms (which has the head), held, batches.

Implements the protocol `Tables`. Everything is read from the table as it is at the call; nothing is remembered. The
commit is one compare-and-set of the waveforms table. Keeps I2, I6 and I7; decides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from pyiceberg.table import Table

from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import BadInput, StateUnknown
from wavestitch.contracts.held import HeldChunk, PublishedWaveform
from wavestitch.contracts.ports import CommitConflict, HeldRow, Remains, StagedFile
from wavestitch.contracts.position import Head
from wavestitch.modes import make_folder
from wavestitch.tables.batch_history import absent_history, history_batches, read_history, read_recorded
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from wavestitch.tables.heads import find_remains, newest_head, walk_heads
from wavestitch.tables.held_payloads import Coordinate, write_payloads
from wavestitch.tables.held_rows import absent_rows, held_batches, read_held
from wavestitch.tables.id_index import IdIndex
from wavestitch.tables.published_lookup import find_published
from wavestitch.tables.stored_table import StoredTable
from wavestitch.tables.table_layout import BATCHES_TABLE, HELD_TABLE, WAVEFORMS_TABLE


class StreamTables:
    """Tables `STREAM.waveforms`, `STREAM.held` and `STREAM.batches` of a catalog; made when first written to."""

    def __init__(self, settings: CatalogSettings, stream: str, *, id_index: IdIndex | None = None) -> None:
        """`id_index`: says which files have which ids; without it, each lookup reads the id column of every file that
        can have them."""
        catalog = open_catalog(settings)
        self._id_index = id_index
        self._waveforms = StoredTable(catalog, stream, WAVEFORMS_TABLE)
        self._held = StoredTable(catalog, stream, HELD_TABLE)
        self._batches = StoredTable(catalog, stream, BATCHES_TABLE)

    def stored(self) -> tuple[StoredTable, StoredTable, StoredTable]:
        """Waveforms, held and batches, for maintenance."""
        return self._waveforms, self._held, self._batches

    def waveforms(self) -> Table | None:
        """The published table as it is now, for readers; None before the first commit."""
        return self._waveforms.load()

    def prune_index(self, *, apply: bool) -> int:
        """How many files the index of ids knows that no retained snapshot names, and with `apply` forgets."""
        if self._id_index is None:
            return 0
        return sum(
            self._id_index.prune(table, apply=apply) for stored in self.stored() if (table := stored.load()) is not None
        )

    def remarks(self) -> list[str]:
        """What others have changed about the three tables, a sentence each. None of it is obeyed."""
        return [said for stored in self.stored() for said in stored.changed_properties()]

    def data_folder(self) -> Path:
        """Where staged files belong: the published table's own data folder. Raises `BadInput` if it is not local."""
        location = self._waveforms.ensure().location()
        if not location.startswith("file:"):
            raise BadInput(
                f"table {self._waveforms.name} is at {location}; files are staged in a local folder, so the warehouse "
                "must be one, e.g. file:///srv/wavestitch/warehouse"
            )
        folder = Path("/" + location.removeprefix("file:").lstrip("/")) / "data"
        make_folder(folder)
        return folder

    def table_uuid(self) -> str | None:
        table = self._waveforms.load()
        return None if table is None else str(table.metadata.table_uuid)

    def head(self) -> Head | None:
        table = self._waveforms.load()
        return None if table is None else newest_head(table)

    def remains(self) -> Remains | None:
        table = self._waveforms.load()
        return None if table is None else find_remains(table)

    def commit_rebuilt(self, remains: Remains, new: Head) -> Head:
        table = self._waveforms.ensure()
        if find_remains(table) != remains:
            raise CommitConflict(f"table {self._waveforms.name} is not as it was looked at; nothing was written")
        self._waveforms.commit_files(table, [], new.to_properties())
        found = newest_head(table)
        if found != new:
            raise StateUnknown(f"the commit to table {self._waveforms.name} was accepted but is not in what came back")
        return new if found is None else found

    def heads(self) -> list[Head]:
        table = self._waveforms.load()
        return [] if table is None else list(walk_heads(table))

    def published(self, ids: Collection[str]) -> dict[str, PublishedWaveform]:
        table = self._waveforms.load()
        if table is None:
            return {}
        return find_published(table, ids, index=self._id_index)

    def commit(self, base: Head | None, new: Head, files: Sequence[StagedFile]) -> Head:
        table = self._waveforms.ensure()
        newest = newest_head(table)
        if _identity(newest) != _identity(base):
            raise CommitConflict(
                f"the head of table {self._waveforms.name} is {_describe(newest)}, the decision was made on "
                f"{_describe(base)}; nothing was written",
                sequence=None if newest is None else newest.sequence,
            )
        self._waveforms.commit_files(table, [_location(f.path) for f in files], new.to_properties())
        for head in walk_heads(table):
            if head == new:
                return head
        raise StateUnknown(f"the commit to table {self._waveforms.name} was accepted but is not in what came back")

    def held_snapshot(self) -> int | None:
        table = self._held.load()
        return None if table is None else table.metadata.current_snapshot_id

    def held_rows(self) -> list[HeldChunk]:
        table = self._held.load()
        return [] if table is None else read_held(table)

    def append_held(self, plan_id: str, rows: Sequence[HeldRow]) -> None:
        if rows:
            self._held.append_missing(
                lambda table: absent_rows(table, rows), lambda absent: held_batches(absent, plan_id=plan_id)
            )

    def held_payloads(self, coordinates: Collection[Coordinate], to: Path) -> dict[Coordinate, int]:
        """Write these held chunks, bytes included, to the new landing file `to`; row number by coordinate.

        Rows are in order of coordinate. Raises `Terminal` where a chunk has no bytes in the table.
        """
        return write_payloads(self._held.ensure(), coordinates, to)

    def batches(self, *, since: int = 0, plan_id: str | None = None) -> list[BatchRow]:
        table = self._batches.load()
        return [] if table is None else read_history(table, since=since, plan_id=plan_id)

    def recorded(self, *, since: int = 0) -> set[tuple[int, str]]:
        table = self._batches.load()
        return set() if table is None else read_recorded(table, since=since)

    def append_batches(self, rows: Iterable[BatchRow]) -> None:
        wanted = list(rows)
        if wanted:
            self._batches.append_missing(lambda table: absent_history(table, wanted), history_batches)


def _identity(head: Head | None) -> tuple[int, int, int | None] | None:
    return None if head is None else (head.sequence, head.generation, head.snapshot_id)


def _describe(head: Head | None) -> str:
    if head is None:
        return "none yet"
    return f"number {head.sequence} of generation {head.generation} (snapshot {head.snapshot_id})"


def _location(path: str) -> str:
    """The path as Iceberg names it. Not percent-encoded: readers take what follows the scheme literally."""
    return path if "://" in path else f"file://{Path(path).absolute()}"
