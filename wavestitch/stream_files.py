"""The files that declare streams: which there are, and what one of them says. Whoever writes them is not trusted.

A file is a plain one, or a link within the folder (mounted configurations are such), and small; nothing else is read.
Whatever is wrong with it is `BadInput` with a sentence, so that one file never takes another stream away.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.plain_yaml import MAX_CHARS
from wavestitch.contracts.stream import Stream, parse_stream

MOST_BYTES = 4 * MAX_CHARS
"""No text of as many characters as are allowed has more, in UTF-8."""
DRAFTS = "drafts"
_SAID_CHARS = 300


def stream_names(folder: Path) -> list[str]:
    """Of all files that seem to declare a stream; some may be no names of streams."""
    return sorted(p.stem for p in folder.glob("*.yaml"))


def read_stream(folder: Path, name: str) -> Stream:
    """The stream that `NAME.yaml` declares. `name` is one of `stream_names`, and never a path."""
    return _read(folder, f"{name}.yaml", name, where=f"streams/{name}.yaml")


def read_draft(folder: Path, name: str) -> Stream:
    """The definition of the stream `name` that is not in force, in `drafts/NAME.yaml` beside those that are."""
    return _read(folder / DRAFTS, f"{name}.yaml", name, where=f"streams/{DRAFTS}/{name}.yaml")


def read_definition(path: Path, name: str) -> Stream:
    """The definition of the stream `name` that this file holds, wherever it lies."""
    return _read(path.parent, path.name, name, where=str(path))


def _read(folder: Path, file: str, name: str, *, where: str) -> Stream:
    try:
        return parse_stream(_text(folder, file, where=where), name=name, where=where)
    except BadInput:
        raise
    except Exception as error:
        # A fault of ours or of a library's. It must not take away the streams whose files are right.
        said = ascii(str(error))[:_SAID_CHARS]
        raise BadInput(f"{where} cannot be read: {type(error).__name__}: {said}; correct it", file=where) from error


def _text(folder: Path, file: str, *, where: str) -> str:
    path = (folder / file).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise BadInput(f"{where} is a link out of {folder}; put the file itself there", file=where)
    try:
        # A pipe is not waited for, and neither it nor a device is read.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(handle, "rb") as opened:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise BadInput(f"{where} is no plain file; put a text file there", file=where)
            found = opened.read(MOST_BYTES + 1)
        if len(found) > MOST_BYTES:
            raise BadInput(f"{where} has more than the {MOST_BYTES} bytes allowed; make it shorter", file=where)
        return found.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{where} cannot be read: {error}", file=where) from None
