"""How each stage of maintenance is carried out. Which there are, in which order, and what they are for: `STAGES`."""

from __future__ import annotations

from collections.abc import Callable

from wavestitch.contracts.maintenance import STAGES, ActionReport
from wavestitch.maintain import actions
from wavestitch.maintain.compaction import compact_tables
from wavestitch.maintain.leftovers import clear_leftovers
from wavestitch.maintain.maintenance_run import MaintenanceRun

_ACTS: dict[str, Callable[[MaintenanceRun], ActionReport]] = {
    "landing": actions.clear_landing,
    "docs": actions.clear_docs,
    "leftovers": clear_leftovers,
    "held": actions.delete_held,
    "junk": actions.expire_junk,
    "compact": compact_tables,
    "snapshots": actions.expire,
    "orphans": actions.remove_orphans,
    "index": actions.prune_index,
}
NAMES = tuple(s.name for s in STAGES)
if tuple(_ACTS) != NAMES:
    raise AssertionError(f"stages {NAMES} and acts {tuple(_ACTS)} differ")


def carry_out(name: str, run: MaintenanceRun) -> ActionReport:
    """One stage: without the run's `apply` what would go, with it what went."""
    return _ACTS[name](run)
