"""Which data files of a table have given ids, known without opening any of them (I2).

One store a table and column, on this host, named after the table's own UUID. It knows files, not snapshots: data files
and manifests never change, so that it follows compaction, expiry and a table that was set back by reading the manifests
and the id columns that it has not read before. What is damaged, foreign or of another format is made anew from the
table, never believed. It answers "these files may have it"; that no other has it is certain.
"""

from __future__ import annotations

import errno
import logging
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import compress
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestFile
from pyiceberg.table import FileScanTask, Table
from pyiceberg.typedef import Record

from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.modes import make_own_folder
from wavestitch.tables.access.reading import reading_files
from wavestitch.tables.lookup.file_scans import files_to_read, read_file
from wavestitch.tables.lookup.id_store import FORMAT, Damaged, Hashes, IdStore, hash_ids, open_store

R = TypeVar("R")
Parts = list[npt.NDArray[np.uint32]]

_IDS_AT_ONCE = 1 << 20
_ATTEMPTS = 3
log = logging.getLogger(__name__)


class FileWithIds(NamedTuple):
    """A live data file, and those of the ids asked for that it may have."""

    task: FileScanTask
    ids: set[str]


class IdIndex:
    """The indexes of the tables of one deployment, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def files_of(
        self,
        table: Table,
        ids: Collection[str],
        *,
        column: str = "waveform_id",
        snapshot_id: int | None = None,
        without: Collection[str] = (),
    ) -> dict[str, set[str]]:
        """Path of each live data file of the snapshot (the current one) that may have any of these ids, with those.

        A file that is not named certainly has none, or its partition is one of `without`: such files are not in the
        index, whatever ids they name. Raises `BadInput` or `Transient` where the folder cannot be used.
        """
        found = self._find(table, ids, _Kind(column, frozenset(without)), snapshot_id=snapshot_id)
        return {_Named.parse(name).path: some for name, some in found.items()}

    def tasks_of(
        self, table: Table, ids: Collection[str], *, column: str = "waveform_id", snapshot_id: int | None = None
    ) -> list[FileWithIds]:
        """The same files, ready to be read, in order of their paths. Rows that were deleted in place are left out."""
        found = self._find(table, ids, _Kind(column), snapshot_id=snapshot_id)
        named = {_Named.parse(name): some for name, some in found.items()}
        if named and any(m.content == ManifestContent.DELETES for m in _manifests(table, snapshot_id)):
            # By another engine: which rows of a file are gone is said by all manifests together.
            by_path = {n.path: some for n, some in named.items()}
            tasks = [t for t in files_to_read(table, snapshot_id=snapshot_id) if t.file.file_path in by_path]
            return [FileWithIds(t, by_path[t.file.file_path]) for t in tasks]
        return [FileWithIds(FileScanTask(n.data_file()), named[n]) for n in sorted(named)]

    def live(self, table: Table, names: Collection[str]) -> set[str]:
        """Those of these data files, named by `name_of`, whose rows all are in the table as it is now: of a snapshot in
        which another engine deleted some in place, none."""
        if not names or any(m.content == ManifestContent.DELETES for m in _manifests(table, None)):
            return set()
        return self._asked(table, _Kind("waveform_id"), None, partial(_live_of, names=names)) or set()

    def is_there(self, table: Table, *, column: str = "waveform_id") -> bool:
        """Whether this host has one already: making it reads the ids of the whole table. Raises as `files_of`."""
        path = self._store_of(table, _Kind(column))[0]
        with _usable(path):
            return path.exists()

    def prune(
        self, table: Table, *, apply: bool = True, column: str = "waveform_id", without: Collection[str] = ()
    ) -> int:
        """How many files are known that no retained snapshot names any more, and with `apply` forgotten."""
        path, identity = self._store_of(table, _Kind(column, frozenset(without)))
        if not self.is_there(table, column=column):
            return 0
        named = {_part(m) for s in table.metadata.snapshots for m in _manifests(table, s.snapshot_id)}
        try:
            with _usable(path), open_store(path, identity, write=apply) as store:
                return store.forget_all_but(named) if apply else store.count_all_but(named)
        except Damaged as error:
            log.warning("the index of ids %s is removed: %s", path, error)
            _remove(path)
            return 0

    def _find(self, table: Table, ids: Collection[str], kind: _Kind, *, snapshot_id: int | None) -> dict[str, set[str]]:
        """Names of files with ids."""
        return (self._asked(table, kind, snapshot_id, partial(_look_up, ids=ids)) or {}) if ids else {}

    def _asked(
        self, table: Table, kind: _Kind, snapshot_id: int | None, ask: Callable[[IdStore, Parts], R]
    ) -> R | None:
        """Of a store that covers this snapshot, and the numbers of its files; None where it has none. What is damaged
        is removed, and the loop goes round with a new one."""
        manifests = {_part(m): m for m in _manifests(table, snapshot_id) if m.content == ManifestContent.DATA}
        if not manifests:
            return None
        path, identity = self._store_of(table, kind)
        try:
            make_own_folder(self.folder.parent, self.folder.name)
        except OSError as error:
            raise BadInput(
                f"the cache folder {self.folder} cannot be made ({error}); see `cache` in the settings"
            ) from error
        for _ in range(_ATTEMPTS):
            try:
                with _usable(path):
                    if (found := _look(path, identity, manifests, ask)) is None:
                        _follow(path, identity, table, list(manifests.values()), kind, snapshot_id)
                        # Not in the next round: what is damaged may take one for what it lacks and one for what it has.
                        found = _look(path, identity, manifests, ask)
                if found is not None:
                    return found
            except _OtherKey:
                continue  # somebody has removed it meanwhile, and it was made anew
            except Damaged as error:
                log.warning("the index of ids %s is made anew from the table: %s", path, error)
                _remove(path)
        raise Transient(f"the index of ids {path} was changed {_ATTEMPTS} times while it was looked at; try again")

    def _store_of(self, table: Table, kind: _Kind) -> tuple[Path, str]:
        uuid = table.metadata.table_uuid
        identity = f"{FORMAT} {uuid} {kind.column} blake2b {','.join(sorted(kind.without))}"
        return self.folder / f"{uuid}-{kind.column}-v{FORMAT}.sqlite", identity


class _Kind(NamedTuple):
    """What an index is of: a column, in all files but those of these partitions."""

    column: str
    without: frozenset[str] = frozenset()

    def has(self, file: DataFile) -> bool:
        return not (self.without and len(file.partition) and str(file.partition[0]) in self.without)


class _Named(NamedTuple):
    """A data file as the store names it: what makes it this file and no other one, and what reading it takes."""

    path: str
    bytes: int
    rows: int
    spec: int

    @classmethod
    def of(cls, file: DataFile) -> str:
        return f"{file.file_path}\n{file.file_size_in_bytes}\n{file.record_count}\n{file.spec_id}"

    @classmethod
    def parse(cls, name: str) -> _Named:
        path, *numbers = name.rsplit("\n", 3)
        return cls(path, *map(int, numbers))

    def data_file(self) -> DataFile:
        """Without bounds and partition: every column that we read is in the file."""
        made = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=self.path,
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=self.rows,
            file_size_in_bytes=self.bytes,
        )
        made.spec_id = self.spec
        return made


def _manifests(table: Table, snapshot_id: int | None) -> list[ManifestFile]:
    snapshot = table.current_snapshot() if snapshot_id is None else table.snapshot_by_id(snapshot_id)
    with reading_files(table, snapshot_id):
        return [] if snapshot is None else snapshot.manifests(table.io)


def _part(manifest: ManifestFile) -> str:
    return f"{manifest.manifest_path}\n{manifest.manifest_length}"


def name_of(file: DataFile) -> str:
    """What makes a data file this one and no other, as the store names it."""
    return _Named.of(file)


def _look(
    path: Path, identity: str, manifests: Mapping[str, ManifestFile], ask: Callable[[IdStore, Parts], R]
) -> R | None:
    """None: there is no store, or it does not cover all of these manifests."""
    if not path.exists():
        return None
    with open_store(path, identity, write=False) as store:
        parts = store.known_parts(manifests)
        return ask(store, list(parts.values())) if parts.keys() == manifests.keys() else None


def _live_of(store: IdStore, parts: Parts, names: Collection[str]) -> set[str]:
    live = set(np.concatenate(parts).tolist())
    return {name for name, number in store.known_files(names).items() if number in live}


def _look_up(store: IdStore, parts: Parts, ids: Collection[str]) -> dict[str, set[str]]:
    hashes = hash_ids(ids, store.key)
    hits = list(store.find(hashes, np.concatenate(parts)))
    # Nearly all ids of a batch are new, and are in no file.
    met = np.isin(hashes, np.array([hashed for hashed, _ in hits], np.uint64))
    by_hash: dict[int, set[str]] = {}
    for one, hashed in zip(compress(ids, met.tolist()), hashes[met].tolist(), strict=True):
        by_hash.setdefault(hashed, set()).add(one)
    by_file: dict[int, set[str]] = {}
    for hashed, number in hits:
        by_file.setdefault(number, set()).update(by_hash[hashed])
    names = store.names_of(by_file)
    if names.keys() != by_file.keys():
        raise Damaged("a file that it has ids of is not in it")
    return {names[number]: some for number, some in by_file.items()}


def _follow(
    path: Path, identity: str, table: Table, manifests: list[ManifestFile], kind: _Kind, snapshot_id: int | None
) -> None:
    """Cover these manifests of a snapshot: read the ids of the files in them that are not in the store yet. Files are
    read outside of any transaction; whoever else follows meanwhile reads some of them, too, and adds none twice."""
    with open_store(path, identity, write=True) as store:
        covered, key = store.known_parts(map(_part, manifests)), store.key
    parts: dict[str, list[str]] = {}
    files: dict[str, DataFile] = {}
    with reading_files(table, snapshot_id):
        for manifest in manifests:
            if _part(manifest) not in covered:
                found = [e.data_file for e in manifest.fetch_manifest_entry(table.io, discard_deleted=True)]
                parts[_part(manifest)] = [_Named.of(f) for f in found]
                files |= {_Named.of(f): f for f in found}
    with open_store(path, identity, write=False) as store:
        known = store.known_files(files)
    ids: dict[str, Hashes] = {}
    for name, file in files.items():
        if name not in known:
            has = kind.has(file)
            ids[name] = _ids_in(table, file, kind.column, key, snapshot_id) if has else np.empty(0, np.uint64)
        if sum(map(len, ids.values())) >= _IDS_AT_ONCE:
            _add(path, identity, ids, key)
            ids = {}
    _add(path, identity, ids, key)
    with open_store(path, identity, write=True) as store:
        if store.known_files(files).keys() == files.keys():  # else somebody has pruned or removed it meanwhile
            store.cover(parts)


class _OtherKey(Exception):
    """The store is another one than ids were hashed for: they would never be found in it."""


def _add(path: Path, identity: str, ids: dict[str, Hashes], key: bytes) -> None:
    with open_store(path, identity, write=True) as store:
        if store.key != key:
            raise _OtherKey
        store.add(ids)


def _ids_in(table: Table, file: DataFile, column: str, key: bytes, snapshot_id: int | None) -> Hashes:
    # With no row filter and no deletes: a row that is deleted later on must be found before that.
    batches = read_file(table, FileScanTask(file), [column], snapshot_id=snapshot_id)
    return np.concatenate([np.empty(0, np.uint64), *(hash_ids(b[column].to_pylist(), key) for b in batches)])


@contextmanager
def _usable(path: Path) -> Iterator[None]:
    """What the file system or another process says, in the words of the error tree."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        refused = isinstance(error, PermissionError | IsADirectoryError) or getattr(error, "errno", 0) == errno.EROFS
        if refused or getattr(error, "sqlite_errorcode", 0) & 0xFF in (
            sqlite3.SQLITE_READONLY,
            sqlite3.SQLITE_CANTOPEN,
            sqlite3.SQLITE_PERM,
        ):
            raise BadInput(
                f"the index of ids {path} cannot be read or written ({error}); let the settings' `cache` name a folder "
                "of this host that can be"
            ) from error
        raise Transient(
            f"the index of ids {path} cannot be used ({error}); try again. It can be deleted at any time, and is made "
            "again from the table"
        ) from error


def _remove(path: Path) -> None:
    with _usable(path):
        for ending in ("", "-journal", "-wal", "-shm"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
