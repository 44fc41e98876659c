"""Below a folder of ours no link is followed: not the landing's, not the Data Docs'.

Who may write there, or a link that somebody forgot, would lead what we read, write and remove elsewhere. The folder
itself may be a link: its owner says where it is. Pipes and devices are not read either; that need never end.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

from wavestitch.contracts.errors import Altered, BadInput, Transient

_MOST_TEXT = 512 << 20
_ELSEWHERE = (errno.ELOOP, errno.ENXIO)
"""What opening says of a link, and of a socket."""


def below(folder: Path, *names: str) -> Path:
    """`folder/NAME/…`, where nothing below `folder` is a link. Raises `BadInput` where something is."""
    path = folder
    for name in names:
        path = path / name
        try:
            if path.is_symlink():
                raise link_refused(path)
        except OSError as error:
            raise Transient(f"cannot look at {path}: {error.strerror}; look after that disk, and try again") from None
    return path


def refuse_links(folder: Path) -> None:
    """Raises `BadInput` where anything below the folder is a link: before others write there by path."""
    for path in folder.rglob("*"):
        if path.is_symlink():
            raise link_refused(path)


def link_refused(path: str | os.PathLike[str]) -> BadInput:
    return BadInput(
        f"{os.fspath(path)} is a link, and may lead anywhere; put there what it leads to, or take it away (a whole "
        "landing may be a link)"
    )


def open_plain(path: Path, *, step: str = "its step") -> io.FileIO:
    """A plain file, to read, unbuffered. Raises `Altered` where a link, a pipe or a device is in its place, and
    `FileNotFoundError` where nothing is. `step`: what makes it anew."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _ELSEWHERE:
            raise _not_plain(path, step) from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _not_plain(path, step)
    return io.FileIO(handle)


def plain_text(path: Path) -> str:
    """The text of a plain file that is not too large to be one of ours. Raises `FileNotFoundError` where it is gone."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > _MOST_TEXT:
            raise Altered(
                f"{path} has {size >> 20} MiB, allowed are {_MOST_TEXT >> 20}; delete it and run its step again",
                file=str(path),
            )
        content = file.read()
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Altered(f"{path} is not UTF-8; delete it and run its step again", file=str(path)) from None


def _not_plain(path: Path, step: str) -> Altered:
    return Altered(f"{path} is no plain file; delete it and run {step} again", file=str(path))
