"""The action that puts small files together: written, proven to be the same row for row, and only then committed.

Each table has one snapshot of it. That of waveforms and of the history carries no head, and a batch that commits at the
same moment wins. What is held counts by the head alone, so there a head of maintenance names it. The old files stay
until their snapshots expire; files that were written for nothing are unreferenced, and go as such.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from wavestitch.contracts.errors import Altered, Transient
from wavestitch.contracts.held_mark import HeldMark
from wavestitch.contracts.maintenance import ActionReport
from wavestitch.contracts.ports import CommitConflict
from wavestitch.contracts.position import Head
from wavestitch.maintain.maintenance_run import MaintenanceRun
from wavestitch.maintain.what_goes import files_to_compact
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.commit.table_layout import HELD_FILE_BYTES
from wavestitch.tables.held.held_removal import day_of_junk
from wavestitch.tables.maintenance.small_files import BESIDE, Replaced, SmallFiles, find_small, put_together

_SHOWN = 5
Replace = Callable[[SmallFiles], Replaced]


def compact_tables(run: MaintenanceRun) -> ActionReport:
    """Small data files of the three tables, one table after the other. What goes wrong with one of them is raised when
    the others are done."""
    found: list[SmallFiles] = []
    done: list[Replaced] = []
    failed: list[Exception] = []
    for stored in run.tables.stored():
        try:
            small, replace = _held(run, stored) if stored.name.endswith(".held") else _grown(run, stored)
            if small is not None:
                found.append(small)
                if run.apply and small.groups:
                    run.say(f"putting {len(small.files)} small files of {stored.name} together")
                    done.append(replace(small))
        except Exception as error:  # the other tables are none the worse for it
            failed.append(error)
    if failed:
        raise min(failed, key=lambda error: not isinstance(error, Altered))
    facts = {
        "rewritten": sum(len(small.files) for small in found),
        "added": sum(d.added for d in done),
        "conflicts": sum(d.conflicts for d in done),
        "rows_compared": sum(d.rows for d in done),
    }
    shown = [f"{len(files)} files of {s.stored.name} {part}" for s in found for part, files in s.groups.items()]
    return ActionReport(
        action="compact",
        unit="files",
        count=sum(len(small.files) for small in found),
        bytes=sum(small.bytes for small in found),
        examples=tuple(shown[:_SHOWN]),
        kept=tuple(sentence for small in found for sentence in small.kept),
        facts=facts if done else {},
    )


def _grown(run: MaintenanceRun, stored: StoredTable) -> tuple[SmallFiles | None, Replace]:
    """Of a table that batches append to."""
    size = run.limits.target_file
    small = find_small(stored, partial(files_to_compact, target_bytes=size, at_least=run.limits.small_files))
    encoding = run.deployment.stream(run.stream).encoding
    return small, partial(put_together, encoding=encoding, target_bytes=size, say=run.say)


def _held(run: MaintenanceRun, stored: StoredTable) -> tuple[SmallFiles | None, Replace]:
    """Of what the head names."""
    base = run.tables.head()
    if base is None or base.held is None:
        return None, _never
    size = min(run.limits.target_file, HELD_FILE_BYTES)
    choose = partial(files_to_compact, target_bytes=size, at_least=run.limits.small_files)
    small = find_small(stored, choose, snapshot_id=base.held.snapshot_id, apart=day_of_junk)
    return small, partial(_replace_held, run, base, base.held)


def _replace_held(run: MaintenanceRun, base: Head, held: HeldMark, small: SmallFiles) -> Replaced:
    note = "small files of what is held were put together"
    try:
        new = run.tables.rewrite_held(base, dict.fromkeys(small.paths, ()), counts=held.counts, note=note)
    except CommitConflict:
        raise Transient(BESIDE) from None
    before, after = (len(run.tables.held_files(h.held)) for h in (base, new))
    return Replaced(after - before + len(small.files), small.rows, 0)


def _never(_: SmallFiles) -> Replaced:
    raise AssertionError("nothing is held")
