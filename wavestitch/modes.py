"""Who may come to what we make: its owner and the owner's group, whatever the mask of the process says.

A careless mask (0) would open what is made to everybody, a careful one (077) would close it to that part of the
deployment which runs as another user of the group. So modes are set, after a file or folder was made with no more than
them. What was there before keeps its mode: it is another's matter.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wavestitch.contracts.errors import BadInput
from wavestitch.plain_files import link_refused

FOLDER = 0o750
FILE = 0o640
OWN_FOLDER = 0o700
"""For what is nobody's but ours: caches, servers' homes."""
MASK = 0o027
"""For programs that make files themselves: it leads to the modes above."""


def make_folder(folder: str | os.PathLike[str], mode: int = FOLDER) -> Path:
    """Make the folder and what is missing above it, durably: what is synced in it later is lost with its name."""
    path = Path(folder)
    missing = []
    while not path.is_dir():
        missing.append(path)
        if path == path.parent:
            break
        path = path.parent
    for each in reversed(missing):
        try:
            each.mkdir(mode)
        except FileExistsError:
            if not each.is_dir():
                raise
            continue  # another process was first
        each.chmod(mode)
        sync_folder(each.parent)
    return Path(folder)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_own_folder(cache: str | os.PathLike[str], name: str = "") -> Path:
    """A folder below a cache, and what is missing above it, for its owner alone.

    Raises `BadInput` where the cache itself may be written by everybody, or is somebody else's: what is taken from it
    is run (Java, jars) or believed (the index of ids).
    """
    folder = make_folder(Path(cache) / name, OWN_FOLDER)
    refuse_open_cache(cache)
    if name:
        refuse_open_cache(folder)
    return folder


def refuse_open_cache(cache: str | os.PathLike[str]) -> None:
    """Raises `BadInput` as above. What is not there yet is nobody's."""
    try:
        about = Path(cache).stat()
    except FileNotFoundError:
        return
    if about.st_uid not in (os.geteuid(), 0) or about.st_mode & stat.S_IWOTH:
        whose = f"may be written by everybody (mode {stat.S_IMODE(about.st_mode):o})"
        if about.st_uid not in (os.geteuid(), 0):
            whose = f"belongs to user {about.st_uid}"
        raise BadInput(
            f"the cache folder {cache} {whose}: whoever can write there would have their files run and believed here; "
            "look at what is in it and `chmod 700` it, or name another one, e.g. below it, as `cache` in the settings"
        )


def open_new(path: str | os.PathLike[str], flags: int, mode: int = FILE) -> int:
    """A descriptor; where the file is made by this, with the mode. Raises `BadInput` where a link is in its place."""
    try:
        handle = os.open(path, flags | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except FileExistsError:
        if flags & os.O_EXCL:
            raise
        try:
            return os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise link_refused(path) from None
            raise
    os.fchmod(handle, mode)
    return handle


def opener(path: str, flags: int) -> int:
    """For `open`."""
    return open_new(path, flags)


@contextmanager
def masked() -> Iterator[None]:
    """Around code of others that makes files in this process. Its mask is that of all its threads meanwhile."""
    before = os.umask(MASK)
    try:
        yield
    finally:
        os.umask(before)
