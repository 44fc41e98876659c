"""One run of maintenance over a stream: its actions in order, and what was there before and after.

In this order: what no batch needs goes first, then the tables are put in order, then snapshots, then files that nothing
names any more. An action that fails ends the run, and what it may have let go of was nothing that anybody needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.run import Silent, Watcher
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.maintenance import ActionReport, MaintenanceReport
from wavestitch.maintain.actions import ACTIONS
from wavestitch.maintain.compaction import compact_locally, compact_tables
from wavestitch.maintain.maintenance_run import Compact, MaintenanceRun, footprint
from wavestitch.settings import MaintainLimits

_STEPS: dict[str, Callable[[MaintenanceRun], ActionReport]] = {
    "landing": ACTIONS["landing"],
    "docs": ACTIONS["docs"],
    "held": ACTIONS["held"],
    "compact": compact_tables,
    "snapshots": ACTIONS["snapshots"],
    "orphans": ACTIONS["orphans"],
}
NAMES = tuple(_STEPS)


def maintain_stream(
    deployment: Deployment,
    stream: str,
    *,
    apply: bool = False,
    only: Collection[str] = (),
    limits: MaintainLimits | None = None,
    compact: Compact | None = None,
    watcher: Watcher | None = None,
    now_ms: int | None = None,
) -> MaintenanceReport:
    """Without `apply` a dry run. `only`: names of actions; none: all. `limits`: those of the settings unless given."""
    unknown = sorted(set(only) - set(NAMES))
    if unknown:
        raise BadInput(f"maintenance has no action {unknown[0]!r}; there are {', '.join(NAMES)}")
    deployment.stream(stream)
    watch = watcher or Silent()
    run = MaintenanceRun(
        deployment=deployment,
        stream=stream,
        limits=limits or deployment.settings.maintain.of(stream),
        now_ms=time.time_ns() // 1_000_000 if now_ms is None else now_ms,
        apply=apply,
        compact=compact or compact_locally(deployment, say=watch.say),
        say=watch.say,
    )
    watch.begin(f"look at {stream}")
    before = footprint(run)
    reports = []
    for name, action in _STEPS.items():
        if not only or name in only:
            watch.begin(name)
            reports.append(action(run))
    remarks = tuple(run.tables.remarks())
    return MaintenanceReport(stream, apply, before, footprint(run) if apply else before, tuple(reports), remarks)
