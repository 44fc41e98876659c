"""Whether a stream of `trigger: lag` is to be started: the level decides, at each look, and never an event.

So nothing is lost by a look that was, and none is started in vain: its plan is worked out beforehand, only noted. By
whoever asks here, none is started while a run of it is under way.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.steps import step_plan
from wavestitch.contracts.errors import WavestitchError

if TYPE_CHECKING:
    from wavestitch.batch.watch import Watched

log = logging.getLogger(__name__)


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
        found = step_plan(DeploymentEdges(deployment, seen.stream), PlanRequest(), apply=False)
    except WavestitchError as error:
        return Start(False, error.message, stands=True)
    except Exception as error:
        log.exception("%s: its plan cannot be worked out", seen.stream)
        return Start(False, f"its plan cannot be worked out: {type(error).__name__}; the log says more", stands=True)
    if isinstance(found, NothingToDo):
        return Start(False, found.why)
    return Start(True, f"{found.records + found.left} offsets are to be read")
