"""Whether a stream of `trigger: lag` is to be started: the level decides, at each look, and never an event.

So nothing is lost by a look that was, and none is started in vain: not where its plan would be refused, and, by whoever
asks here, not while a run of it is under way.
"""

from __future__ import annotations

from typing import NamedTuple

from wavestitch.batch.closed_gate import refuse_past_closed_gate
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
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
        if seen.room is None:
            return Start(True, "it has not begun")
        if seen.room.lost:
            return Start(
                False, f"retention took {seen.room.lost} offsets unread, and somebody must accept that by name"
            )
        # What waits behind an open transaction no run may read: it would be started again and again.
        unread = seen.room.backlog - seen.room.waiting
        if unread <= 0:
            return Start(False, "nothing that can be read is unread")
        refuse_past_closed_gate(DeploymentEdges(deployment, seen.stream))
    except WavestitchError as error:
        return Start(False, error.message)
    return Start(True, f"{unread} offsets are unread")
