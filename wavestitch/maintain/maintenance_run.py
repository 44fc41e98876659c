"""What one run of maintenance stands on: the stream's edges and limits, and the state of its batches.

The order of looking is what makes removing safe. Files are listed first, then the batch folders, then the history, and
the waveforms table last, once: whatever is committed in between is named by that table, and whatever is planned or
staged in between is younger than any limit. Changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.landing_facts import closed_gates
from wavestitch.contracts.maintenance import BatchFolder, BatchState, Footprint
from wavestitch.contracts.position import Head
from wavestitch.contracts.quantities import EpochMs
from wavestitch.maintain.batch_state import judge_batch
from wavestitch.maintain.landing_folders import batch_folders, tree_size
from wavestitch.settings_sections import MaintainLimits
from wavestitch.tables.access.reading import reading
from wavestitch.tables.history.heads import walk_heads
from wavestitch.tables.maintenance.table_state import describe_table
from wavestitch.tables.stream_tables import StreamTables
from wavestitch.write_once import disk_errors


@dataclass(frozen=True)
class MaintenanceRun:
    """One stream, one run. `now`: the run's only clock."""

    deployment: Deployment
    stream: str
    limits: MaintainLimits
    now: EpochMs
    apply: bool
    say: Callable[[str], None] = field(default=lambda _: None)

    @property
    def landing(self) -> Path:
        return self.deployment.settings.landing

    @property
    def tables(self) -> StreamTables:
        return self.deployment.tables(self.stream)


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches in the landing, each with its state, and what the tables say of committed ones. `closed`: plans at a
    closed gate, by the landing or the head."""

    found: tuple[tuple[BatchFolder, BatchState], ...]
    in_history: frozenset[str]
    recorded: frozenset[tuple[int, str]]
    heads: tuple[Head, ...]
    closed: frozenset[str]

    def in_state(self, *states: BatchState) -> list[BatchFolder]:
        return [folder for folder, state in self.found if state in states]


def look_at_batches(run: MaintenanceRun) -> Batches:
    """Folders first, then the history, then the heads: see above."""
    folders = batch_folders(run.landing, run.stream)
    tables = run.tables
    closed = {p.plan_id for p in closed_gates(run.landing, run.stream)}
    rows = tables.batches()
    waveforms = tables.waveforms()
    heads = tuple(walk_heads(waveforms)) if waveforms is not None else ()
    closed |= {batch.plan_id for head in heads[:1] for batch in head.at_gate}
    in_history = frozenset(b.plan_id for b in rows if b.plan_id)
    committed = in_history | {h.plan_id for h in heads if h.plan_id}
    return Batches(
        found=tuple((f, judge_batch(f, committed=committed, heads=heads, closed=closed)) for f in folders),
        in_history=in_history,
        recorded=frozenset((b.sequence, b.decision) for b in rows),
        heads=heads,
        closed=frozenset(closed),
    )


@disk_errors("looking at what the stream takes up")
def footprint(run: MaintenanceRun) -> Footprint:
    """What the stream takes up now."""
    states = {}
    warehouse = (0, 0)
    for stored in run.tables.stored():
        table = stored.load()
        if table is not None:
            states[stored.name.rpartition(".")[2]] = describe_table(table)
            with reading(stored.name):
                files = stored.files.listed()
            warehouse = warehouse[0] + len(files), warehouse[1] + sum(f.bytes for f in files)
    landing = tree_size(run.landing / run.stream)
    return Footprint(
        landing_files=landing[0],
        landing_bytes=landing[1],
        warehouse_files=warehouse[0],
        warehouse_bytes=warehouse[1],
        docs_bytes=tree_size(run.deployment.settings.docs / run.stream)[1],
        metadata_bytes=sum(s.metadata_bytes for s in states.values()),
        snapshots={name: len(s.main) + s.aside for name, s in states.items()},
        data_files={name: len(s.files) for name, s in states.items()},
    )
