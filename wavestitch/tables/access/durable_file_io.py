"""Files that a table is made of are on the disk before anything points to them.

The catalog's own row survives a power failure; without this, the metadata and manifests that it names may not, and then
no version of the table can be read. Only local files need it: an object store answers when it has the object.

Files are of the warehouse's kind, or local: a table may name any, and a name like `hdfs://HOST/…` is a server that is
sent a login.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from pyiceberg.io import WAREHOUSE, FileIO, InputFile, OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.typedef import EMPTY_DICT, Properties

from wavestitch.contracts.errors import Altered
from wavestitch.modes import make_folder, opener, sync_folder


class DurableFileIO(PyArrowFileIO):
    """pyiceberg's file access, except that a local file is synced, with its folder, when it is closed."""

    def __init__(self, properties: Properties = EMPTY_DICT) -> None:
        super().__init__(properties)

    def new_input(self, location: str) -> PyArrowFile:
        self._check_kind(location)
        return super().new_input(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        self._check_kind(location if isinstance(location, str) else location.location)
        super().delete(location)

    def _check_kind(self, location: str) -> None:
        """Raises `Altered` for a file of a kind that the warehouse does not have."""
        scheme = self.parse_location(location)[0]
        own = str(self.properties.get(WAREHOUSE, ""))
        if _kind(scheme) not in ("file", _kind(self.parse_location(own)[0])):
            raise Altered(
                f"a table names a file at {ascii(location)[:120]}; with the warehouse {ascii(own)[:120]} no file of a "
                "table is there: look for what changed the table"
            )

    def new_output(self, location: str) -> PyArrowFile:
        self._check_kind(location)
        scheme, netloc, path = self.parse_location(location, self.properties)
        if scheme != "file":
            return super().new_output(location)
        return _LocalFile(location, path, self.fs_by_scheme(scheme, netloc))


def _kind(scheme: str) -> str:
    """Hadoop's names for S3 are of the same store."""
    return "s3" if scheme in ("s3a", "s3n") else scheme


@contextmanager
def all_or_none(files: FileIO, paths: Sequence[str]) -> Iterator[None]:
    """Where writing these files ends in an error none of them stays: half a file takes up space that may be short, and
    nothing names it. `paths`: those that were begun by then."""
    try:
        yield
    except BaseException:
        for path in paths:
            with suppress(Exception):  # what led here is what counts; maintenance takes what stays
                files.delete(path)
        raise


class _LocalFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> OutputStream:
        make_folder(os.path.dirname(self._path))
        return _SyncedStream(self._path, overwrite=overwrite)


class _SyncedStream(io.BufferedWriter):
    def __init__(self, path: str, *, overwrite: bool) -> None:
        super().__init__(io.FileIO(path, "w" if overwrite else "x", opener=opener), buffer_size=1 << 20)
        self._folder = os.path.dirname(path)

    def close(self) -> None:
        if self.closed:
            return
        self.flush()
        os.fsync(self.fileno())
        super().close()
        sync_folder(self._folder)
