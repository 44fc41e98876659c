"""The tables of one stream in Iceberg: waveforms (which has the head), held, batches.

Implements the protocol `Tables`. Everything is read from the table as it is at the call; nothing is remembered. The
commit is one compare-and-set of the waveforms table. Keeps I2, I6 and I7; decides nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.table import FileScanTask, Table

from wavestitch.contracts.batch_row import BatchRow, rows_of
from wavestitch.contracts.errors import Altered, BadInput, StateUnknown, Terminal, Transient
from wavestitch.contracts.held import HeldChunk, HeldKey, HeldLook, IdsLook, PublishedWaveform
from wavestitch.contracts.held_left import HeldLeft
from wavestitch.contracts.held_mark import JUNK, HeldFile, HeldMark, check_mark
from wavestitch.contracts.ports import CommitConflict, HeldRow, HeldStaging, Remains, ShownBatches, StagedFile
from wavestitch.contracts.position import Head, HeadKind
from wavestitch.contracts.sample_kinds import Encoding, SampleType
from wavestitch.modes import make_folder
from wavestitch.payload_store import BatchPayload, not_named
from wavestitch.tables.access.own_code import said_by_server
from wavestitch.tables.access.reading import reading
from wavestitch.tables.catalog import CatalogSettings, open_catalog
from wavestitch.tables.commit.samples_column import never_filled, sample_type_of
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.commit.table_layout import BATCHES_TABLE, HELD_TABLE, waveforms_layout
from wavestitch.tables.held.held_files import told_of_newer
from wavestitch.tables.held.held_left import left_snapshots, mark_as_it_is
from wavestitch.tables.held.held_look import ids_held, live_files, look_at_held
from wavestitch.tables.held.held_payloads import write_payloads
from wavestitch.tables.held.held_removal import rows_that_stay
from wavestitch.tables.held.held_rows import Apart, held_groups
from wavestitch.tables.held.held_staging import settle, stage_rows
from wavestitch.tables.held.held_values import stored_payloads
from wavestitch.tables.held.held_waiting import Released
from wavestitch.tables.history.batch_history import absent_history, history_batches, read_history, read_recorded
from wavestitch.tables.history.heads import find_remains, heads_of, newest_head, walk_heads
from wavestitch.tables.lookup.days_added import days_added
from wavestitch.tables.lookup.file_scans import files_to_read
from wavestitch.tables.lookup.id_index import IdIndex
from wavestitch.tables.lookup.published_lookup import count_by_plan, find_published
from wavestitch.tables.lookup.row_faces import PinnedRows
from wavestitch.tables.maintenance.other_tables import named_by_others
from wavestitch.tables.maintenance.replacement_proof import prove_same, sum_of_files, sum_of_rows
from wavestitch.tables.maintenance.rows_taken_out import TakenOut, refuse_fixed_rows, rows_again, take_out

_SENT_AT_ONCE = 4


class StreamTables:
    """Tables `STREAM.waveforms`, `STREAM.held` and `STREAM.batches` of a catalog; made when first written to."""

    def __init__(
        self,
        settings: CatalogSettings,
        stream: str,
        *,
        samples: Callable[[], SampleType] = lambda: "int",
        encoding: Callable[[], Encoding] = lambda: "fast",
        id_index: IdIndex | None = None,
        apart: Apart | None = None,
    ) -> None:
        """`samples`: what the stream declares, asked where the table is made; `encoding`: where rows are written again.
        `id_index`: says which files have which
        ids; without it, each lookup reads the id column of every file that can have them. `apart`: has the payload of
        landing files that do not have it."""
        self._catalog = open_catalog(settings)
        self._id_index = id_index
        self._apart = apart or _nowhere
        self._encoding = encoding
        stored = partial(StoredTable, self._catalog, stream, warehouse=settings.warehouse)
        self._waveforms = stored(waveforms_layout("int"), made=lambda: waveforms_layout(samples()))
        self._held = stored(HELD_TABLE)
        self._batches = stored(BATCHES_TABLE)

    def stored(self) -> tuple[StoredTable, StoredTable, StoredTable]:
        """Waveforms, held and batches, for maintenance."""
        return self._waveforms, self._held, self._batches

    def waveforms(self) -> Table | None:
        """The published table as it is now, for readers; None before the first commit."""
        return self._waveforms.load()

    def pinned_rows(self) -> tuple[PinnedRows, Head] | None:
        """The published table as it is now, for whoever looks at it several times, with its head; None before the
        first."""
        table = self._waveforms.load()
        head = None if table is None else newest_head(table)
        return None if table is None or head is None else (PinnedRows(table, self._id_index), head)

    def prune_index(self, *, apply: bool) -> int:
        """How many files the index of ids knows that no retained snapshot names, and with `apply` forgets."""
        if self._id_index is None:
            return 0
        waveforms, held, batches = (stored.load() for stored in self.stored())
        gone = 0 if waveforms is None else self._id_index.prune(waveforms, apply=apply)
        gone += 0 if batches is None else self._id_index.prune(batches, apply=apply, column="plan_id")
        return gone + (0 if held is None else self._id_index.prune(held, apply=apply, without=JUNK))

    def named_by_others(self) -> set[str]:
        """Paths of all files that other tables of the catalog lead to, whoever's they are."""
        return named_by_others(self._catalog, own=[stored.name for stored in self.stored()])

    def remarks(self) -> list[str]:
        """What others have changed about the three tables, or the catalog's server says of itself, a sentence each.
        None of it is obeyed."""
        changed = [said for stored in self.stored() for said in stored.changed_properties()]
        return said_by_server(self._catalog) + changed

    def sample_type(self) -> SampleType | None:
        """Of the published table; None where there is none, or it never had a row: then it takes any."""
        table = self._waveforms.load()
        return None if table is None or never_filled(table) else sample_type_of(table)

    def data_folder(self, work: Path | None = None) -> Path:
        """Where a batch whose own folder is `work` stages files: the published table's own data folder, by the
        settings; of one in an object store a folder of the batch. Raises `BadInput` where one of the three tables says
        another place than its own, or where there is nowhere to stage."""
        self._waveforms.ensure()
        for stored in (self._held, self._batches):
            stored.load_to_change()
        folder = self._waveforms.files.staging(work)
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

    def held_left(self) -> HeldLeft:
        return left_snapshots(self._held)

    def held_at(self, snapshot_id: int) -> HeldMark | None:
        return mark_as_it_is(self._held, snapshot_id)

    def published_by_plan(self) -> dict[str, int]:
        table = self._waveforms.load()
        return {} if table is None else count_by_plan(table)

    def commit_rebuilt(self, remains: Remains, new: Head) -> Head:
        table = self._waveforms.ensure()
        if self.remains() != remains:
            raise CommitConflict(f"table {self._waveforms.name} is not as it was looked at; nothing was written")
        self._vouched_for(new.held)
        self._waveforms.commit_files(table, [], new.to_properties())
        found = newest_head(table)
        if found != new:
            raise StateUnknown(f"the commit to table {self._waveforms.name} was accepted but is not in what came back")
        return new if found is None else found

    def heads(self) -> list[Head]:
        table = self._waveforms.load()
        return [] if table is None else list(heads_of(table))

    def published(self, ids: Collection[str], *, of: int | None = None) -> dict[str, PublishedWaveform]:
        table = self._waveforms.load()
        if table is None:
            return {}
        self._refuse_expired(table, of)
        return find_published(table, ids, index=self._id_index, snapshot_id=of)

    def _refuse_expired(self, table: Table, snapshot_id: int | None) -> None:
        """Maintenance may let it go while somebody works with it."""
        if snapshot_id is not None and table.metadata.snapshot_by_id(snapshot_id) is None:
            raise Transient(
                f"snapshot {snapshot_id} of table {self._waveforms.name} was let go since it was looked at; nothing "
                "was written, look again"
            )

    def files_with(self, table: Table, ids: Collection[str]) -> list[FileScanTask] | None:
        """The files of published waveforms that may have these, by the index that batches keep on this host; None
        where there is none, or it is not the reader's to use: then the files' bounds are all that is known."""
        if self._id_index is None:
            return None
        with suppress(BadInput, Transient):
            if self._id_index.is_there(table):
                return [found.task for found in self._id_index.tasks_of(table, ids)]
        return None

    def days_added(self, snapshot_id: int) -> list[str]:
        """The days that the published table's snapshot has added files of."""
        table = self._waveforms.load()
        return [] if table is None else days_added(table, snapshot_id)

    def commit(
        self, base: Head | None, new: Head, files: Sequence[StagedFile], *, instead_of: Collection[str] = ()
    ) -> Head:
        table = self._table_at(base)
        paths = [_location(f.path) for f in self._placed(files)]
        if instead_of:
            goes = self._taken_out(table, instead_of)
            self._waveforms.commit_instead(table, paths, goes.old, goes.new, new.to_properties())
        else:
            self._waveforms.commit_files(table, paths, new.to_properties())
        return self._as_committed(table, new)

    def refuse_fixed_rows(self) -> None:
        table = self._waveforms.load()
        if table is not None:
            refuse_fixed_rows(self._waveforms, table)

    def put_back(
        self, base: Head | None, new: Head, *, of: int, ids: Collection[str], instead_of: Collection[str]
    ) -> Head:
        table = self._table_at(base)
        self._refuse_expired(table, of)
        goes = self._taken_out(table, instead_of)
        tasks = files_to_read(table, snapshot_id=of)
        try:
            back = rows_again(self._waveforms, table, tasks, ids, encoding=self._encoding())
        except Altered:
            self._refuse_expired(self._waveforms.ensure(), of)
            raise
        self._waveforms.commit_instead(table, [], goes.old, [*goes.new, *back], new.to_properties())
        return self._as_committed(table, new)

    def _table_at(self, base: Head | None) -> Table:
        table = self._waveforms.ensure()
        newest = newest_head(table)
        if _identity(newest) != _identity(base):
            raise CommitConflict(
                f"the head of table {self._waveforms.name} is {_describe(newest)}, the decision was made on "
                f"{_describe(base)}; nothing was written",
                sequence=None if newest is None else newest.sequence,
            )
        return table

    def _taken_out(self, table: Table, ids: Collection[str]) -> TakenOut:
        some = self.files_with(table, ids) if ids else []
        # The index knows files by name alone, and a snapshot takes them out by all that the table says of them.
        named = None if some is None else {task.file.file_path for task in some}
        tasks = [t for t in files_to_read(table) if named is None or t.file.file_path in named] if ids else []
        return take_out(self._waveforms, table, tasks, ids, encoding=self._encoding())

    def _as_committed(self, table: Table, new: Head) -> Head:
        for head in walk_heads(table):
            if head == new:
                return head
        raise StateUnknown(f"the commit to table {self._waveforms.name} was accepted but is not in what came back")

    def _placed(self, files: Sequence[StagedFile]) -> list[StagedFile]:
        """Where the table can name them."""
        with reading(self._waveforms.name), ThreadPoolExecutor(_SENT_AT_ONCE) as pool:
            return list(pool.map(self._waveforms.files.place, files))

    def held(self, mark: HeldMark | None, look: HeldLook) -> list[HeldChunk]:
        if mark is None:
            return []
        released = None
        if look.unreleased and self._id_index is not None and (published := self._waveforms.load()) is not None:
            released = Released(published, self._id_index)
        with self._looking_at(mark):
            return look_at_held(self._named_held(), mark, look, index=self._id_index, released=released)

    def held_ids(self, mark: HeldMark | None, look: IdsLook) -> dict[str, int]:
        if mark is None:
            return {}
        with self._looking_at(mark):
            return ids_held(self._named_held(), mark, look, index=self._id_index)

    def held_files(self, mark: HeldMark | None) -> list[HeldFile]:
        if mark is None:
            return []
        with self._looking_at(mark):
            return self._vouched_for(mark)

    def _looking_at(self, mark: HeldMark) -> AbstractContextManager[None]:
        def there() -> bool:
            table = self._held.load()
            return table is None or table.metadata.snapshot_by_id(mark.snapshot_id) is not None

        return told_of_newer(mark, there=there, newest=self.head)

    def _vouched_for(self, mark: HeldMark | None) -> list[HeldFile]:
        if mark is None:
            return []
        found = live_files(self._named_held(), mark.snapshot_id)
        check_mark(mark, found, table=self._held.name)
        return found

    def _named_held(self) -> Table:
        """For who looks at what a head names. Makes none anew: who puts the table back could not, then."""
        table = self._held.load()
        if table is None:
            raise Altered(
                f"table {self._held.name} is not in the catalog, and the head names what is held in it: it was dropped "
                "or renamed; register it again from its newest metadata file"
            )
        return table

    def stage_held(self, base: HeldMark | None, rows: Sequence[HeldRow], *, staging: HeldStaging) -> HeldMark | None:
        if not rows:
            return staging.on(base)
        return stage_rows(self._held, base, lambda: held_groups(rows, staging=staging, apart=self._apart), staging)

    def rewrite_held(
        self, base: Head, rows: Mapping[str, Collection[int]], *, counts: Mapping[str, int], note: str
    ) -> Head:
        """A head of maintenance that names the held table without these rows, by file and number (a range: all;
        none: the file's rows are written together with those of the others).

        Raises `CommitConflict` where another head came first, and `Altered` where the rows that stay are not those that
        were written: then nothing has changed.
        """
        if base.held is None:
            raise Terminal(f"the head names nothing of table {self._held.name}; there is nothing to take out of it")
        table = self._named_held()
        tasks = [t for t in files_to_read(table, snapshot_id=base.held.snapshot_id) if t.file.file_path in rows]
        named = sorted((f, repr(n if isinstance(n, range) else sorted(n))) for f, n in rows.items())
        name = hashlib.sha256(repr(named).encode()).hexdigest()[:32]
        partly = [t for t in tasks if len(rows[t.file.file_path]) < t.file.record_count]
        mark = stage_rows(
            self._held,
            base.held,
            lambda: rows_that_stay(table, partly, rows),
            HeldStaging("", name, base.generation, base.sequence + 1, counts, base.held.chunk_bytes),
            instead_of=[t.file for t in tasks],
        )
        self._prove_held(table, base.held, mark, (b for _, some in rows_that_stay(table, partly, rows) for b in some))
        head = self.commit(base, base.next(kind=HeadKind.MAINTENANCE, held=mark, note=note), [])
        self.settle_held()
        return head

    def _prove_held(self, table: Table, base: HeldMark, new: HeldMark, stay: Iterable[pa.RecordBatch]) -> None:
        """That what was written in the place of others has the rows that stay, before a head names it."""
        there = {t.file.file_path for t in files_to_read(table, snapshot_id=base.snapshot_id)}
        after = self._held.ensure()
        written = (t.file for t in files_to_read(after, snapshot_id=new.snapshot_id) if t.file.file_path not in there)
        prove_same(self._held.name, sum_of_rows(stay), sum_of_files(after, written))

    def settle_held(self) -> None:
        settle(self._held, self.heads)

    def held_payloads(self, mark: HeldMark | None, chunks: Collection[HeldKey], to: Path) -> dict[HeldKey, int]:
        """Write these held chunks, bytes included, to the new landing file `to`; row number by place and piece.

        Rows are in their order. Raises `Terminal` where a chunk has no bytes in the snapshot that the head names.
        """
        if mark is None:
            raise Terminal(f"the head names nothing of table {self._held.name}; there are no bytes of held chunks")
        with self._looking_at(mark):
            return write_payloads(self._named_held(), mark.snapshot_id, chunks, to)

    def held_values(self, mark: HeldMark, chunks: Collection[HeldKey]) -> Iterator[tuple[HeldKey, Any]]:
        """These held chunks with their bytes, in no order, and nothing on disk. Raises as `held_payloads` does."""
        with self._looking_at(mark):
            yield from stored_payloads(self._named_held(), mark.snapshot_id, chunks)

    def batches(self, *, since: int = 0, plan_id: str | None = None, every_table: bool = False) -> list[BatchRow]:
        table = self._batches.load()
        if table is None:
            return []
        tasks = None if plan_id is None else self._files_with_plan(table, plan_id)
        rows = read_history(table, since=since, plan_id=plan_id, tasks=tasks)
        return rows if every_table or not any(row.table for row in rows) else rows_of(self.table_uuid(), rows)

    def _files_with_plan(self, table: Table, plan_id: str) -> list[FileScanTask] | None:
        """Each step asks whether its plan is finished, and by its bounds a file of many batches may have any of them.
        None where no index can be used: then they are all read."""
        if self._id_index is None:
            return None
        with suppress(BadInput, Transient):
            return [found.task for found in self._id_index.tasks_of(table, [plan_id], column="plan_id")]
        return None

    def shown_batches(self, *, since: int = 0, plan_id: str | None = None) -> ShownBatches:
        table, odd = self._batches.load(), list[str]()
        rows = [] if table is None else read_history(table, since=since, plan_id=plan_id, odd=odd)
        return ShownBatches(rows, tuple(odd))

    def recorded(self, *, since: int = 0) -> set[tuple[int, str]]:
        table = self._batches.load()
        return set() if table is None else read_recorded(table, since=since)

    def append_batches(self, rows: Iterable[BatchRow]) -> None:
        wanted = list(rows)
        if wanted:
            beside = self.table_uuid() or ""
            wanted = [row if row.table else replace(row, table=beside) for row in wanted]
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


def _nowhere(landing: str) -> BatchPayload:
    raise not_named(landing)
