"""Giving a batch up for good: first no head names it at its gate any more, then its folder says so.

In this order: stopped in between, the folder still says that the gate is closed, and the same is said again. Where the
folder is gone, what the head says is all there is.
"""

from __future__ import annotations

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.gate_in_head import leave_gate
from wavestitch.batch.history import find_committed
from wavestitch.contracts.errors import Altered, BadInput, Refused
from wavestitch.contracts.plain_text import name_of_person, said_by_person
from wavestitch.contracts.quantities import EpochMs


def abandon_batch(deployment: Deployment, stream: str, plan_id: str, *, who: str, why: str, at_ms: EpochMs) -> None:
    """It ends fenced from now on. Raises `Refused` where it is committed, `BadInput` where nobody knows of it."""
    declared, history = deployment.stream(stream), deployment.history(stream)
    folder, reason = deployment.folder(stream, plan_id), said_by_person(why, "the reason (why)")
    if not reason:
        raise BadInput("say why this batch is abandoned (why): it is kept with it")
    refusal = Refused(
        f"batch {plan_id[:16]} of stream {stream} is committed: there is nothing left to abandon; `wavestitch undo "
        f"{stream} --plan {plan_id}` shows how to go back behind it"
    )
    if find_committed(history, plan_id) is not None:
        raise refusal
    note = f"batch {plan_id[:16]} at its gate is given up by {name_of_person(who)}: {reason}"
    stood = leave_gate(declared, plan_id, log=lambda: deployment.log, tables=history.tables, note=note)
    try:
        folder.abandon(who=who, why=why, at_ms=at_ms)
    except (Altered, BadInput):
        if not stood:
            raise
    if find_committed(history, plan_id) is not None:  # it had asked whether it was abandoned just before
        raise refusal
