"""Write-once files: digested as they are written, durable before they get their name, never replaced (I3, I6).

What says what others are (receipts, jobs, assignments, rows for the gate) is proven by SHA-256: nobody makes another
file for its name. What is large has a checksum, XXH3-128: proof against accidents. The figures behind that are in
docs/decisions/0013-what-makes-two-chunks-the-same.md.

Until it is whole a file has a hidden name that nobody reads; then it is linked to its final one, which fails where that
exists. So a retried, a speculated and a stale writer are all harmless.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import xxhash

from wavestitch.contracts.errors import Altered, BadInput, Transient
from wavestitch.modes import make_folder, open_new, sync_folder
from wavestitch.plain_files import open_plain

SCRATCH = re.compile(r"\.[0-9a-f]{32}\.tmp")
"""What a file in the making is called."""
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)
_NO_LOCKS = (errno.ENOTSUP, errno.ENOSYS)
_BLOCK = 1 << 20
_ZEROS = memoryview(bytes(_BLOCK))
_DIGITS = 32
"""Of a digest, in hexadecimal: all of XXH3-128, half of SHA-256."""
_BEHIND_BYTES = 8 << 20
"""Of a large file, about so much is in memory at a time: what lies behind is handed to the disk and let go."""


class DigestingFile:
    """A file to be in `folder`; `size` in bytes, `hexdigest` of all of them: SHA-256, of a `large` file XXH3-128. What
    writers of files take; one that writes to a path, because it would hand a file a copy of all it writes, takes
    `path`, and `follow` is called.

    A large file leaves the page cache while it grows: whoever reads it next is another process, later, and the memory
    for all of it would be taken from others (and, on a virtual machine, fetched anew from its host).
    """

    def __init__(self, folder: Path, *, large: bool = False) -> None:
        self.size = 0
        self._large = large
        self._behind = 0
        self._folder = folder
        self.path = folder / scratch_name()
        self.closed = False
        self._hash = _begun(large=large)
        self._fd = open_new(self.path, os.O_RDWR | os.O_EXCL)
        _hold(self._fd)

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        whole = len(view)
        self._hash.update(view)
        while len(view):
            written = os.write(self._fd, view)
            self.size += written
            view = view[written:]
        self._leave_behind()
        return whole

    def skip(self, count: int) -> None:
        """Leave so many bytes out: they are zeros, and take no room where the file system knows holes."""
        done = 0
        while done < count:
            zeros = _ZEROS[: count - done]
            self._hash.update(zeros)
            done += len(zeros)
        self.size += count
        os.ftruncate(self._fd, self.size)
        os.lseek(self._fd, self.size, os.SEEK_SET)

    def follow(self) -> None:
        """Take in what was appended to `path`."""
        while block := os.pread(self._fd, _BLOCK, self.size):
            self._hash.update(block)
            self.size += len(block)
            self._leave_behind()

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Nothing is buffered here."""

    def tell(self) -> int:
        return self.size

    def hexdigest(self) -> str:
        return _digits(self._hash)

    def _leave_behind(self) -> None:
        if self.size - self._behind >= _BEHIND_BYTES:
            # Of pages that will not be needed Linux begins to write out those that are dirty, and lets go of those that
            # were written since the last time: hence from the beginning.
            os.posix_fadvise(self._fd, 0, self.size, os.POSIX_FADV_DONTNEED)
            self._behind = self.size

    def keep_as(self, name: str) -> Path:
        """Make it durable under this name. A file that has the name already stays: it must have the same bytes."""
        os.fsync(self._fd)
        if self._behind:
            os.posix_fadvise(self._fd, 0, self.size, os.POSIX_FADV_DONTNEED)
        path = self._folder / name
        try:
            os.link(self.path, path)
        except FileExistsError:
            _compare(path, self.size, self.hexdigest(), large=self._large)
        except OSError as error:
            raise _no_links(error, self._folder) from error
        sync_folder(self._folder)
        return path

    def discard(self) -> None:
        """Close it and take the hidden name away; the name that `keep_as` gave stays."""
        if not self.closed:
            self.closed = True
            os.close(self._fd)
            self.path.unlink(missing_ok=True)


def _begun(*, large: bool) -> Any:
    return xxhash.xxh3_128() if large else hashlib.sha256()


def _digits(seen: Any) -> str:
    return str(seen.hexdigest()[:_DIGITS])


def _compare(path: Path, size: int, digest: str, *, large: bool) -> None:
    # The name carries the digest, but it may have been altered since.
    found = digest_file(path, large=large)
    if found != (size, digest):
        raise Altered(
            f"{path} has {found[0]} bytes and digest {found[1]}; written under this name were {size} bytes with "
            f"{digest}: move it away and run the step again",
            file=str(path),
        )


def digest_file(path: Path, *, large: bool = False) -> tuple[int, str]:
    """Bytes and digest of a plain file, as `DigestingFile` has it. What was read of a large one leaves the page cache,
    as it did when written."""
    seen, size, behind = _begun(large=large), 0, 0
    block = memoryview(bytearray(_BLOCK))
    with open_plain(path) as file:
        while count := file.readinto(block):
            seen.update(block[:count])
            size += count
            if size - behind >= _BEHIND_BYTES:
                os.posix_fadvise(file.fileno(), behind, size - behind, os.POSIX_FADV_DONTNEED)
                behind = size
    return size, _digits(seen)


def digest_stream(source: Any) -> tuple[int, str]:
    """As `digest_file` of a large file, of what is read from elsewhere."""
    seen, size = _begun(large=True), 0
    while block := source.read(_BLOCK):
        seen.update(block)
        size += len(block)
    return size, _digits(seen)


def digest_bytes(content: bytes) -> str:
    """The digest of a small file that has this content."""
    return _digits(hashlib.sha256(content))


def read_proven(path: Path) -> bytes:
    """A small file whose name ends with its digest. Raises `Altered` where it is gone or has other bytes."""
    try:
        with open_plain(path) as file:
            content = file.read()
    except FileNotFoundError:
        raise Altered(f"{path} is gone; run its step again", file=str(path)) from None
    if digest_bytes(content) != path.stem.rpartition("-")[2]:
        raise Altered(f"{path} is not as it was written; delete it and run its step again", file=str(path))
    return content


def write_digested(
    folder: Path, name: Callable[[str], str | None], fill: Callable[[DigestingFile], Any], *, large: bool = False
) -> tuple[str | None, int, str]:
    """Let `fill` write a new file, then give it the name that `name` makes of its digest: name, bytes and digest.

    Where `name` gives None the file turned out to be needless. Raises `Altered` where that name exists with other
    bytes; `OSError` as the file system gave it.
    """
    make_folder(folder)
    file = DigestingFile(folder, large=large)
    try:
        fill(file)
        digest = file.hexdigest()
        final = name(digest)
        if final is not None:
            file.keep_as(final)
    finally:
        file.discard()
    return final, file.size, digest


@contextmanager
def scratch_file(folder: Path) -> Iterator[Path]:
    """A hidden name in `folder` for a file in the making; removed in the end, whatever happened."""
    make_folder(folder)
    path = folder / scratch_name()
    # Made here, so that whoever writes it leaves its mode: for its owner and group, whatever else others may read.
    handle = open_new(path, os.O_WRONLY | os.O_EXCL)
    try:
        _hold(handle)
        yield path
    finally:
        os.close(handle)
        path.unlink(missing_ok=True)


def scratch_name() -> str:
    return f".{uuid.uuid4().hex}.tmp"


def _hold(handle: int) -> None:
    """As long as it is open: maintenance takes away what is old and not held. Where a file system knows no locks, the
    age alone protects what is being written."""
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_held(path: Path) -> bool:
    """Whether a living process has it; on a file system that knows no locks, nobody seems to. Where it cannot be told,
    it is: NFS takes an exclusive lock through what was opened for reading for an error, and a shared one not."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in _NO_LOCKS
    finally:
        os.close(handle)
    return False


def place_once(scratch: Path, target: Path) -> bool:
    """Give a finished file its name, durably. False where the name is taken; what has it stays as it is."""
    sync_file(scratch)
    try:
        os.link(scratch, target)
    except FileExistsError:
        return False
    except OSError as error:
        raise _no_links(error, target.parent) from error
    sync_folder(target.parent)
    return True


def _no_links(error: OSError, folder: Path) -> Exception:
    """What a refused link means: of a file system that has none, a sentence; else the error itself."""
    if error.errno not in _NO_LINKS:
        return error
    return BadInput(
        f"the file system of {folder} does not take hard links ({error.strerror}), which write-once files need; put "
        "the folder on another one"
    )


def write_first(path: Path, text: str) -> bool:
    """Write a small text durably, unless the file exists: then what is there stands. Whether it was written."""
    with scratch_file(path.parent) as scratch:
        scratch.write_text(text, encoding="utf-8")
        return place_once(scratch, path)


def write_over(path: Path, text: str) -> None:
    """Write a small text durably, in place of what the file says so far: for what is no batch's."""
    with scratch_file(path.parent) as scratch:
        scratch.write_text(text, encoding="utf-8")
        sync_file(scratch)
        scratch.replace(path)
        sync_folder(path.parent)


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
