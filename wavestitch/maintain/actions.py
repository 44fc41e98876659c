"""The actions of maintenance, one function each: look, decide (`what_goes`), and with `apply` let it go.

Each can be stopped anywhere and run again. None touches what a batch under way has or stands on. Keeps I1, I3 and I7.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from wavestitch.batch.held_waveforms import held_ids, some_at_once
from wavestitch.batch.history import repair_history
from wavestitch.contracts.errors import Altered, Transient
from wavestitch.contracts.held import IdsLook, PublishedWaveform
from wavestitch.contracts.maintenance import ActionReport, BatchState, StoredFile
from wavestitch.contracts.ports import CommitConflict
from wavestitch.contracts.position import Head, parse_tag
from wavestitch.contracts.quantities import before, milliseconds
from wavestitch.maintain.batch_state import may_commit
from wavestitch.maintain.landing_folders import (
    old_docs,
    read_first_seen,
    remove_folder,
    tree_size,
    write_first_seen,
)
from wavestitch.maintain.maintenance_run import Batches, MaintenanceRun, look_at_batches
from wavestitch.maintain.what_goes import (
    FolderLimits,
    SnapshotLimits,
    folders_to_clear,
    held_to_delete,
    is_named,
    junk_to_expire,
    long_unreferenced,
    snapshots_to_expire,
    unlisted,
    unreferenced,
)
from wavestitch.tables.access.file_marks import Marks
from wavestitch.tables.access.reading import reading
from wavestitch.tables.commit.stored_table import StoredTable
from wavestitch.tables.held.held_removal import held_places, held_since
from wavestitch.tables.held.held_staging import overtaken_snapshots
from wavestitch.tables.lookup.published_lookup import find_published
from wavestitch.tables.maintenance.snapshot_expiry import expire_snapshots
from wavestitch.tables.maintenance.table_state import (
    describe_table,
    files_named,
    main_snapshots,
)

_SHOWN = 5
_IDS_AT_ONCE = 5000


def clear_landing(run: MaintenanceRun) -> ActionReport:
    """Landed payload of committed batches whose offsets stand, and of failed ones that were tried again; whole folders
    of long finished or given up ones."""
    batches = look_at_batches(run)
    projected, kept = _projected_plans(run, batches)
    limits = FolderLimits(milliseconds(run.limits.finished_batches), milliseconds(run.limits.given_up_batches))
    payload, whole = folders_to_clear(
        batches.found,
        limits=limits,
        now=run.now,
        in_history=batches.in_history,
        projected=projected,
        closed=batches.closed,
    )
    if run.apply:
        for folder in payload:
            run.deployment.folder(run.stream, folder.plan_id).drop_payload()
        for folder in whole:
            run.deployment.folder(run.stream, folder.plan_id).drop_payload()
            remove_folder(run.landing, run.stream, folder.plan_id)
    waiting = batches.in_state(BatchState.UNDER_WAY)
    kept += [f"batch {f.plan_id} is under way ({f.payload_bytes} bytes landed)" for f in waiting[:_SHOWN]]
    kept += [f"{f.plan_id}: {f.problem}" for f in batches.in_state(BatchState.UNREADABLE)[:_SHOWN]]
    return ActionReport(
        action="landing",
        unit="batches",
        count=len(payload) + len(whole),
        bytes=sum(f.payload_bytes for f in payload) + sum(f.bytes for f in whole),
        examples=tuple([f"payload of {f.plan_id}" for f in payload] + [f"all of {f.plan_id}" for f in whole])[:_SHOWN],
        kept=tuple(kept),
        facts={"under_way": len(waiting)},
    )


def clear_docs(run: MaintenanceRun) -> ActionReport:
    """Data Docs that are older than the limit; of batches under way they stay."""
    busy = {f.plan_id for f, state in look_at_batches(run).found if may_commit(state)}
    limit = before(run.now, milliseconds(run.limits.data_docs))
    found = [p for p in old_docs(run.deployment.settings.docs, run.stream, changed_before=limit) if p.name not in busy]
    size = sum(tree_size(p)[1] for p in found)
    if run.apply:
        for path in found:
            shutil.rmtree(path)
    return ActionReport("docs", "batches", len(found), size, tuple(p.name for p in found[:_SHOWN]))


def delete_held(run: MaintenanceRun) -> ActionReport:
    """Rows of the held table whose waveform every retained snapshot has, piece by piece. Some waveforms at a time: how
    many chunks are held is for a producer to say."""
    waveforms, held, _ = run.tables.stored()
    head, table = run.tables.head(), held.load()
    if head is None or head.held is None or table is None:
        return ActionReport("held", "rows", 0, 0)
    busy = {f.plan_id for f, state in look_at_batches(run).found if may_commit(state)}
    going: dict[str, set[int]] = defaultdict(set)
    size, names = 0, list[str]()
    for ids in some_at_once(held_ids(run.tables, head.held, IdsLook()), most_ids=_IDS_AT_ONCE):
        if not (now := run.tables.published(ids).keys()):
            continue  # as most, and the index of ids says so
        published = _published_in_every_snapshot(waveforms, now)
        places = held_places(table, head.held, now)
        here = held_to_delete(places, published=published, under_way=busy)
        for file, some in here.items():
            going[file] |= some
        gone = [p.held.chunk for p in places if p.row in here.get(p.file, ())]
        size += sum(chunk.length for chunk in gone)
        names += sorted({chunk.waveform_id or "" for chunk in gone})[:_SHOWN]
    count = sum(len(rows) for rows in going.values())
    if run.apply and count:
        run.say(f"writing {len(going)} files of {held.name} anew without {count} rows")
        _take_out(run, head, going, counts=head.held.counts, note=f"{count} held rows that are published went")
    return ActionReport("held", "rows", count, size, tuple(sorted(names)[:_SHOWN]))


def expire_junk(run: MaintenanceRun) -> ActionReport:
    """Records that are no chunks, held for longer than the limit. Never a chunk of a waveform."""
    _, held, _ = run.tables.stored()
    head, table = run.tables.head(), held.load()
    if head is None or head.held is None or table is None:
        return ActionReport("junk", "rows", 0, 0)
    files = held_since(table, head.held)
    going = junk_to_expire(files, held_before=before(run.now, milliseconds(run.limits.junk)))
    count, size = sum(f.rows for f in going.values()), sum(f.bytes for f in going.values())
    by_reason = Counter[str]()
    for file in going.values():
        by_reason[file.reason] += file.rows
    if run.apply and going:
        counts = {reason: max(0, n - by_reason[reason]) for reason, n in head.held.counts.items()}
        rows = {path: range(file.rows) for path, file in going.items()}  # never numbers: there may be millions
        _take_out(run, head, rows, counts=counts, note=f"{count} records that are no chunks expired")
    return ActionReport("junk", "rows", count, size, tuple(f"{n} {reason}" for reason, n in sorted(by_reason.items())))


def _take_out(
    run: MaintenanceRun, head: Head, rows: Mapping[str, Collection[int]], *, counts: Mapping[str, int], note: str
) -> None:
    try:
        run.tables.rewrite_held(head, rows, counts=counts, note=note)
    except CommitConflict:
        raise Transient(
            "a batch committed while held rows were taken out; nothing changed, run maintenance again"
        ) from None


def expire(run: MaintenanceRun) -> ActionReport:
    """Snapshots of the three tables; none before its row stands in the history, never the newest head."""
    if run.apply:
        repair_history(run.deployment.history(run.stream))
    batches = look_at_batches(run)
    limits = SnapshotLimits(
        age=milliseconds(run.limits.snapshot_age),
        most=max(run.limits.most_snapshots, run.limits.least_snapshots),
        least=run.limits.least_snapshots,
        pinned=milliseconds(run.limits.pinned_heads),
    )
    plans = [f.plan for f in batches.in_state(BatchState.UNDER_WAY) if f.plan is not None]
    count, kept, facts = 0, list[str](), dict[str, int]()
    tables = run.tables.stored()
    held = tables[1]
    for stored in tables:
        table = stored.load()
        if table is None:
            continue
        state = describe_table(table)
        overtaken: list[int] = []
        if stored is held:
            # What a head names stays as long as the head: a table that is rolled back finds what was held then.
            named = _named_by_heads(run)
            state = replace(state, protected=state.protected | named)
            overtaken = overtaken_snapshots(table, named, made_before=before(run.now, limits.age))
        going, why = snapshots_to_expire(
            state, limits=limits, now=run.now, recorded=batches.recorded, under_way=plans, closed=batches.closed
        )
        going += overtaken
        facts[state.name] = expire_snapshots(stored, going) if run.apply else len(going)
        count += facts[state.name]
        kept += why[:_SHOWN]
        if state.aside > len(overtaken):
            kept.append(
                f"{state.aside - len(overtaken)} snapshots of {state.name} outside main are not ours, or too young"
            )
    return ActionReport("snapshots", "snapshots", count, None, (), tuple(kept), facts)


def remove_orphans(run: MaintenanceRun) -> ActionReport:
    """Files in the tables' own folders that no table of the catalog names and no batch has staged.

    The folders are the settings': a table that says it is elsewhere has nothing of the stream removed.
    """
    listed, keeper = dict[str, list[StoredFile]](), dict[str, StoredTable]()
    for stored in run.tables.stored():
        if stored.load_to_change() is not None:
            with reading(stored.name):
                listed[stored.name] = stored.files.listed()
            keeper |= dict.fromkeys((f.path for f in listed[stored.name]), stored)
    batches = look_at_batches(run)
    busy = [f.plan_id for f, state in batches.found if state is not BatchState.COMMITTED]
    age = milliseconds(run.limits.orphan_age)
    marks, named = Marks(), set[str]()
    for stored in run.tables.stored():
        if (table := stored.load_to_change()) is not None:
            names = files_named(table)
            named |= marks.of_names(names.every)
            _refuse_unlisted(stored, names.live, listed.get(stored.name, []), marks)
    found = unreferenced(
        [f for files in listed.values() for f in files],
        named=named,
        under_way=busy,
        modified_before=before(run.now, age),
    )
    seen = read_first_seen(run.landing, run.stream)
    going, waiting = long_unreferenced(found, first_seen=seen, now=run.now, age=age)
    # Last, and only where something would go: every manifest of every table of the catalog is read.
    others = marks.of_names(run.tables.named_by_others()) if going else set()
    theirs = [f for f in going if is_named(f, others)]
    going = [f for f in going if not is_named(f, others)]
    if run.apply:
        for file in going:
            with reading(keeper[file.path].name):
                keeper[file.path].files.remove(file.path)
        if waiting != seen:  # of a stream that was never planned there is nothing to keep, nor a folder for it
            write_first_seen(run.landing, run.stream, waiting)
    kept = [f"{len(waiting)} more that nothing names wait for the orphan age"] if waiting else []
    kept += [f"{len(theirs)} that only other tables of the catalog name stay"] if theirs else []
    return ActionReport(
        "orphans",
        "files",
        len(going),
        sum(f.bytes for f in going),
        tuple(Path(f.path).name for f in going[:_SHOWN]),
        tuple(kept),
        {"waiting": len(waiting), "waiting_bytes": sum(f.bytes for f in found if f.path in waiting)},
    )


def _refuse_unlisted(stored: StoredTable, live: Collection[str], listed: list[StoredFile], marks: Marks) -> None:
    """The belt beneath every comparison: raises `Altered` where the table needs a file that is not in its folders. Then
    either it is gone, or it is not recognised, and the next that is not would be taken for nobody's."""
    by_name = {name: marks.of_names([name]) for name in live}
    if not unlisted(by_name, listed):
        return
    # What was committed since the folders were listed is there now.
    with reading(stored.name):
        missing = unlisted(by_name, stored.files.listed())
    where = " and ".join(stored.files.where)
    if missing:
        raise Altered(
            f"table {stored.name} needs {len(missing)} files that are not found in {where}, e.g. "
            f"{ascii(missing[0])[:200]}: no file of stream {stored.name.partition('.')[0]} is removed. If they are "
            "gone, restore them; if the table names them by another place, set `warehouse` of [tables] to that one",
            table=stored.name,
        )


def prune_index(run: MaintenanceRun) -> ActionReport:
    """Files that the index of this host knows and no retained snapshot names any more."""
    return ActionReport("index", "files", run.tables.prune_index(apply=run.apply), None)


def _named_by_heads(run: MaintenanceRun) -> frozenset[int]:
    return frozenset(h.held.snapshot_id for h in run.tables.heads() if h.held is not None)


def _projected_plans(run: MaintenanceRun, batches: Batches) -> tuple[set[str], list[str]]:
    """Committed plans whose offsets stand: the group carries our tag, of their head or of a later one."""
    done = batches.in_state(BatchState.COMMITTED)
    if not done or not batches.heads:
        return set(), []
    head = batches.heads[0]
    stream = run.deployment.stream(run.stream)
    try:
        group = run.deployment.log.group_offsets(stream.group, stream.topic, sorted(head.positions))
    except Transient as error:
        return set(), [f"the payload of committed batches: {error.message}"]
    tags = [parse_tag(g.metadata) if g is not None else None for g in group.values()]
    table = run.tables.table_uuid()
    least = min((t.version for t in tags if t is not None), default=None)
    if least is None or any(t is None or t.table != table for t in tags):
        return set(), [f"the payload of committed batches: the offsets of group {stream.group} are not ours"]
    versions = {h.plan_id: h.version for h in batches.heads if h.plan_id}
    # Without a head of its own any more it is older than all that are left.
    return {f.plan_id for f in done if versions.get(f.plan_id, (0, 0)) <= least}, []


def _published_in_every_snapshot(waveforms: StoredTable, ids: Collection[str]) -> list[Mapping[str, PublishedWaveform]]:
    """What the oldest snapshot of main has of these waveforms, and every one since that may have taken rows out."""
    table = waveforms.load()
    if table is None:
        return []
    main = main_snapshots(table)
    aside = [s for s in table.metadata.snapshots if s not in main]
    shrinking = [s for s in main if s.summary is None or s.summary.operation.value != "append"]
    looked = {s.snapshot_id for s in [*main[-1:], *shrinking, *aside]}
    return [find_published(table, ids, snapshot_id=s) for s in sorted(looked)]
