"""One table of a stream in the catalog: loaded fresh each time, made at first use, appended to without losing rows.

Never decides what is in it. Two processes that make it at once both get it. Rows are appended by compare-and-set: on a
conflict, what is there is looked at again, so that neither process's rows are lost or doubled (I6).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TypeVar
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.table.update.snapshot import _OverwriteFiles
from pyiceberg.typedef import EMPTY_DICT
from sqlalchemy.exc import IntegrityError

from wavestitch.contracts.errors import Altered, Transient
from wavestitch.contracts.ports import CommitConflict
from wavestitch.tables.access.durable_file_io import all_or_none
from wavestitch.tables.access.ordered_times import times_that_go_back
from wavestitch.tables.access.reading import reading
from wavestitch.tables.commit.one_commit import OneCommit
from wavestitch.tables.commit.own_columns import refuse_lost, strange_columns
from wavestitch.tables.commit.own_files import OwnFiles, own_files
from wavestitch.tables.commit.own_partitions import other_partitions, refusing_partitions
from wavestitch.tables.commit.own_place import OwnPlace
from wavestitch.tables.commit.own_properties import changed_properties, knows_all_names, with_own_properties
from wavestitch.tables.commit.samples_column import sample_type_of, widen_samples
from wavestitch.tables.commit.table_layout import GROUP_BYTES, HELD_FILE_BYTES, RAW_COLUMNS, TableLayout

Row = TypeVar("Row")

_MAPPING = "schema.name-mapping.default"
_APPEND_ATTEMPTS = 50
_GROUP_BYTES = 8 << 20
_FILE_BYTES = 256 << 20
"""Unpacked: whoever reads a file has it in memory."""


class StoredTable:
    """The table `namespace.layout.name`, whether it exists yet or not."""

    def __init__(
        self,
        catalog: Catalog,
        namespace: str,
        layout: TableLayout,
        *,
        warehouse: str,
        made: Callable[[], TableLayout] | None = None,
    ) -> None:
        """`made`: the layout that it is made with where it is missing, if that has other columns."""
        self.place = OwnPlace.of(warehouse, namespace, layout.name)
        self._catalog = catalog
        self._namespace = namespace
        self._layout = layout
        self._made = made or (lambda: layout)
        self.name = f"{namespace}.{layout.name}"

    @cached_property
    def files(self) -> OwnFiles:
        """Those in its own place, whatever it says itself. Raises `BadInput` where that is of no kind that we can."""
        return own_files(self.place, self._catalog._load_file_io)

    def load(self) -> Table | None:
        """The table as it is now, with the properties that we make one with; None where nothing was ever written.
        Raises `BadInput` where somebody has renamed or dropped a column of ours."""
        found = self._load()
        if found is None:
            return None
        refuse_lost(found, self._layout)
        return self.place.with_own_versions(with_own_properties(found, self._layout.properties))

    def load_to_change(self) -> Table | None:
        """As `load`. Raises `BadInput` where the table says that it is at another place than its own."""
        found = self.load()
        if found is not None:
            self.place.refuse_other(found)
        return found

    def strange_columns(self, table: Table) -> list[str]:
        """A sentence for each column that is not as the table was made."""
        return strange_columns(table, self._layout)

    def changed_properties(self) -> list[str]:
        """A sentence for each column and each property that somebody has changed since the table was made, for other
        partitions, for another place that it says it is at, and for times that go back. None of these properties is
        obeyed."""
        found = self._load()
        if found is None:
            return []
        moved = self.place.remark(found)
        theirs, columns = dict(found.metadata.properties), self.strange_columns(found)
        mapping = self._layout.properties[_MAPPING]
        # Which names files know columns by follows from these, and keeps names from before and columns that are gone.
        if columns or knows_all_names(theirs.get(_MAPPING, ""), mapping):
            theirs[_MAPPING] = mapping
        changed = columns + changed_properties(self.name, theirs, self._layout.properties)
        changed += other_partitions(found, self._layout)
        changed += times_that_go_back(self.name, found.metadata)
        return changed if moved is None else [moved, *changed]

    def _load(self) -> Table | None:
        with reading(self.name):
            try:
                found = self._catalog.load_table(self.name)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
        if self._layout.name == "waveforms":
            sample_type_of(found)
        return found

    def ensure(self) -> Table:
        """The table as it is now, made where it is missing, for whoever writes to it. Raises `BadInput` where it says
        that it is at another place than its own."""
        found = self.load_to_change()
        if found is not None:
            return found
        with reading(self.name):
            with suppress(NamespaceAlreadyExistsError, IntegrityError):  # another process was faster
                self._catalog.create_namespace_if_not_exists(self._namespace)
            with suppress(TableAlreadyExistsError):
                self._catalog.create_table(
                    self.name,
                    schema=self._made().schema,
                    # Otherwise the catalog chooses, or a property of the namespace, which others may set.
                    location=self.place.location,
                    partition_spec=self._layout.partitions,
                    properties=self._layout.properties,
                )
        made = self.load_to_change()
        if made is None:
            raise Transient(f"table {self.name} was removed right after it was made; try again")
        return made

    def commit_files(self, table: Table, paths: Sequence[str], summary: Mapping[str, str] = EMPTY_DICT) -> None:
        """One snapshot with these Parquet files (none: an empty one) on top of `table`, as it was loaded. Where they
        have wider samples, the column is promoted in the same commit.

        Raises `CommitConflict` where the table is not as it was any more, `StateUnknown`, or `Altered` for a file that
        cannot be added.
        """
        change = OneCommit(table)
        try:
            with reading(self.name), _without_statistics(), refusing_partitions(table, self._layout):
                if paths and self._layout.name == "waveforms":
                    widen_samples(change, table, paths[0])
                change.add_files(list(paths), snapshot_properties=dict(summary), check_duplicate_files=False)
        except ValueError as error:
            raise Altered(f"a staged file cannot be added to table {self.name}: {error}") from error
        change.commit_transaction()

    def commit_instead(
        self,
        table: Table,
        paths: Sequence[str],
        old: Iterable[DataFile],
        new: Iterable[DataFile],
        summary: Mapping[str, str],
    ) -> None:
        """As `commit_files`, and in the same snapshot the new files stand for the old ones. It says that it overwrites:
        whoever follows the table's changes sees rows go."""
        change = OneCommit(table)
        try:
            with reading(self.name), _without_statistics(), refusing_partitions(table, self._layout):
                if paths:
                    widen_samples(change, table, paths[0])
                added = [parquet_file_to_data_file(table.io, change.table_metadata, path) for path in paths]
                with _OverwriteFiles(Operation.OVERWRITE, change, table.io, snapshot_properties=dict(summary)) as files:
                    for file in old:
                        files.delete_data_file(file)
                    for file in (*new, *added):
                        files.append_data_file(file)
        except ValueError as error:
            raise Altered(f"a staged file cannot be added to table {self.name}: {error}") from error
        change.commit_transaction()

    def replace(self, table: Table, old: Iterable[DataFile], new: Iterable[DataFile]) -> None:
        """One snapshot in which the new files stand for the old, on top of `table`, as it was loaded. It says of itself
        that it replaces: whoever asks must have proven that their rows are the same.

        Raises `CommitConflict` where the table is not as it was any more, `StateUnknown`; the files stay either way,
        and go with maintenance where no snapshot names them.
        """
        change = OneCommit(table)
        with reading(self.name), _Replacing(Operation.OVERWRITE, change, table.io) as files:
            for file in old:
                files.delete_data_file(file)
            for file in new:
                files.append_data_file(file)
        change.commit_transaction()

    def data_files(self, table: Table, paths: Iterable[str]) -> list[DataFile]:
        """Files that were written, as the table would name them."""
        with reading(self.name), _without_statistics(), refusing_partitions(table, self._layout):
            return [parquet_file_to_data_file(table.io, table.metadata, path) for path in paths]

    def append_missing(
        self, missing: Callable[[Table], Sequence[Row]], encode: Callable[[Sequence[Row]], Iterable[pa.RecordBatch]]
    ) -> None:
        """Append the rows that `missing` finds absent from the table, until it finds none.

        `encode` makes record batches of them, of a size that fits memory, in the layout's columns.
        """
        written: Sequence[Row] = ()
        paths: list[str] = []
        for _ in range(_APPEND_ATTEMPTS):
            table = self.ensure()
            rows = missing(table)
            if rows and rows != written:
                paths, written = self.write(table, encode(rows)), rows
            if not rows:
                return
            try:
                self.commit_files(table, paths)
                return
            except CommitConflict:
                continue
        raise Transient(f"{_APPEND_ATTEMPTS} times others appended to table {self.name} first; try again")

    def write(self, table: Table, batches: Iterable[pa.RecordBatch], *, file_bytes: int = HELD_FILE_BYTES) -> list[str]:
        """Durable files with these rows, of about `file_bytes` each; nothing names them yet."""
        # pyiceberg's own append queues the whole stream in memory before it writes; a parked batch can be gigabytes.
        paths: list[str] = []
        rest = _row_groups(batches, self._layout)
        batch = next(rest, None)
        with all_or_none(table.io, paths):
            while batch is not None:
                path = table.location_provider().new_data_location(f"{uuid4()}.parquet")
                with reading(self.name), table.io.new_output(path).create() as sink:
                    paths.append(path)
                    with pq.ParquetWriter(sink, self._layout.columns, **self._parquet_options()) as writer:
                        unpacked = 0
                        while batch is not None and sink.tell() < file_bytes and unpacked < _FILE_BYTES:
                            writer.write_batch(batch)
                            unpacked += batch.nbytes
                            batch = next(rest, None)
        return paths

    def _parquet_options(self) -> dict[str, object]:
        plain = [c for c in self._layout.columns.names if c not in RAW_COLUMNS]
        return {"compression": "zstd", "use_dictionary": plain, "write_statistics": plain}


@contextmanager
def _without_statistics() -> Iterator[None]:
    """Columns of payload have none, on purpose; pyiceberg would warn of each in every file."""
    log = logging.getLogger("pyiceberg.io.pyarrow")

    def other(record: logging.LogRecord) -> bool:
        return "statistics missing" not in str(record.msg)

    log.addFilter(other)
    try:
        yield
    finally:
        log.removeFilter(other)


def _row_groups(batches: Iterable[pa.RecordBatch], layout: TableLayout) -> Iterator[pa.RecordBatch]:
    """The same rows, small neighbours together: each batch becomes a row group."""
    most, columns = int(layout.properties.get(GROUP_BYTES, _GROUP_BYTES)), layout.columns
    some: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if some and size + batch.nbytes > most:
            yield _joined(some, columns)
            some, size = [], 0
        some.append(batch)
        size += batch.nbytes
    if some:
        yield _joined(some, columns)


def _joined(batches: Sequence[pa.RecordBatch], columns: pa.Schema) -> pa.RecordBatch:
    return pa.concat_batches([batch.select(columns.names).cast(columns) for batch in batches])


class _Replacing(_OverwriteFiles):
    """pyiceberg makes no snapshots that replace. One that overwrites is the same, but for what it says of itself: who
    follows a table's changes must not take its rows for new ones."""

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        found = super()._summary(snapshot_properties)
        return Summary(Operation.REPLACE, **found.additional_properties)
