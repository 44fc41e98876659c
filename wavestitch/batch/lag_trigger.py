"""Whether a stream of `trigger: lag` is to be started: the level decides, at each look, and never an event.

So nothing is lost by a look that was, and none is started in vain: its plan is worked out beforehand, only noted. By
whoever asks here, none is started while a run of it is under way. Where batches fail again and again, the next one is
waited for longer each time: each lands what it reads once more, on a disk that all streams share.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.landing_facts import tries_on
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.quantities import EpochMs, Milliseconds, before, elapsed
from wavestitch.contracts.rewind_preview import length

if TYPE_CHECKING:
    from wavestitch.batch.watch import Watched

log = logging.getLogger(__name__)

FIRST_WAIT = Milliseconds(600_000)
LONGEST_WAIT = Milliseconds(24 * 3_600_000)


class Start(NamedTuple):
    """`why`: as half a sentence, for the log, also where it is not started. `stands`: it should be asked, and cannot be
    started before somebody or something has changed that."""

    now: bool
    why: str
    stands: bool = False


def start_by_lag(deployment: Deployment, seen: Watched) -> Start:
    """`seen`: the look at it. Never raises: whatever is wrong with one stream keeps no other one waiting."""
    if seen.problem:
        return Start(False, "it cannot be looked at")
    try:
        if deployment.stream(seen.stream).trigger != "lag":
            return Start(False, "it is not started by its lag")
        edges = DeploymentEdges(deployment, seen.stream)
        found = step_plan(edges, PlanRequest(), apply=False)
        head = edges.tables.head()
        tries = [] if head is None else tries_on(deployment.settings.landing, edges.name, head)
    except WavestitchError as error:
        return Start(False, error.message, stands=True)
    except Exception as error:
        log.exception("%s: its plan cannot be worked out", seen.stream)
        return Start(False, f"its plan cannot be worked out: {type(error).__name__}; the log says more", stands=True)
    if isinstance(found, NothingToDo):
        return Start(False, found.why)
    if tries and (left := waits(tries, now=edges.clock_ms())) > 0:
        return Start(
            False,
            f"{len(tries)} batches were planned where it stands and have not got through; one more is started in "
            f"{length(left / 1000)}. A run that somebody starts is not waited for",
        )
    return Start(True, f"{found.records + found.left} offsets are to be read")


def waits(tries: Sequence[Plan], *, now: EpochMs) -> Milliseconds:
    """How long until one more is started: twice as long after each, since each lands what it reads anew. Nobody says
    here whether the newest has failed or is under way: then none is started anyway. One that is yet to come was planned
    by a clock that was ahead: it counts, and nobody waits for its time."""
    wait = min(FIRST_WAIT * 2 ** min(len(tries) - 1, 10), LONGEST_WAIT)
    newest = max((plan.clock_ms for plan in tries if plan.clock_ms <= now), default=before(now, LONGEST_WAIT))
    return Milliseconds(wait - elapsed(since=newest, until=now))
