"""What processes that were killed left in the making: hidden files of batches, and what verifications stand on; payload
in a store whose batch is gone; and previews that are too old to be done.

A file that somebody is still writing is locked by that process (`write_once`); it is old only when it was not changed
for the whole age. What has another kind of name is not ours.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from wavestitch.batch.kept_previews import kept_files
from wavestitch.batch.work_folder import LOCK, VERIFYING
from wavestitch.contracts.maintenance import ActionReport, StoredFile
from wavestitch.contracts.quantities import EpochMs, before, epoch_ms, milliseconds
from wavestitch.maintain.landing_folders import tree_size
from wavestitch.maintain.maintenance_run import MaintenanceRun
from wavestitch.payload_store import StoredBatch
from wavestitch.plain_files import below
from wavestitch.write_once import SCRATCH, is_held

_VERIFYING = re.compile(re.escape(VERIFYING) + "[0-9a-f]{16}")
_SHOWN = 5


def clear_leftovers(run: MaintenanceRun) -> ActionReport:
    """Files in the making that nobody has changed for the orphan age, and that nobody holds."""
    limit = before(run.now, milliseconds(run.limits.orphan_age))
    root = below(run.landing, run.stream)
    found = list(_scratch_files(root))
    old = [f for f in found if f.modified_ms < limit and not is_held(Path(f.path))]
    if run.apply:
        for file in old:
            Path(file.path).unlink(missing_ok=True)
    kept = [f"{len(found) - len(old)} more are young or in use"] if len(found) > len(old) else []
    names = [Path(f.path).name for f in old]
    size = sum(f.bytes for f in old)
    for folder in _dead_verifications(root, limit):
        files, more = tree_size(folder)
        names, size = [*names, *[folder.name] * files], size + more
        if run.apply:
            shutil.rmtree(folder, ignore_errors=True)
    for batch in _ownerless(run, root, limit):
        names, size = [*names, *[f"payload of {batch.plan_id}"] * batch.objects], size + batch.bytes
        if run.apply and run.deployment.payload_store is not None:
            run.deployment.payload_store.of(root / batch.plan_id).remove()
    for file in _old_previews(run):
        names, size = [*names, Path(file.path).name], size + file.bytes
        if run.apply:
            Path(file.path).unlink(missing_ok=True)
    return ActionReport("leftovers", "files", len(names), size, tuple(dict.fromkeys(names))[:_SHOWN], tuple(kept))


def _ownerless(run: MaintenanceRun, root: Path, limit: EpochMs) -> list[StoredBatch]:
    """Payload in a store of batches that have no folder (any more), where nothing was written since. The store is asked
    first: whoever plans makes the folder, and reads after that. A stream that has no folder at all may be one whose
    landing is not there, and nothing of it goes; nor of a batch that the head names at its gate."""
    store = run.deployment.payload_store
    listed = [] if store is None else store.batches(run.stream)
    if not listed or not root.is_dir():
        return []
    head = run.tables.head()
    waiting = set() if head is None else {batch.plan_id for batch in head.at_gate}
    return [
        b for b in listed if b.newest_ms < limit and b.plan_id not in waiting and not os.path.lexists(root / b.plan_id)
    ]


def _old_previews(run: MaintenanceRun) -> list[StoredFile]:
    """Those that nobody may do any more. That one was rejected was written after it, and so goes after it."""
    limit = before(run.now, milliseconds(run.limits.previews))
    found = (_stored(path) for path in kept_files(run.landing, run.stream))
    return [f for f in found if f is not None and f.modified_ms < limit]


def _stored(path: Path) -> StoredFile | None:
    """None where it has gone meanwhile."""
    with suppress(FileNotFoundError):
        about = path.lstat()
        return StoredFile(str(path), about.st_size, epoch_ms(about.st_mtime_ns))
    return None


def _dead_verifications(folder: Path, limit: EpochMs) -> list[Path]:
    """Those that have no process any more, and of whose files none was changed since."""
    found = [p for p in sorted(folder.glob(f"{VERIFYING}*")) if _VERIFYING.fullmatch(p.name) and not p.is_symlink()]
    old = [p for p in found if p.is_dir() and tree_size(p) == tree_size(p, changed_before=limit)]
    return [p for p in old if not (os.path.lexists(p / LOCK) and is_held(p / LOCK))]


def _scratch_files(folder: Path) -> Iterator[StoredFile]:
    for path in sorted(folder.rglob("*.tmp")):
        with suppress(FileNotFoundError):
            about = path.lstat()
            if SCRATCH.fullmatch(path.name) and stat.S_ISREG(about.st_mode):
                yield StoredFile(str(path), about.st_size, epoch_ms(about.st_mtime_ns))
