"""One run of maintenance over a stream: its stages in order, and what was there before and after.

A stage that fails does not keep the others from running: a broker that is away must not fill the disk. All failures are
reported at the end. Only where bytes were found altered nothing more is let go of, and nothing at all where the catalog
may be another one than before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.run import Silent, Watcher
from wavestitch.contracts.errors import Altered, BadInput, Refused, StateUnknown, Terminal, Transient, WavestitchError
from wavestitch.contracts.maintenance import ActionReport, MaintenanceReport, StageFailure
from wavestitch.contracts.maintenance_stages import STAGES
from wavestitch.contracts.quantities import EpochMs, epoch_ms
from wavestitch.contracts.stages import Effect, Stage, Undoing, explain
from wavestitch.maintain.doubts import find_doubt
from wavestitch.maintain.maintenance_run import MaintenanceRun, footprint
from wavestitch.maintain.stages import ACTS, NAMES
from wavestitch.settings_sections import MaintainLimits

_NOT_RUN = "not run, since what is there was found altered"
_NOT_IN_DOUBT = "not run, for the same reason"
log = logging.getLogger(__name__)


def maintain_stream(
    deployment: Deployment,
    stream: str,
    *,
    apply: bool = False,
    only: Collection[str] = (),
    limits: MaintainLimits | None = None,
    watcher: Watcher | None = None,
    now: EpochMs | None = None,
    let_go: Collection[str] = (),
    who: str = "",
) -> MaintenanceReport:
    """Without `apply` a dry run. `only`: names of actions; none: all. `limits`: those of the settings unless given.
    `let_go`: versions of a table's metadata that `who` lets go of by name (`doubts`)."""
    unknown = sorted(set(only) - set(NAMES))
    if unknown:
        raise BadInput(f"maintenance has no action {unknown[0]!r}; there are {', '.join(NAMES)}")
    deployment.stream(stream)
    watch = watcher or Silent()
    run = MaintenanceRun(
        deployment=deployment,
        stream=stream,
        limits=limits or deployment.settings.maintain.of(stream),
        now=epoch_ms(time.time_ns()) if now is None else now,
        apply=apply,
        say=watch.say,
    )
    watch.begin(f"look at {stream}")
    before = footprint(run)
    stages = [stage for stage in STAGES if not only or stage.name in only]
    doubt = _Doubt(run, let_go, who)

    def carry(stage: type[Stage]) -> ActionReport:
        watch.begin(stage.name)
        if stage.undo.how is Undoing.NEVER or Effect.REPLACED in stage.effects:
            doubt.refuse()
        return ACTS[stage](run)

    reports, failures = carry_stages(stages, carry, say=watch.say)
    remarks = tuple(run.tables.remarks())
    after = footprint(run) if apply else before
    told = explain(stage() for stage in stages)
    return MaintenanceReport(stream, apply, before, after, tuple(reports), remarks, tuple(failures), told)


def carry_stages(
    stages: Iterable[type[Stage]], carry: Callable[[type[Stage]], ActionReport], *, say: Callable[[str], None]
) -> tuple[list[ActionReport], list[StageFailure]]:
    """One after another, whichever of them fails; once bytes were found altered, none that lets something go."""
    reports: list[ActionReport] = []
    failures: list[StageFailure] = []
    for stage in stages:
        if stage.undo.how is Undoing.NEVER and any(f.altered for f in failures):
            failures.append(StageFailure(stage.name, _NOT_RUN))
            continue
        try:
            reports.append(carry(stage))
        except Exception as error:
            failures.append(_failure(stage.name, error))
            say(f"{stage.name} failed: {failures[-1].message}")
    return reports, failures


class _Doubt:
    """Asked once a run, before the first stage that lets something go for good, or changes a table."""

    def __init__(self, run: MaintenanceRun, let_go: Collection[str], who: str) -> None:
        self._ask = cache(partial(find_doubt, run, let_go=let_go, who=who))
        self._said = False

    def refuse(self) -> None:
        """Raises `Refused` where the catalog may not be the one that the files belong to."""
        if (found := self._ask()) is not None:
            sentence, self._said = _NOT_IN_DOUBT if self._said else f"not run: {found}", True
            raise Refused(sentence)


def raise_failures(reports: Iterable[MaintenanceReport]) -> None:
    """What failed in these runs, as one error; the one that somebody has to do something about counts."""
    raise_failed([(r.stream, f) for r in reports for f in r.failures])


def raise_failed(found: Sequence[tuple[str, StageFailure]]) -> None:
    """The same. `found`: of which stream."""
    if not found:
        return
    kind = Terminal if any(f.terminal for _, f in found) else Transient
    sentences = "; ".join(f"{f.stage} of {stream}: {f.message}" for stream, f in found)
    raise kind(f"{len(found)} parts of maintenance did not go through, all others did: {sentences}")


def _failure(stage: str, error: Exception) -> StageFailure:
    if not isinstance(error, WavestitchError):
        log.error("maintenance: %s failed", stage, exc_info=error)
    message = error.message if isinstance(error, WavestitchError) else f"{type(error).__name__}: {error}"
    terminal = not isinstance(error, Transient | StateUnknown | OSError)
    return StageFailure(stage, message, terminal=terminal, altered=isinstance(error, Altered))
