"""The product's own index of ids over tables in memory: which "file" (the rows of one commit) may have an id.

Manifests and files are stood in for; following them, the store on disk and its proofs are the product's. What may
become of a file on a host (gone, damaged, put back from an older copy) is done to it here.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.typedef import Record

from wavestitch.tables.lookup import id_index
from wavestitch.tables.lookup.id_index import IdIndex
from wavestitch.tables.lookup.id_store import Hashes, hash_ids

_ids_in_really = id_index._ids_in


class _Table:
    """As pyiceberg's, as far as the index uses it. `files`: by path, the ids of each."""

    def __init__(self, uuid: str, files: Mapping[str, Collection[str]]) -> None:
        self.metadata = SimpleNamespace(table_uuid=uuid, current_snapshot_id=len(files) or None)
        self.io = None
        self.files = files

    def name(self) -> tuple[str, ...]:
        return ("waves", "waveforms")

    def current_snapshot(self) -> _Table:
        return self

    def manifests(self, _io: None) -> list[_Manifest]:
        return [_Manifest(path, rows=len(ids)) for path, ids in self.files.items()]


class _Manifest:
    """Of one file."""

    content = ManifestContent.DATA

    def __init__(self, path: str, *, rows: int) -> None:
        self.manifest_path, self.manifest_length = f"manifest of {path}", rows
        self._file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=path,
            file_format=FileFormat.PARQUET,
            partition=Record(),
            record_count=rows,
            file_size_in_bytes=rows,
        )
        self._file.spec_id = 0

    def fetch_manifest_entry(self, _io: None, *, discard_deleted: bool) -> list[Any]:
        assert discard_deleted
        return [SimpleNamespace(data_file=self._file)]


def _ids_in(table: Any, file: DataFile, column: str, key: bytes, snapshot_id: int | None) -> Hashes:
    if isinstance(table, _Table):
        return hash_ids(table.files[file.file_path], key)
    return _ids_in_really(table, file, column, key, snapshot_id)


id_index._ids_in = _ids_in


class FakeIdIndex:
    """The cache of one host, which goes with this object."""

    def __init__(self) -> None:
        # Not a `TemporaryDirectory`: whoever forgets one is warned, at a moment and in a test that chance chooses.
        self._folder = Path(tempfile.mkdtemp(prefix="ids-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._index = IdIndex(self._folder / "cache")
        self._copies = self._folder / "copies"

    def files_of(self, uuid: str, files: Mapping[str, Collection[str]], ids: Collection[str]) -> dict[str, set[str]]:
        """The files that may have any of these ids, each with those."""
        return self._index.files_of(_Table(uuid, files), ids)  # type: ignore[arg-type]

    def _stores(self) -> Iterator[Path]:
        yield from sorted((self._folder / "cache").glob("*.sqlite"))

    # what becomes of it

    def vanishes(self) -> bool:
        """As a cache may, at any time."""
        found = list(self._stores())
        for path in found:
            path.unlink()
        return bool(found)

    def is_damaged(self) -> bool:
        """Its buckets are gone, by a disk that forgot what it was told last."""
        found = list(self._stores())
        for path in found:
            with sqlite3.connect(path) as db:
                db.execute("DELETE FROM bucket")
            db.close()
        return bool(found)

    def is_copied(self) -> bool:
        found = list(self._stores())
        self._copies.mkdir(exist_ok=True)
        for path in found:
            shutil.copyfile(path, self._copies / path.name)
        return bool(found)

    @property
    def has_a_copy(self) -> bool:
        return self._copies.exists() and any(self._copies.iterdir())

    def is_put_back(self) -> bool:
        """As it was when it was copied: what was published since is in it no more."""
        found = list(self._copies.glob("*.sqlite")) if self._copies.exists() else []
        for copy in found:
            shutil.copyfile(copy, self._folder / "cache" / copy.name)
        return bool(found)
