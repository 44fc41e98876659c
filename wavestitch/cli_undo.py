"""`wavestitch undo`: the opposite of what a stream was last changed by, or of one batch. Shown first, then done."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from wavestitch import console, console_held
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.held_decision import HeldPreview, carry_out
from wavestitch.batch.rewind import Rewind, apply_rewind
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.contracts.stages import explain


def undo(
    stream: Annotated[str, typer.Argument(help="A stream declared in streams/NAME.yaml")],
    plan_id: Annotated[
        str | None, typer.Option("--plan", help="Of this batch; else what the newest head came from")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; without, a preview")] = False,
    accept_skip: Annotated[bool, typer.Option(help="Accept by name that the shown offsets are never read")] = False,
    why: Annotated[str, typer.Option(help="Recorded with it")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts")] = False,
) -> None:
    """Undo: a batch or a rewind by a rewind to where it began, a discard by a restore. Published stays published."""
    deployment = Deployment()
    deployment.stream(stream)  # only what is declared has tables
    edges = DeploymentEdges(deployment, stream)
    found = plan_undo(edges, committed_stages(edges, plan_id), who=getpass.getuser(), why=why)
    if isinstance(found, HeldPreview):
        _show_decision(edges, found, apply=apply, as_json=as_json)
        return
    if apply:
        apply_rewind(edges.stream, found, accept_skip=accept_skip, log=edges.log, tables=edges.tables)
    if as_json:
        print(json.dumps(rewind_to_json(found, applied=apply), indent=1, default=str))
    else:
        console.show_rewind(found, applied=apply)


def rewind_to_json(found: Rewind, *, applied: bool) -> Mapping[str, Any]:
    """A rewind, for scripts."""
    return {
        "applied": applied,
        "moves": {str(p): list(move) for p, move in found.moves.items()},
        "skipped": [list(r) for r in found.skipped],
        "settles": found.settles,
        "remarks": list(found.remarks),
        "missing": [m.said for m in found.missing],
        "stages": [asdict(told) for told in explain(found.stages)],
    }


def _show_decision(edges: DeploymentEdges, found: HeldPreview, *, apply: bool, as_json: bool) -> None:
    done = carry_out(edges, found.plan) if apply else None
    if as_json:
        print(json.dumps({"plan": found.plan.plan_id, "stages": [asdict(t) for t in explain(found.stages)]}, indent=1))
    else:
        console_held.show_decision(found, done)
