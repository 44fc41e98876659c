"""One run of maintenance over a stream: its actions in order, and what was there before and after.

In this order: what no batch needs goes first, then the tables are put in order, then snapshots, then files that nothing
names any more. An action that fails ends the run, and what it may have let go of was nothing that anybody needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from wavestitch.batch.run import Silent, Watcher
from wavestitch.batch.site import Site
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.upkeep import ActionReport, UpkeepReport
from wavestitch.maintain.actions import ACTIONS
from wavestitch.maintain.compaction import compact_locally, compact_tables
from wavestitch.maintain.ground import Compact, Ground, footprint
from wavestitch.settings import MaintainLimits

_STEPS: dict[str, Callable[[Ground], ActionReport]] = {
    "landing": ACTIONS["landing"],
    "docs": ACTIONS["docs"],
    "held": ACTIONS["held"],
    "compact": compact_tables,
    "snapshots": ACTIONS["snapshots"],
    "orphans": ACTIONS["orphans"],
}
NAMES = tuple(_STEPS)


def maintain_stream(
    site: Site,
    stream: str,
    *,
    apply: bool = False,
    only: Collection[str] = (),
    limits: MaintainLimits | None = None,
    compact: Compact | None = None,
    watcher: Watcher | None = None,
    now_ms: int | None = None,
) -> UpkeepReport:
    """Without `apply` a dry run. `only`: names of actions; none: all. `limits`: those of the settings unless given."""
    unknown = sorted(set(only) - set(NAMES))
    if unknown:
        raise BadInput(f"maintenance has no action {unknown[0]!r}; there are {', '.join(NAMES)}")
    site.stream(stream)
    watch = watcher or Silent()
    ground = Ground(
        site=site,
        stream=stream,
        limits=limits or site.settings.maintain.of(stream),
        now_ms=time.time_ns() // 1_000_000 if now_ms is None else now_ms,
        apply=apply,
        compact=compact or compact_locally(site, say=watch.say),
        say=watch.say,
    )
    watch.begin(f"look at {stream}")
    before = footprint(ground)
    reports = []
    for name, action in _STEPS.items():
        if not only or name in only:
            watch.begin(name)
            reports.append(action(ground))
    return UpkeepReport(stream, apply, before, footprint(ground) if apply else before, tuple(reports))
