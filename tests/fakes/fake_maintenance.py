"""Maintenance over the memory edges: what may go is decided by the product, and let go here as the product does it.

Of its stages those that touch what batches rely on: held rows that are published, old junk, snapshots, files that
nothing names; and what killed readers left, in a folder on a disk. They are carried by the product's own loop.
Whose catalog it is it asks the group, by the product's own look; versions of metadata, folders and compaction are tried
on real tables (tests/domain/test_maintain*.py, test_doubted_catalog.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, cast

from tests.fakes.batch import FakeEdges
from tests.fakes.fake_tables import held_files
from wavestitch.batch.history import history_of, repair_history
from wavestitch.contracts.errors import Refused, Transient
from wavestitch.contracts.maintenance import (
    ActionReport,
    BatchFolder,
    BatchState,
    HeldPlace,
    SnapshotFacts,
    TableState,
)
from wavestitch.contracts.maintenance_stages import (
    STAGES,
    ClearLeftovers,
    DeleteHeld,
    ExpireJunk,
    ExpireSnapshots,
    RemoveOrphans,
)
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.ports import CommitConflict
from wavestitch.contracts.quantities import BEGINNING, Milliseconds, before, milliseconds
from wavestitch.contracts.stages import Stage
from wavestitch.maintain import doubts, leftovers, what_goes
from wavestitch.maintain.batch_state import judge_batch, may_commit
from wavestitch.maintain.maintenance_run import MaintenanceRun
from wavestitch.maintain.run import carry_stages, raise_failed
from wavestitch.maintain.what_goes import SnapshotLimits
from wavestitch.settings_sections import MaintainLimits

JUNK_AGE = MaintainLimits().junk
ORPHAN_AGE = 600
"""Seconds of the history's clock after which what nobody holds may go."""


class Batches(NamedTuple):
    """As of one look: batches that may still commit, and those at a closed gate."""

    under_way: list[Plan]
    busy: set[str]
    closed: set[str]
    recorded: set[tuple[int, str]]


def maintain(edges: FakeEdges, *, most: int) -> None:
    """All stages, in the product's order. `most`: so many snapshots are to stay. Raises `Refused` where the catalog may
    be another one than before."""
    refuse_in_doubt(edges)

    def carry(stage: type[Stage]) -> ActionReport:
        edges.bench.tell("stage begun", stage=stage.name)
        ACTS[stage](edges, most)
        return ActionReport(stage.name, "", 0, None)

    _, failures = carry_stages([stage for stage in STAGES if stage in ACTS], carry, say=lambda _: None)
    raise_failed([(edges.name, failure) for failure in failures])


def refuse_in_doubt(edges: FakeEdges) -> None:
    named = SimpleNamespace(stream=lambda _: edges.stream, log=edges.log)
    nowhere, silent = Path("/nowhere"), lambda _: None
    run = SimpleNamespace(tables=edges.tables, deployment=named, stream=edges.name, landing=nowhere, say=silent)
    found = doubts._group_doubt(cast(MaintenanceRun, run))
    if found is not None:
        raise Refused(f"not run: {found}")


def look_at_batches(edges: FakeEdges) -> Batches:
    """Folders first, then the history, then the heads, as the product does."""
    plans = dict(edges.bench.plans)
    closed = {p.plan_id for p in edges.closed_gates()}
    rows, heads = edges.tables.batches(), edges.tables.heads()
    committed = {b.plan_id for b in rows} | {h.plan_id for h in heads}
    states = {
        i: judge_batch(
            BatchFolder(i, plan, "", i in edges.bench.abandoned, BEGINNING, 0, 0, 0),
            committed=committed,
            heads=heads,
            closed=closed,
        )
        for i, plan in plans.items()
    }
    return Batches(
        under_way=[plans[i] for i, state in states.items() if state is BatchState.UNDER_WAY],
        busy={i for i, state in states.items() if may_commit(state)},
        closed=closed,
        recorded={(b.sequence, b.decision) for b in rows},
    )


def clear_leftovers(edges: FakeEdges, _most: int) -> None:
    """The product's own, on the disk."""
    landing = edges.bench.landing
    if landing is None:
        return
    limits = SimpleNamespace(orphan_age=ORPHAN_AGE, previews=ORPHAN_AGE)
    run = SimpleNamespace(
        landing=landing,
        stream=edges.name,
        now=edges.clock_ms(),
        limits=limits,
        apply=True,
        deployment=SimpleNamespace(payload_store=None),
    )
    leftovers.clear_leftovers(cast(MaintenanceRun, run))
    edges.bench.tell("cleared", left=sorted(path.name for path in landing.rglob("*.tmp")), now_ms=edges.clock_ms())


def delete_held(edges: FakeEdges, _most: int) -> None:
    tables = edges.tables
    head = tables.head()
    if head is None or head.held is None:
        return
    rows = tables.held_places(head.held)
    places = [HeldPlace(str(n), 0, row.held, row.plan_id) for n, row in enumerate(rows)]
    busy = look_at_batches(edges).busy
    ids = {i for row in rows if (i := row.held.chunk.waveform_id) is not None}
    published = tables.published_in_every_snapshot(ids) if ids else []
    going = what_goes.held_to_delete(places, published=published, under_way=busy)
    if going:
        try:
            gone = {int(file) for file in going}
            tables.rewrite_held(head, gone, note=f"{len(going)} held rows went")
        except CommitConflict:
            raise Transient("a batch committed while held rows were taken out") from None


def expire_junk(edges: FakeEdges, _most: int) -> None:
    tables = edges.tables
    head = tables.head()
    if head is None or head.held is None:
        return
    rows, now = tables.held_places(head.held), edges.clock_ms()
    files = {str(n): (file, row.held_ms) for n, (file, row) in enumerate(zip(held_files(rows), rows, strict=True))}
    going = what_goes.junk_to_expire(files, held_before=before(now, milliseconds(JUNK_AGE)))
    if going:
        numbers = {int(file) for file in going}
        edges.bench.tell("junk goes", rows=[rows[n] for n in sorted(numbers)], now_ms=now)
        by_reason = Counter(file.reason for file in going.values())
        counts = {reason: max(0, n - by_reason[reason]) for reason, n in head.held.counts.items()}
        try:
            tables.rewrite_held(head, numbers, counts=counts, note=f"{len(going)} records that are no chunks expired")
        except CommitConflict:
            raise Transient("a batch committed while junk was taken out") from None


def expire_snapshots(edges: FakeEdges, most: int) -> None:
    tables = edges.tables
    repair_history(history_of(edges))
    batches = look_at_batches(edges)
    main = tuple(SnapshotFacts(h.snapshot_id or 0, BEGINNING, "append", h) for h in tables.heads())
    going, _ = what_goes.snapshots_to_expire(
        TableState("waves.waveforms", main, frozenset(), 0, (), 0),
        limits=SnapshotLimits(age=Milliseconds(1), most=most, least=1, pinned=Milliseconds(10**9)),
        now=edges.clock_ms(),
        recorded=batches.recorded,
        under_way=batches.under_way,
        closed=batches.closed,
    )
    tables.drop_snapshots(going)


def remove_orphans(edges: FakeEdges, _most: int) -> None:
    edges.tables.remove_orphans()


ACTS: dict[type[Stage], Callable[[FakeEdges, int], None]] = {
    ClearLeftovers: clear_leftovers,
    DeleteHeld: delete_held,
    ExpireJunk: expire_junk,
    ExpireSnapshots: expire_snapshots,
    RemoveOrphans: remove_orphans,
}
"""As the product's table of the same name, less what has no part in this world."""
