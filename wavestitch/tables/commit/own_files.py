"""The files in a table's own place, in a local folder or in an object store: listed, read, put there, removed.

The one place that knows which of the two it is. Rows are in `data`, what names them in `metadata`; nothing else below
the table's location is ours, and nothing outside of it is reached. Decides nothing about which files. A file that is
put there is there whole or not at all, with the bytes that were staged, and never in the place of another (I3).
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Protocol

import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem, FileType
from pyiceberg.io import PY_IO_IMPL, FileIO
from pyiceberg.io.pyarrow import PyArrowFileIO

from wavestitch.contracts.errors import Altered, BadInput
from wavestitch.contracts.maintenance import StoredFile
from wavestitch.contracts.ports import StagedFile
from wavestitch.contracts.quantities import epoch_ms
from wavestitch.contracts.warehouse import is_stored
from wavestitch.plain_files import below
from wavestitch.tables.access.file_marks import Marks
from wavestitch.tables.commit.own_place import OwnPlace
from wavestitch.write_once import digest_stream, scratch_name

_DATA, _METADATA = "data", "metadata"
_VERSION = ".metadata.json"
STAGED = "staged"
"""In a batch's own folder: its files on their way to a store."""
_COPIED_AT_ONCE = 5 << 30
"""What a store copies by one request; more would be put together of parts, and not appear at once."""


class OwnFiles(Protocol):
    """`path`: of a `StoredFile` that was listed."""

    @property
    def where(self) -> tuple[str, str]:
        """Of rows, and of what names them; for people."""

    def listed(self) -> list[StoredFile]:
        """All that are there; one that goes while we look is left out."""

    def versions(self) -> list[str]:
        """Paths of the versions of the table's metadata."""

    def read(self, path: str) -> bytes:
        """Raises `OSError` where it is gone or cannot be read."""

    def remove(self, path: str) -> None:
        """One that is gone already is no error."""

    def staging(self, work: Path | None) -> Path:
        """Where files of a batch whose own folder is `work` are staged."""

    def place(self, staged: StagedFile) -> StagedFile:
        """The staged file where the table can name it."""


def own_files(place: OwnPlace, files: Callable[[], FileIO]) -> OwnFiles:
    """`files`: reaches the store; asked only where there is one. Raises `BadInput` for any other kind of place."""
    return StoreFiles(place.location, files) if is_stored(place.location) else LocalFiles(place.folder())


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """Staged where they are published: a name is all that a commit adds."""

    folder: Path

    @property
    def where(self) -> tuple[str, str]:
        return str(self.folder / _DATA), str(self.folder / _METADATA)

    def listed(self) -> list[StoredFile]:
        return stored_files(self.folder / name for name in (_DATA, _METADATA))

    def versions(self) -> list[str]:
        folder = self.folder / _METADATA
        return sorted(str(p) for p in (folder.glob(f"*{_VERSION}") if folder.is_dir() else ()) if p.is_file())

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def remove(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def staging(self, work: Path | None) -> Path:
        del work
        return self.folder / _DATA

    def place(self, staged: StagedFile) -> StagedFile:
        return staged


class StoreFiles:
    """Staged in the landing and sent by whoever publishes: Spark needs no login to the store."""

    def __init__(self, location: str, files: Callable[[], FileIO]) -> None:
        self._location = location
        self._files = files

    @property
    def where(self) -> tuple[str, str]:
        return f"{self._location}/{_DATA}", f"{self._location}/{_METADATA}"

    def listed(self) -> list[StoredFile]:
        return [found for folder in self.where for found in self._below(folder)]

    def versions(self) -> list[str]:
        return sorted(f.path for f in self._below(self.where[1]) if f.path.endswith(_VERSION))

    def read(self, path: str) -> bytes:
        with self._store.open_input_stream(_key(path)) as source:
            return bytes(source.read())

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self._store.delete_file(_key(path))

    def staging(self, work: Path | None) -> Path:
        if work is None:
            raise BadInput(f"{self._location} is in an object store; files for it are staged in a batch's own folder")
        return below(work, STAGED)

    def place(self, staged: StagedFile) -> StagedFile:
        """Sent under a name of its own, read back, and only then copied to its final one, within the store: what breaks
        off leaves no half of a file under a name that another try, or a snapshot, may count on. Its final name carries
        the digest of its bytes, so that two who send it at once write the same."""
        final = f"{self.where[0]}/{PurePosixPath(staged.path).name}"
        if staged.bytes > _COPIED_AT_ONCE:
            raise BadInput(
                f"staged file {staged.path} has {staged.bytes >> 20} MiB; a store takes {_COPIED_AT_ONCE >> 20} at "
                "once: lower limits.max_waveform_bytes of the stream"
            )
        there = self._store.get_file_info(_key(final))
        if there.type == FileType.NotFound:
            self._send(staged, final)
        else:  # by an earlier try, or somebody who was told to do the same
            self._prove(final, staged)
        return replace(staged, path=final)

    def _send(self, staged: StagedFile, final: str) -> None:
        scratch = f"{self.where[0]}/{scratch_name()}"
        try:
            with pa.memory_map(staged.path) as source, self._store.open_output_stream(_key(scratch)) as sink:
                sink.write(source.read_buffer())
            self._prove(scratch, staged)
            self._store.copy_file(_key(scratch), _key(final))
        finally:
            with suppress(OSError):  # maintenance takes what stays
                self._store.delete_file(_key(scratch))
        size = self._store.get_file_info(_key(final)).size
        if size != staged.bytes:
            raise Altered(f"{final} has {size} bytes, {staged.bytes} were sent; look for what changed it", file=final)

    def _prove(self, path: str, staged: StagedFile) -> None:
        with self._store.open_input_stream(_key(path)) as source:
            size, digest = digest_stream(source)
        if (size, digest) != (staged.bytes, staged.digest):
            raise Altered(
                f"{path} has {size} bytes and digest {digest}; {staged.bytes} with {staged.digest} were staged: move "
                "it away and run the batch's publish step again",
                file=path,
            )

    def _below(self, folder: str) -> Iterator[StoredFile]:
        wanted = FileSelector(_key(folder), recursive=True, allow_not_found=True)
        for found in sorted(self._store.get_file_info(wanted), key=lambda f: f.path):
            if found.type == FileType.File:
                yield StoredFile(f"s3://{found.path}", found.size, epoch_ms(found.mtime_ns))

    @cached_property
    def _store(self) -> FileSystem:
        files = self._files()
        if not isinstance(files, PyArrowFileIO):
            raise BadInput(
                f"[tables.properties] has files reached by {type(files).__name__}; a warehouse in an object store is "
                f"reached by pyarrow alone: take {PY_IO_IMPL} out"
            )
        return files.fs_by_scheme("s3", _key(self._location).partition("/")[0])


def stored_files(folders: Iterable[Path]) -> list[StoredFile]:
    """All files below these folders, and none that a link leads to."""
    found = []
    marks = Marks()
    for path in sorted(p for folder in folders for p in folder.rglob("*")):
        try:
            about = path.lstat()
        except FileNotFoundError:
            continue
        if stat.S_ISREG(about.st_mode):
            file = StoredFile(str(path), about.st_size, epoch_ms(about.st_mtime_ns), marks.listed(str(path), about))
            found.append(file if file.covers == file.path else file._replace(marks=file.marks | marks.of(file.covers)))
    return found


def _key(location: str) -> str:
    return location.removeprefix("s3://")
