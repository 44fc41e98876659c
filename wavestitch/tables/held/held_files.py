"""Which data files of the held table a look can need, known without opening one of them.

Files are ruled out by their partition (the reason) and their bounds. A manifest never changes, so what stands in it is
read once in a process, and kept as columns: a look at thousands of small files compares numbers, and makes objects of
the few that it opens. Never decides what is held: it answers "may have it"; that no other file has it is certain (I5).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from pyiceberg.conversions import from_bytes
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent, ManifestFile
from pyiceberg.table import FileScanTask, Table
from pyiceberg.typedef import Record
from pyiceberg.types import BooleanType, IntegerType, LongType, PrimitiveType, StringType

from wavestitch.contracts.assembly import Coordinate
from wavestitch.contracts.errors import Altered, Transient
from wavestitch.contracts.held_mark import JUNK, HeldFile, HeldMark
from wavestitch.contracts.position import Head
from wavestitch.contracts.read_places import spans_of
from wavestitch.tables.access.reading import reading_files
from wavestitch.tables.commit.table_layout import HELD
from wavestitch.tables.lookup.file_scans import files_to_read

Mask = npt.NDArray[np.bool_]
_MANIFESTS = 64
"""How many manifests' columns are kept; a table has some twenty, each commit adds one."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_NUMBERS: dict[str, PrimitiveType] = {
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp_ms": LongType(),
    "stored": BooleanType(),
}
_TEXTS = ("topic_id", "waveform_id")
_HIGHEST = "\U0010ffff" * 2
"""Where a file has no bound: nothing that we write is beyond it."""


@dataclass(frozen=True, slots=True)
class HeldFiles:
    """The live data files of a snapshot, in order of their paths. `low` and `high`: bounds by column. `scans`: how they
    are read, where that is more than the file itself (rows that another engine deleted in place)."""

    paths: Sequence[str]
    held: Sequence[HeldFile]
    specs: npt.NDArray[np.int32]
    reasons: npt.NDArray[np.str_]
    low: Mapping[str, npt.NDArray[Any]]
    high: Mapping[str, npt.NDArray[Any]]
    scans: Sequence[FileScanTask] = ()

    def tasks(self, which: Mask) -> list[FileScanTask]:
        """Those files, ready to be read."""
        meant = np.flatnonzero(which).tolist()
        return [self.scans[n] for n in meant] if self.scans else [FileScanTask(self._data_file(n)) for n in meant]

    def every(self) -> Mask:
        return np.ones(len(self.paths), bool)

    def of_chunks(self) -> Mask:
        """All but those of records that are no chunks: what such a record names as its waveform is nobody's."""
        return ~np.isin(self.reasons, sorted(JUNK))

    def of_reasons(self, reasons: Collection[str]) -> Mask:
        return np.isin(self.reasons, sorted(reasons))

    def since(self, since_ms: int) -> Mask:
        """Those that may have a row whose record time is not before this."""
        found: Mask = self.high["timestamp_ms"] >= since_ms
        return found

    def named(self, paths: Collection[str]) -> Mask:
        return np.fromiter((p in paths for p in self.paths), bool, len(self.paths))

    def with_ids(self, ids: Collection[str]) -> Mask:
        """Those that may have one of these ids, by the first and the last of them."""
        return self._meets("waveform_id", min(ids), max(ids))

    def with_bytes(self) -> Mask:
        """Those that may have a row with its bytes."""
        return self._meets("stored", 1, 1)

    def near(self, coordinates: Collection[Coordinate]) -> Mask:
        """Those that may have a row at one of these places."""
        topics, spans = spans_of(coordinates)
        there, topic = np.zeros(len(self.paths), bool), np.zeros(len(self.paths), bool)
        for partition, (start, end) in spans.items():
            there |= self._meets("partition", partition, partition) & self._meets("offset", start, end - 1)
        for one in topics:
            topic |= self._meets("topic_id", one, one)
        return there & topic

    def _meets(self, column: str, first: object, last: object) -> Mask:
        # As it is, once more: numpy makes a text of its own of a bare one.
        least, most = (np.array(one, self.low[column].dtype) for one in (first, last))
        found: Mask = (self.low[column] <= most) & (self.high[column] >= least)
        return found

    def _data_file(self, n: int) -> DataFile:
        """Without bounds: every column that we read is in the file."""
        about = self.held[n]
        made = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=self.paths[n],
            file_format=FileFormat.PARQUET,
            partition=Record(about.reason),
            record_count=about.rows,
            file_size_in_bytes=about.bytes,
        )
        made.spec_id = int(self.specs[n])
        return made


def held_files_of(table: Table, snapshot_id: int) -> HeldFiles:
    """The live files of a snapshot. Raises `Altered` where it is not there."""
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    if snapshot is None:
        name = ".".join(table.name())
        raise Altered(
            f"the head names snapshot {snapshot_id} of table {name}, which is not there (expired by somebody else, or "
            "an older state of the table was restored): go back to a metadata file of the table that has it, or look "
            f"at what is left with `wavestitch rewind {table.name()[0]} --to rebuilt`",
            table=name,
        )
    with reading_files(table, snapshot_id):
        manifests = snapshot.manifests(table.io)
        if any(m.content == ManifestContent.DELETES for m in manifests):
            # By another engine: which rows of a file are gone is said by all manifests together.
            scans = files_to_read(table, snapshot_id=snapshot_id)
            return replace(_columns([task.file for task in scans]), scans=scans)
        return _together([_of_manifest(_Manifest(m, table.io)) for m in manifests])


@contextmanager
def told_of_newer(mark: HeldMark, *, there: Callable[[], bool], newest: Callable[[], Head | None]) -> Iterator[None]:
    """Around whatever reads what a head names as held. Raises `Transient` where that snapshot is not `there` any more
    and the newest head names something else: maintenance lets go of what older ones name, and nobody has damaged it.
    What is lost of a snapshot that is there is damage."""
    try:
        yield
    except Altered as error:
        if there():
            raise
        head = newest()
        if head is None or (head.held is not None and head.held.snapshot_id == mark.snapshot_id):
            raise
        raise Transient(
            f"held snapshot {mark.snapshot_id}, which the head named when it was looked at, is not there any more, and "
            "the newest head names another one: look again"
        ) from error


class _Manifest:
    """A manifest as a key: by its path and length, whatever reads it."""

    __slots__ = ("io", "key", "manifest")

    def __init__(self, manifest: ManifestFile, io: FileIO) -> None:
        self.key = manifest.manifest_path, manifest.manifest_length
        self.manifest = manifest
        self.io = io

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Manifest) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=_MANIFESTS)
def _of_manifest(one: _Manifest) -> HeldFiles:
    entries = one.manifest.fetch_manifest_entry(one.io, discard_deleted=True)
    return _columns([entry.data_file for entry in entries])


def _columns(files: Sequence[DataFile]) -> HeldFiles:
    lows, highs = [f.lower_bounds or {} for f in files], [f.upper_bounds or {} for f in files]
    low, high = {}, {}
    for name in (*_NUMBERS, *_TEXTS):
        kind, number = _NUMBERS.get(name, StringType()), HELD.get_field_index(name) + 1
        least, most = (_LEAST, _MOST) if name in _NUMBERS else ("", _HIGHEST)
        # Texts as they are: numpy's own would lose what ends in a null character.
        dtype = np.int64 if name in _NUMBERS else np.object_
        low[name] = np.array([from_bytes(kind, b[number]) if number in b else least for b in lows], dtype)
        high[name] = np.array([from_bytes(kind, b[number]) if number in b else most for b in highs], dtype)
    about = [held_file(f) for f in files]
    return HeldFiles(
        paths=[f.file_path for f in files],
        held=about,
        specs=np.array([f.spec_id for f in files], np.int32),
        reasons=np.array([h.reason for h in about], np.str_),
        low=low,
        high=high,
    )


def held_file(file: DataFile) -> HeldFile:
    reason = str(file.partition[0]) if len(file.partition) else ""
    return HeldFile(file.file_path.rpartition("/")[2], file.record_count, file.file_size_in_bytes, reason)


def _together(parts: Sequence[HeldFiles]) -> HeldFiles:
    if not parts:
        return _columns([])
    paths = [path for part in parts for path in part.paths]
    held = [one for part in parts for one in part.held]
    order = sorted(range(len(paths)), key=paths.__getitem__)
    return HeldFiles(
        paths=[paths[n] for n in order],
        held=[held[n] for n in order],
        specs=np.concatenate([p.specs for p in parts])[order],
        reasons=np.concatenate([p.reasons for p in parts])[order],
        low={name: np.concatenate([p.low[name] for p in parts])[order] for name in parts[0].low},
        high={name: np.concatenate([p.high[name] for p in parts])[order] for name in parts[0].high},
    )
