"""Published waveforms as files of other formats: complete and proven, or absent.

Nothing is written before every waveform that is meant was found to fit the format (`exactness`) and to have a free
name. A file is read back by the format's own library before it gets its name: samples bit by bit, rate, start, unit,
gain, baseline and names are the table's, or there is no file. What is there is never replaced: it is done where it is,
byte for byte, what would be written, so that an export that was stopped goes on when it is run again.

An id is its producer's text and no path: a file's name is made of letters and digits of it, and its digest.
Nothing that a process's threads share is set here: not its mask, nor which warnings are shown.
"""

from __future__ import annotations

import errno
import filecmp
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from wavestitch.contracts.errors import Altered, BadInput, Refused, WavestitchError
from wavestitch.modes import FILE, make_folder, sync_folder
from wavestitch.reading.exactness import FORMATS, Format, refuse_inexact
from wavestitch.reading.extras import extra
from wavestitch.reading.formats.file_format import FileFormat, Found
from wavestitch.reading.waveform import Waveform
from wavestitch.write_once import (
    SCRATCH,
    digest_bytes,
    disk_errors,
    place_once,
    scratch_file,
    scratch_name,
    sync_file,
)

_MODULES: Mapping[Format, str] = {
    "mseed": "miniseed_file",
    "wfdb": "wfdb_record",
    "edf": "edf_file",
    "hdf5": "hdf5_file",
    "parquet": "parquet_file",
    "npz": "npz_file",
}
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
_READABLE = 40
_LEFT_SECONDS = 24 * 60 * 60
"""What is in the making is one waveform's, and is written in minutes: unchanged for so long, nobody writes it."""


@dataclass(frozen=True, slots=True)
class Exported:
    """Where a waveform is now. `path`: the file; of `wfdb` the folder with the record of the same name."""

    waveform_id: str
    path: Path


def file_format(to: str) -> FileFormat:
    """Raises `BadInput` for a format that is unknown, or whose library is not installed."""
    name = _MODULES.get(cast(Format, to))
    if name is None:
        raise BadInput(f"there is no format {to!r}; known are {', '.join(FORMATS)}")
    module = extra(f"wavestitch.reading.formats.{name}", for_what=f"export to {to}", named="export")
    found: FileFormat = module.FILE
    return found


def export_name(waveform_id: str) -> str:
    """Letters, digits, `-` and `_`; another one for every id, whatever upper and lower case are to the file system."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", waveform_id[:_READABLE]).strip("-")
    digest = digest_bytes(waveform_id.encode("utf-8", "surrogatepass"))
    return f"{readable}-{digest}" if readable else digest


def check_rows(
    rows: Iterable[Mapping[str, Any]], *, to: Format, into: Path, ids: Collection[str] | None = None
) -> set[str]:
    """The waveforms under whose names something is there already. `ids`: those that were asked for by name. Raises
    `Refused` for the first that does not fit, `BadInput` where there are none, or one of `ids` is not."""
    suffix, count, missing, there = file_format(to).suffix, 0, set(ids or ()), set[str]()
    for row in rows:
        refuse_inexact(row, to)
        if os.path.lexists(into / (export_name(row["waveform_id"]) + suffix)):
            there.add(row["waveform_id"])
        count += 1
        missing.discard(row["waveform_id"])
    if missing and count:
        raise BadInput(
            f"{len(missing)} of the ids that are asked for are of no published waveform that is meant, e.g. "
            f"{min(missing)!r}: leave them out; `wavestitch waveforms STREAM` lists what there is"
        )
    if not count:
        raise BadInput("no published waveform is meant; `wavestitch waveforms STREAM` lists what there is")
    return there


def write_files(waveforms: Iterable[Waveform], *, to: Format, into: Path) -> Iterator[Exported]:
    """Write one after the other. Raises as `check_rows`, `BadInput` for a name that something else has, and `Altered`
    where a file is not read back as it was meant: those before it stay."""
    how = file_format(to)
    with disk_errors(f"writing to {into}"):
        _clear(make_folder(into))
        for waveform in waveforms:
            refuse_inexact(waveform.row, to)
            name = export_name(waveform.id)
            write = _write_file if how.suffix else _write_folder
            yield Exported(waveform.id, write(waveform, how, into, name))


def _clear(into: Path) -> None:
    """Take away what killed exports, drawings and reports left in the making there. Its age alone tells it from what is
    being written: a lock of a folder is each host's own on NFS, and whoever may read the folder may hold one."""
    left = [path for path in into.iterdir() if SCRATCH.fullmatch(path.name) and not path.is_symlink()]
    if not left:
        return
    with scratch_file(into) as made_now:  # by the clock that the others' times are of
        limit = made_now.stat().st_mtime - _LEFT_SECONDS
    for path in left:
        with suppress(OSError):  # gone meanwhile, or another's: then it stays
            if path.is_file() and path.lstat().st_mtime < limit:
                path.unlink()
            elif path.is_dir() and max(p.lstat().st_mtime for p in (path, *path.iterdir())) < limit:
                # Whoever made it, and comes back after so long, finds it gone, and names no folder that is half empty.
                shutil.rmtree(path.rename(into / scratch_name()))


def _write_file(waveform: Waveform, how: FileFormat, into: Path, name: str) -> Path:
    target = into / (name + how.suffix)
    with scratch_file(into) as scratch:
        _write_proven(waveform, how, scratch, name)
        if not place_once(scratch, target):
            _refuse_other(scratch, target, waveform.id)
    return target


def _write_folder(waveform: Waveform, how: FileFormat, into: Path, name: str) -> Path:
    target = into / name
    with _scratch_folder(into) as scratch:
        _write_proven(waveform, how, scratch, name)
        for file in scratch.iterdir():
            file.chmod(FILE)  # made by the library, as the process's mask lets it; nobody else can look into the folder
            sync_file(file)
        sync_folder(scratch)
        try:
            # A folder's name cannot be linked; renaming fails where the name has a file, or a folder with anything in.
            scratch.rename(target)
        except OSError as error:
            if error.errno not in _TAKEN:
                raise
            _refuse_other(scratch, target, waveform.id)
        sync_folder(into)
    return target


@contextmanager
def _scratch_folder(into: Path) -> Iterator[Path]:
    path = make_folder(into / scratch_name())
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _write_proven(waveform: Waveform, how: FileFormat, path: Path, name: str) -> None:
    try:
        how.write(waveform, path, name)
        found = how.read(path, name)
    except (WavestitchError, OSError, MemoryError):
        raise
    except Exception as error:  # whatever a library throws at what the rules let through
        raise Refused(
            f"waveform {waveform.id!r} was given up by the format's own library ({type(error).__name__}: {error}); "
            "nothing was kept. Take another format for it, and report this: the rules of exactness have a hole",
            waveform=waveform.id,
        ) from error
    differs = [what for what, same in _compared(waveform, found) if not same]
    if differs:
        raise Altered(
            f"waveform {waveform.id!r} was read back from its new file with other {', '.join(differs)}; nothing was "
            "kept. Take another format for it, and report this: the rules of exactness have a hole",
            waveform=waveform.id,
        )


def _compared(waveform: Waveform, found: Found) -> Iterator[tuple[str, bool]]:
    sent = waveform.samples
    same = found.samples.shape == sent.shape and found.samples.dtype.kind == sent.dtype.kind
    if same and sent.dtype.kind == "i":
        same = bool(np.array_equal(found.samples, sent))
    elif same:
        same = np.ascontiguousarray(found.samples, sent.dtype).tobytes() == sent.tobytes()
    yield "samples", same
    yield "rate", found.rate_hz == waveform.rate_hz
    yield "start", found.start_ns == waveform.start_ns
    yield "unit", found.units == waveform.units
    yield "gain", (found.gain, found.baseline) == (waveform.gain, waveform.baseline)
    yield "names", (found.source, found.channel) == (waveform.source, waveform.channel)


def _refuse_other(made: Path, there: Path, waveform_id: str) -> None:
    """Raises `BadInput` unless what is there is what was made now: an export that was stopped has left it."""
    if not _is_same(made, there):
        raise BadInput(
            f"{there} exists already, for waveform {waveform_id!r}, and is not what would be written; name another "
            "folder, or move it away"
        )
    sync_folder(there.parent)  # whoever made it may have been stopped before its name was durable


def _is_same(made: Path, there: Path) -> bool:
    """Byte for byte, and no link."""
    if there.is_symlink():
        return False
    if made.is_file():
        return there.is_file() and filecmp.cmp(made, there, shallow=False)
    names = {path.name for path in made.iterdir()}
    same = there.is_dir() and {path.name for path in there.iterdir()} == names
    return same and all(_is_same(made / name, there / name) for name in names)
