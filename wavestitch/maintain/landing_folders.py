"""The landing as maintenance sees it: a stream's batch folders; and how they go. Decides nothing about which.

A folder goes by being renamed to a hidden name first: nobody finds half of one. What has no plan id for a name is not
ours, and is neither looked at nor touched.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wavestitch.batch.work_folder import ABANDONED, PAYLOAD, WorkFolder, work_folders
from wavestitch.contracts.errors import Altered, BadInput, Fenced, Transient, WavestitchError
from wavestitch.contracts.maintenance import BatchFolder
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.plan_id import is_plan_id
from wavestitch.contracts.quantities import BEGINNING, EpochMs, epoch_ms
from wavestitch.contracts.versioned import Versioned
from wavestitch.modes import sync_folder
from wavestitch.plain_files import below, plain_text
from wavestitch.write_once import write_over

_GOING = re.compile(r"\.going-[0-9a-f]{32}")
_UNREFERENCED = ".unreferenced.json"


@dataclass(frozen=True, slots=True)
class _FirstSeen:
    since: dict[str, EpochMs]


_FIRST_SEEN = Versioned(_FirstSeen, "the note of files that nothing names", "delete it: they stay longer")


def batch_folders(landing: Path, stream: str) -> list[BatchFolder]:
    """Every batch folder of a stream, in order of its plan's id."""
    return [_look(folder) for folder in work_folders(landing, stream)]


def remove_folder(landing: Path, stream: str, plan_id: str) -> None:
    """Remove a batch's folder, and what an earlier removal that died has left of others."""
    folder = WorkFolder(landing, stream, plan_id).path
    root = folder.parent
    with _said(root):
        folder.rename(root / f".going-{plan_id}")
        sync_folder(root)
        for path in root.iterdir():
            if _GOING.fullmatch(path.name) and not path.is_symlink():
                shutil.rmtree(path)


def tree_size(folder: Path, *, changed_before: EpochMs | None = None) -> tuple[int, int]:
    """Files and bytes below a folder that is no link; of those last changed before that only, where it is given."""
    files = size = 0
    for about in _looks(folder.rglob("*") if folder.is_dir() and not folder.is_symlink() else ()):
        if stat.S_ISREG(about.st_mode) and (changed_before is None or epoch_ms(about.st_mtime_ns) < changed_before):
            files, size = files + 1, size + about.st_size
    return files, size


def _looks(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    """What they are themselves, and not what they lead to; one that goes while we look is left out."""
    for path in paths:
        with suppress(FileNotFoundError):
            yield path.lstat()


def old_docs(docs: Path, stream: str, *, changed_before: EpochMs) -> list[Path]:
    """Folders of Data Docs of whose files none was changed since."""
    root = below(docs, stream)
    named = (p for p in root.iterdir() if is_plan_id(p.name)) if root.is_dir() else ()
    found = sorted(p for p in named if not p.is_symlink())
    return [p for p in found if tree_size(p) == tree_size(p, changed_before=changed_before)]


def read_first_seen(landing: Path, stream: str) -> dict[str, EpochMs]:
    """Since when files of the stream's tables are known to be unreferenced. Lost, they only stay longer."""
    try:
        return _FIRST_SEEN.read(plain_text(below(landing, stream) / _UNREFERENCED)).since
    except (FileNotFoundError, Altered, BadInput):
        return {}


def write_first_seen(landing: Path, stream: str, seen: Mapping[str, EpochMs]) -> None:
    path = below(landing, stream) / _UNREFERENCED
    with _said(path):
        write_over(path, _FIRST_SEEN.text(_FirstSeen(dict(seen))))


def _look(folder: WorkFolder) -> BatchFolder:
    plan, problem = _plan(folder)
    files = size = payload = 0
    newest = BEGINNING
    for path in [folder.path, *folder.path.rglob("*")]:
        for about in _looks((path,)):
            newest = max(newest, epoch_ms(about.st_mtime_ns))
            if stat.S_ISREG(about.st_mode):
                files, size = files + 1, size + about.st_size
                payload += about.st_size if any(path.match(p) for p in PAYLOAD) else 0
    abandoned = os.path.lexists(folder.path / ABANDONED)
    return BatchFolder(folder.path.name, plan, problem, abandoned, newest, files, size, payload)


def _plan(folder: WorkFolder) -> tuple[Plan | None, str]:
    try:
        return folder.plan(), ""
    except Fenced:
        return None, ""  # abandoned
    except WavestitchError as error:
        return None, error.message
    except OSError as error:
        raise Transient(f"{folder.path} cannot be read: {error.strerror}; run maintenance again") from None


class _said:
    """Around what removes or writes: a sentence for what the disk refuses."""

    def __init__(self, where: Path) -> None:
        self._where = where

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, tb: object) -> None:
        if isinstance(error, PermissionError):
            where = error.filename or self._where
            raise BadInput(f"{where}: {error.strerror}; give whoever runs maintenance the right to change it") from None
        if isinstance(error, OSError):
            raise Transient(f"{error.filename or self._where}: {error.strerror}; run maintenance again") from None
