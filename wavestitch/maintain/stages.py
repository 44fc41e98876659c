"""How each stage of maintenance is carried out. Which there are, in which order, and what they are for: `STAGES`."""

from __future__ import annotations

from collections.abc import Callable

from wavestitch.contracts.maintenance import ActionReport
from wavestitch.contracts.maintenance_stages import (
    STAGES,
    ClearDocs,
    ClearLanding,
    ClearLeftovers,
    Compact,
    DeleteHeld,
    ExpireJunk,
    ExpireSnapshots,
    PruneIndex,
    RemoveOrphans,
)
from wavestitch.contracts.stages import Stage
from wavestitch.maintain import actions
from wavestitch.maintain.compaction import compact_tables
from wavestitch.maintain.leftovers import clear_leftovers
from wavestitch.maintain.maintenance_run import MaintenanceRun

ACTS: dict[type[Stage], Callable[[MaintenanceRun], ActionReport]] = {
    ClearLanding: actions.clear_landing,
    ClearDocs: actions.clear_docs,
    ClearLeftovers: clear_leftovers,
    DeleteHeld: actions.delete_held,
    ExpireJunk: actions.expire_junk,
    Compact: compact_tables,
    ExpireSnapshots: actions.expire,
    RemoveOrphans: actions.remove_orphans,
    PruneIndex: actions.prune_index,
}
"""Each looks, decides, and lets go only where the run says `apply`: what is shown is what goes, by the same code."""
NAMES = tuple(s.name for s in STAGES)
