"""`wavestitch undo`: the opposite of what a stream was last changed by, or of one batch. Shown first, then done."""

from __future__ import annotations

import getpass
import json
from dataclasses import asdict
from typing import Annotated

import typer

from wavestitch import console, console_held, console_rewind
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.held_decision import HeldPreview, carry_out
from wavestitch.batch.request import parse_accepted
from wavestitch.batch.rewind import apply_rewind
from wavestitch.batch.rewind_preview import with_gates
from wavestitch.batch.take_back import TakingBack, take_back
from wavestitch.batch.undo import committed_stages, plan_undo
from wavestitch.cli_rewind import AcceptSkip, rewind_to_json
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.stages import explain


def undo(
    stream: Annotated[str, typer.Argument(help="A stream declared in streams/NAME.yaml")],
    plan_id: Annotated[
        str | None, typer.Option("--plan", help="Of this batch; else what the newest head came from")
    ] = None,
    of: Annotated[
        int | None, typer.Option("--of", help="The newest head that is meant, by its number, as the preview shows it")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it (with --of or --plan); without, a preview")] = False,
    accept_skip: AcceptSkip = "",
    why: Annotated[str, typer.Option(help="Recorded with it")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts")] = False,
) -> None:
    """Undo: a batch or a rewind by a rewind to where it began, a discard by a restore, a promotion by the rows of
    before. What else was published stays published."""
    accepted_skip = parse_accepted(accept_skip)
    deployment = Deployment()
    deployment.stream(stream)  # only what is declared has tables
    edges = DeploymentEdges(deployment, stream)
    meant = _head_meant(edges, plan_id, of, apply=apply)
    stages = committed_stages(edges, plan_id, of=meant)
    found = plan_undo(edges, stages, who=getpass.getuser(), why=why, of=meant)
    if meant is not None and not as_json:
        console.out.print(f"undo of head {meant}" + ("" if apply else f"; do it with --of {meant} --apply"))
    if isinstance(found, HeldPreview):
        _show_decision(edges, found, of=meant, apply=apply, as_json=as_json)
        return
    if isinstance(found, TakingBack):
        _show_taking_back(edges, found, of=meant, apply=apply, as_json=as_json)
        return
    found = with_gates(edges, found, why=why, apply=apply)
    if apply:
        apply_rewind(edges.stream, found, accept_skip=accepted_skip, log=edges.log, tables=edges.tables)
    if as_json:
        print(json.dumps({"of": meant, **rewind_to_json(found, applied=apply)}, indent=1, default=str))
    else:
        console_rewind.show_rewind(found, applied=apply)


def _show_taking_back(edges: DeploymentEdges, found: TakingBack, *, of: int | None, apply: bool, as_json: bool) -> None:
    head = take_back(edges, found) if apply else None
    if as_json:
        stages = [asdict(t) for t in explain(found.stages)]
        done = None if head is None else head.sequence
        print(json.dumps({"of": of, "plan": found.plan_id, "stages": stages, "head": done}, indent=1))
        return
    console.show_stages(explain(found.stages))
    console.out.print("nothing was changed" if head is None else f"done: head {head.sequence}")


def _head_meant(edges: DeploymentEdges, plan_id: str | None, of: int | None, *, apply: bool) -> int | None:
    """The number of the head that is to be undone; None where a batch is named, or where there is no head yet."""
    if plan_id is not None and of is not None:
        raise BadInput("--plan names a batch and --of the newest head; say which of them is meant")
    if plan_id is not None or of is not None:
        return of
    newest = edges.tables.head()
    if apply and newest is not None:
        # Whatever was shown before: by now another head may be the newest, and its opposite is another operation.
        raise BadInput(
            f"undo --apply does what a preview showed: look with `wavestitch undo {edges.name}`, then say `wavestitch "
            f"undo {edges.name} --of {newest.sequence} --apply` with the number that it shows ({newest.sequence} is "
            "the newest now)"
        )
    return None if newest is None else newest.sequence


def _show_decision(edges: DeploymentEdges, found: HeldPreview, *, of: int | None, apply: bool, as_json: bool) -> None:
    done = carry_out(edges, found.plan) if apply else None
    if as_json:
        stages = [asdict(t) for t in explain(found.stages)]
        print(json.dumps({"of": of, "plan": found.plan.plan_id, "stages": stages}, indent=1))
    else:
        console_held.show_decision(found, done)
