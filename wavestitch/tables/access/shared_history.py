"""Keeps pyiceberg from reading and copying a table's whole history a score of times for each batch.

It applies every update to a deep copy of the metadata, the snapshots of all time included: 2.5 ms of a commit's CPU for
each retained one. What the metadata consists of are frozen models, so only what holds them is copied. And it reads the
metadata file anew whenever a table is looked at, and the list of a snapshot's manifests whenever one of its files is
looked for. Such a file is never changed, so that what was read or written of it holds; which one is the table's is
still asked of the catalog each time. Nor is a snapshot: its text is written again as it was before. Changes nothing
else about them, and nothing for catalogs that are not ours (`own_catalogs`).

It replaces methods of pyiceberg, and `one_commit` stands in for one: both were written for, and tested with, versions
that are named here. Another one is refused with a sentence.
"""

from __future__ import annotations

from importlib.metadata import version
from threading import Lock
from typing import Any, cast

from cachetools import LRUCache, cached
from pydantic import BaseModel
from pyiceberg.manifest import ManifestFile
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table import snapshots
from pyiceberg.table.metadata import TableMetadata, TableMetadataV1, TableMetadataV2, TableMetadataV3
from pyiceberg.table.snapshots import Snapshot

from wavestitch.contracts.errors import BadInput
from wavestitch.tables.access.at_work import is_ours
from wavestitch.tables.access.durable_file_io import DurableFileIO

_TESTED = ("0.12.0",)
_KEPT = 12
"""The three tables of a few streams; versions of one table share its snapshots."""

_KINDS = (TableMetadataV1, TableMetadataV2, TableMetadataV3)
_copy = BaseModel.__deepcopy__
_read, _write = FromInputFile.table_metadata, ToOutputFile.table_metadata
_known: LRUCache[str, TableMetadata] = LRUCache(_KEPT)
_lock = Lock()
_list_really = snapshots._manifests
_lists: LRUCache[str, tuple[ManifestFile, ...]] = LRUCache(_KEPT)
_lists_lock = Lock()
_NONE = '"snapshots":[]'
_texts: LRUCache[str, dict[int, tuple[Snapshot, str]]] = LRUCache(_KEPT)
_texts_lock = Lock()


def check_version(found: str = version("pyiceberg")) -> None:
    """Raises `BadInput` for a version of pyiceberg whose insides nobody has looked at."""
    if found not in _TESTED:
        raise BadInput(
            f"pyiceberg {found} is installed, Wavestitch works inside {' and '.join(_TESTED)}: install what "
            "requirements/runtime.txt pins"
        )


def share_history() -> None:
    """From now on, in this process, a copy of our tables' metadata has the same snapshot objects as its original, and
    the metadata files and lists of manifests of them that were read or written last are not read again."""
    check_version()
    for kind in _KINDS:
        kind.__deepcopy__ = _copy_containers  # type: ignore[method-assign,assignment]
    FromInputFile.table_metadata = _read_table  # type: ignore[method-assign,assignment]
    ToOutputFile.table_metadata = _write_and_keep  # type: ignore[method-assign,assignment]
    snapshots._manifests = _list_manifests


def _copy_containers(metadata: Any, memo: dict[int, Any] | None = None) -> Any:
    if not is_ours():
        return _copy(metadata, memo)
    found = metadata.model_copy()
    for name, value in vars(found).items():
        if isinstance(value, list | dict):
            vars(found)[name] = value.copy()
    return found


def _read_table(file: Any, *args: Any, **more: Any) -> TableMetadata:
    return _read_once(file, *args, **more) if is_ours() else _read(file, *args, **more)


@cached(_known, key=lambda file, *_args, **_more: file.location, lock=_lock)
def _read_once(file: Any, *args: Any, **more: Any) -> TableMetadata:
    return _read(file, *args, **more)


def _write_and_keep(metadata: TableMetadata, file: Any, *args: Any, **more: Any) -> None:
    if not is_ours():
        _write(metadata, file, *args, **more)
        return
    _write(cast(TableMetadata, _Spelled(metadata)), file, *args, **more)
    with _lock:
        _known[file.location] = metadata


class _Spelled:
    """A table's metadata, for its file alone: of snapshots that were written before the text is known."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata

    def model_dump_json(self, **how: Any) -> str:
        whole, all_of_them = self._metadata, self._metadata.snapshots
        key = f"{whole.table_uuid} {sorted(how.items())}"
        with _texts_lock:
            known = _texts.get(key, {})
        found: dict[int, tuple[Snapshot, str]] = {}
        for one in all_of_them:
            before = known.get(one.snapshot_id)
            # The very object: what somebody else has made of the table since may say something else of it.
            same = before is not None and before[0] is one
            found[one.snapshot_id] = before if before and same else (one, one.model_dump_json(**how))
        with _texts_lock:
            _texts[key] = found
        rest = whole.model_copy(update={"snapshots": []}).model_dump_json(**how)
        head, place, tail = rest.partition(_NONE)  # in a text its quotes would be escaped
        if not place or _NONE in tail:
            return whole.model_dump_json(**how)
        return f"{head}{_NONE[:-1]}{','.join(text for _, text in found.values())}]{tail}"


def _list_manifests(io: Any, manifest_list: str) -> tuple[ManifestFile, ...]:
    # Asked of tables, too, outside of any call of their catalog: ours read their files in a way of their own.
    return _list_once(io, manifest_list) if isinstance(io, DurableFileIO) else _list_really(io, manifest_list)


@cached(_lists, key=lambda _io, manifest_list: manifest_list, lock=_lists_lock)
def _list_once(io: Any, manifest_list: str) -> tuple[ManifestFile, ...]:
    return _list_really(io, manifest_list)
