"""The files that declare streams: which there are, and what one of them says. Whoever writes them is not trusted.

A file is a plain one, or a link within the folder (mounted configurations are such), and small; nothing else is read.
All that are read are bounded, too, since Airflow reads them all within a time: of more, those go on that have run.
Whatever is wrong with it is `BadInput` with a sentence, so that one file never takes another stream away.
"""

from __future__ import annotations

import os
import stat
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.contracts.plain_yaml import MAX_CHARS
from wavestitch.contracts.stream import Stream, parse_stream

MOST_BYTES = MAX_CHARS
"""Of one file. A larger one is refused before it is read."""
DRAFTS = "drafts"
SETTLED_SECONDS = 2.0
_SAID_CHARS = 300
_SAID_NAMES = 20
BYTES_EACH = 4096
"""On average. The worst text of a megabyte takes a processor some 14 s to refuse."""
MOST_STREAMS = 10_000
"""As many as `most_streams` may be."""


@dataclass(frozen=True, slots=True)
class Declared:
    """`names`: of the streams that are read, in order; some may be no names of streams. `left_out`: those that are too
    many, or too large together. `unseen`: the landing, where this process cannot see what has run."""

    folder: Path
    names: tuple[str, ...]
    left_out: tuple[str, ...]
    most: int
    unseen: Path | None = None

    @property
    def sentence(self) -> str:
        """Where some are left out; else nothing."""
        if not self.left_out:
            return ""
        some, more = ", ".join(map(ascii, self.left_out[:_SAID_NAMES])), len(self.left_out) - _SAID_NAMES
        first = "those first that have run, and the small before the large"
        if self.unseen is not None:
            first = f"the small before the large: which have run is not known here, where {self.unseen} cannot be seen"
        return (
            f"{self.folder} has {len(self.names) + len(self.left_out)} files of streams; {len(self.names)} are read, "
            f"as most_streams allows ({self.most}, of {BYTES_EACH} bytes on average), {first}. "
            f"Left out are {some}{f' and {more} more' if more > 0 else ''}: take away what "
            "is no stream, or raise most_streams in the settings"
            + (", and let whoever reads this folder read the landing, too" if self.unseen is not None else "")
        )

    def check(self, name: str) -> None:
        """Raises `BadInput` for one that is not read."""
        if name in self.left_out:
            raise BadInput(f"stream {name!a} is left out: {self.sentence}", stream=name)
        if name not in self.names:
            known = ", ".join(self.names[:_SAID_NAMES]) + (", …" if len(self.names) > _SAID_NAMES else "")
            raise BadInput(f"there is no stream {name!r} in {self.folder}; known are: {known or 'none'}", stream=name)


def find_streams(folder: Path, *, most: int, landing: Path) -> Declared:
    """What is declared there. Those that have a folder in the landing, as each that was planned once, are not left out
    for others: who may add a file cannot take their place. Nor does one that has run and grows take that of a smaller
    one: as many as are allowed have room for what each has on average."""
    sizes = {p.stem: _size(p) for p in folder.glob("*.yaml")}
    if len(sizes) <= most and sum(sizes.values()) <= most * BYTES_EACH:
        return Declared(folder, tuple(sorted(sizes)), (), most)
    left, room = [], most * BYTES_EACH
    read: list[str] = []
    ran = _have_run(landing)
    for name in sorted(sizes, key=lambda n: (ran is not None and n not in ran, sizes[n], n)):
        if len(read) < most and sizes[name] <= room:
            read.append(name)
            room -= sizes[name]
        else:
            left.append(name)
    return Declared(folder, tuple(sorted(read)), tuple(left), most, unseen=landing if ran is None else None)


def _have_run(landing: Path) -> set[str] | None:
    """None where that cannot be seen, as where no volume is mounted. What begins with a dot there is no stream's,
    whatever a file is called."""
    try:
        return {name for name in os.listdir(landing) if name[:1] != "."}
    except OSError:
        return None


def _size(path: Path) -> int:
    """Of what is read of it. One that cannot be looked at, or is larger than any that is read, costs nothing: it is
    refused by what it is."""
    try:
        size = path.stat().st_size
    except OSError:
        return 0
    return size if size <= MOST_BYTES else 0


def stream_names(folder: Path) -> list[str]:
    """Of all files that seem to declare a stream; some may be no names of streams."""
    return sorted(p.stem for p in folder.glob("*.yaml"))


def read_stream(folder: Path, name: str) -> Stream:
    """The stream that `NAME.yaml` declares. `name` is one of `stream_names`, and never a path."""
    return _read(folder, f"{name}.yaml", name, where=f"streams/{name}.yaml")


def read_streams(found: Declared) -> dict[str, Stream | BadInput]:
    """What each of those files says that are read, or what is wrong with it. One whose text was read before by this
    process is not parsed again: a parse of Airflow's makes six kinds of DAGs of each, and has its time for all."""
    return {name: _said_by(found.folder, name) for name in found.names}


def _said_by(folder: Path, name: str) -> Stream | BadInput:
    where = f"streams/{name}.yaml"
    try:
        return _parsed_once(_text(folder, f"{name}.yaml", where=where), name, where)
    except BadInput as error:
        return error


@lru_cache(maxsize=MOST_STREAMS)
def _parsed_once(text: str, name: str, where: str) -> Stream | BadInput:
    try:
        return _parsed(text, name=name, where=where)
    except BadInput as error:
        return error


def read_settled_stream(folder: Path, name: str) -> Stream:
    """The same, for whoever acts by it: a file counts once it was seen unchanged for `SETTLED_SECONDS`, since a part of
    it may be a valid definition, too, that asks for less. Waits so long for one that was just written; raises
    `Transient` where it changed meanwhile."""
    path = folder / f"{name}.yaml"
    # Before it is read: a copy that ends right afterwards may give it the old time of what it copies.
    seen = _state_of(path)
    found = read_stream(folder, name)
    if seen is not None:
        left = min(SETTLED_SECONDS, SETTLED_SECONDS - (time.time() - seen.st_mtime))
        if left > 0:
            time.sleep(left)
        if _same(seen, _state_of(path)) and (left <= 0 or read_stream(folder, name) == found):
            return found
    raise Transient(
        f"streams/{name}.yaml is being written: it changed within the {SETTLED_SECONDS:.0f} s for which it was "
        "looked at, and counts when it has not changed for so long; run it again when it is written",
        for_guests=True,
        file=name,
    )


def _state_of(path: Path) -> os.stat_result | None:
    """None where it is not there now; what is wrong with one that stays away, its reading says."""
    try:
        return path.stat()
    except OSError:
        return None


def _same(seen: os.stat_result, now: os.stat_result | None) -> bool:
    """By the time of the last change, too, which nobody can set."""
    return now is not None and all(
        getattr(seen, what) == getattr(now, what) for what in ("st_mtime_ns", "st_ctime_ns", "st_size", "st_ino")
    )


def read_draft(folder: Path, name: str) -> Stream:
    """The definition of the stream `name` that is not in force, in `drafts/NAME.yaml` beside those that are."""
    return _read(folder / DRAFTS, f"{name}.yaml", name, where=f"streams/{DRAFTS}/{name}.yaml")


def read_definition(path: Path, name: str) -> Stream:
    """The definition of the stream `name` that this file holds, wherever it lies."""
    return _read(path.parent, path.name, name, where=str(path))


def _read(folder: Path, file: str, name: str, *, where: str) -> Stream:
    return _parsed(_text(folder, file, where=where), name=name, where=where)


def _parsed(text: str, *, name: str, where: str) -> Stream:
    try:
        return parse_stream(text, name=name, where=where)
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
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode):
                raise BadInput(f"{where} is no plain file; put a text file there", for_guests=True, file=where)
            found = opened.read(MOST_BYTES + 1) if about.st_size <= MOST_BYTES else b""
        if max(len(found), about.st_size) > MOST_BYTES:
            raise BadInput(
                f"{where} has more than the {MOST_BYTES} bytes allowed; make it shorter", for_guests=True, file=where
            )
        return found.decode()
    except OSError as error:  # whose own words name the file that a link leads to
        said = error.strerror or type(error).__name__
        raise BadInput(f"{where} cannot be read: {said}; look after it", for_guests=True, file=where) from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{where} is no text in UTF-8: {error}", for_guests=True, file=where) from None
