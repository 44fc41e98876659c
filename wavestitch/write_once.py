"""Write-once files: digested as they are written, durable before they get their name, never replaced (I3, I6).

Until it is whole a file has a hidden name that nobody reads; then it is linked to its final one, which fails where that
exists. So a retried, a speculated and a stale writer are all harmless.
"""

from __future__ import annotations

import errno
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import xxhash

from wavestitch.contracts.errors import Altered, BadInput, Transient

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
_BLOCK = 1 << 20
_AHEAD_BYTES = 8 << 20
"""So much is handed to the disk at a time while the rest is still being written: `fsync` then has little left to do."""


class DigestingFile:
    """A file to be in `folder`; `size` in bytes, `hexdigest` XXH3-128 of all of them."""

    def __init__(self, folder: Path, title: str) -> None:
        self.size = 0
        self._handed_over = 0
        self._folder = folder
        self._path = folder / f".{title}-{uuid.uuid4().hex}.tmp"
        self.closed = False
        self._hash = xxhash.xxh3_128()
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        whole = len(view)
        self._hash.update(view)
        while len(view):
            written = os.write(self._fd, view)
            self.size += written
            view = view[written:]
        if self.size - self._handed_over >= _AHEAD_BYTES:
            # Linux begins to write dirty pages out when told that they will not be needed; it keeps them until then.
            os.posix_fadvise(self._fd, self._handed_over, self.size - self._handed_over, os.POSIX_FADV_DONTNEED)
            self._handed_over = self.size
        return whole

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is buffered here."""

    def tell(self) -> int:
        return self.size

    def hexdigest(self) -> str:
        return self._hash.hexdigest()

    def keep_as(self, name: str) -> Path:
        """Make it durable under this name. A file that has the name already stays: it must have the same bytes."""
        os.fsync(self._fd)
        path = self._folder / name
        try:
            os.link(self._path, path)
        except FileExistsError:
            _compare(path, self.size, self.hexdigest())
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise BadInput(
                    f"the file system of {self._folder} does not take hard links ({error.strerror}), which write-once "
                    "files need; put the folder on another one"
                ) from error
            raise
        sync_folder(self._folder)
        return path

    def discard(self) -> None:
        """Close it and take the hidden name away; the name that `keep_as` gave stays."""
        if not self.closed:
            self.closed = True
            os.close(self._fd)
            self._path.unlink(missing_ok=True)


def _compare(path: Path, size: int, digest: str) -> None:
    # The name carries the digest, but it may have been altered since.
    found = digest_file(path)
    if found != (size, digest):
        raise Altered(
            f"{path} has {found[0]} bytes and XXH3-128 {found[1]}; written under this name were {size} bytes with "
            f"{digest}: move it away and run the step again",
            file=str(path),
        )


def digest_file(path: Path) -> tuple[int, str]:
    """Bytes and XXH3-128 of a file."""
    seen, size = xxhash.xxh3_128(), 0
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            seen.update(block)
            size += len(block)
    return size, seen.hexdigest()


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_digested(
    folder: Path, name: Callable[[str], str | None], fill: Callable[[Path], None]
) -> tuple[str | None, int, str]:
    """Let `fill` write a new file, then give it the name that `name` makes of its digest: name, bytes and digest.

    By path, for writers that would hand a Python file a copy of all they write. Where `name` gives None the file turned
    out to be needless. Raises `Altered` where that name exists with other bytes; `OSError` as the file system gave it.
    """
    with scratch_file(folder) as scratch:
        fill(scratch)
        size, digest = digest_file(scratch)
        final = name(digest)
        if final is not None and not place_once(scratch, folder / final):
            _compare(folder / final, size, digest)
    return final, size, digest


@contextmanager
def scratch_file(folder: Path) -> Iterator[Path]:
    """A hidden name in `folder` for a file in the making; removed in the end, whatever happened."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".{uuid.uuid4().hex}.tmp"
    # Made here, so that whoever writes it leaves its mode: for its owner and group, whatever else others may read.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640))
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def place_once(scratch: Path, target: Path) -> bool:
    """Give a finished file its name, durably. False where the name is taken; what has it stays as it is."""
    sync_file(scratch)
    try:
        os.link(scratch, target)
    except FileExistsError:
        return False
    sync_folder(target.parent)
    return True


def write_first(path: Path, text: str) -> bool:
    """Write a small text durably, unless the file exists: then what is there stands. Whether it was written."""
    with scratch_file(path.parent) as scratch:
        scratch.write_text(text, encoding="utf-8")
        return place_once(scratch, path)


def sync_file(path: Path) -> None:
    """Make a file's bytes durable."""
    with path.open("rb") as handle:
        os.fsync(handle.fileno())


@contextmanager
def disk_errors(doing: str) -> Iterator[None]:
    """Around (or as a decorator of) whatever works with files: what the disk refuses is an error of the tree."""
    try:
        yield
    except OSError as error:
        where = f" at {error.filename}" if error.filename else ""
        raise Transient(
            f"{doing} failed: {error.strerror or error}{where}; look after space and rights there, then run the step "
            "again",
            errno=error.errno,
        ) from error
