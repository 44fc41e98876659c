"""Whether a stream of `trigger: lag` is to be started: the level decides, at each look, and never an event.

So nothing is lost by a look that was, and none is started in vain: its plan is worked out beforehand, only noted. By
whoever asks here, none is started while a run of it is under way.
"""

from __future__ import annotations

from typing import NamedTuple

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.plan import NothingToDo, PlanRequest
from wavestitch.batch.steps import step_plan
from wavestitch.batch.watch import Watched
from wavestitch.contracts.errors import WavestitchError


class Start(NamedTuple):
    """`why`: as half a sentence, for the log, also where it is not started."""

    now: bool
    why: str


def start_by_lag(deployment: Deployment, seen: Watched) -> Start:
    """`seen`: the look at it. Never raises what the stream's own edges say."""
    if seen.problem:
        return Start(False, "it cannot be looked at")
    try:
        if deployment.stream(seen.stream).trigger != "lag":
            return Start(False, "it is not started by its lag")
        found = step_plan(DeploymentEdges(deployment, seen.stream), PlanRequest(), apply=False)
    except WavestitchError as error:
        return Start(False, error.message)
    if isinstance(found, NothingToDo):
        return Start(False, found.why)
    return Start(True, f"{found.records + found.left} offsets are to be read")
