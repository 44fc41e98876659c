"""`wavestitch promote`: what the definition makes of a range, in the place of what is published. Shown first, then
done, exactly as it was shown.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

import typer

from wavestitch import console, console_promote
from wavestitch.batch.carry import Silent
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.verify_request import verify_request
from wavestitch.cli_reject import Reject, reject_kept
from wavestitch.cli_verify import AsJson, Batch, Interval, Offsets, Partitions, Stream
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.stages import explain


def promote(
    stream: Stream,
    offsets: Offsets = None,
    interval: Interval = None,
    batch: Batch = None,
    partitions: Partitions = None,
    why: Annotated[str, typer.Option(help="Recorded with it")] = "",
    preview: Annotated[str | None, typer.Option(help="The id of what was shown: look at it again, or do it")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it (with --preview)")] = False,
    reject: Reject = False,
    as_json: AsJson = False,
) -> None:
    """Read a range again by the stream's definition, and publish what that changes in the place of what is there.

    First without --apply: nothing is changed, what would be is shown and kept, under an id. With that as --preview and
    --apply exactly this is done, in one commit, or nothing. Positions stay; `wavestitch undo` takes it back.
    """
    deployment = Deployment()
    deployment.stream(stream)  # only what is declared has tables
    edges = DeploymentEdges(deployment, stream)
    asked = {"offsets": offsets, "interval": interval, "batch": batch, "partitions": partitions}
    if reject:
        _reject(edges, preview, why=why, others=(apply, *asked.values()))
        return
    if preview is not None:
        if any(asked.values()) or why:
            raise BadInput("--preview names what was shown, its range and its reason; leave the others out")
        _do(edges, preview, apply=apply, as_json=as_json)
        return
    if apply:
        raise BadInput(
            f"promote --apply does what a preview showed: look with `wavestitch promote {stream} --why …` and the same "
            f"range, then say `wavestitch promote {stream} --preview ID --apply` with the id that it shows"
        )
    _show(deployment, edges, asked, why, as_json=as_json)


def _show(
    deployment: Deployment, edges: DeploymentEdges, asked: dict[str, str | None], why: str, *, as_json: bool
) -> None:
    from wavestitch.batch.comparing_edges import VerifyingEdges  # noqa: PLC0415 - loads what stitches
    from wavestitch.batch.promote import preview_promotion  # noqa: PLC0415

    request, comparing = verify_request(asked), VerifyingEdges(deployment, edges.name)
    with nullcontext(Silent()) if as_json else console.ProgressBars() as watcher:
        found = preview_promotion(edges, comparing, request, who=getpass.getuser(), why=why, watcher=watcher)
    if not as_json:
        console_promote.show_preview(found)
        return
    shown: dict[str, Any] = {k: v for k, v in asdict(found).items() if k not in ("plan", "promotion")}
    stages = [asdict(s) for s in explain(found.stages)]
    said = {"preview": found.plan.plan_id, "says": found.promotion.says, **shown, "stages": stages}
    print(json.dumps(said, indent=1))


def _reject(edges: DeploymentEdges, preview_id: str | None, *, why: str, others: Iterable[object]) -> None:
    from wavestitch.batch.promote import kept_promotion  # noqa: PLC0415 - loads what stitches

    reject_kept(edges, preview_id, find=partial(kept_promotion, edges), why=why, others=others)


def _do(edges: DeploymentEdges, preview_id: str, *, apply: bool, as_json: bool) -> None:
    """What was kept, here or in Airflow: shown again, or done as it was shown, or not at all."""
    from wavestitch.batch.held_approval import begin_approved  # noqa: PLC0415 - loads what stitches
    from wavestitch.batch.preview_answer import refuse_dead_preview  # noqa: PLC0415
    from wavestitch.batch.promote import carry_promotion, kept_promotion  # noqa: PLC0415

    plan, promotion = kept_promotion(edges, preview_id)
    done = None
    if not apply:
        refuse_dead_preview(edges, preview_id, made_ms=plan.clock_ms)
    if apply:
        plan = begin_approved(edges, preview_id, by=getpass.getuser())
        with nullcontext(Silent()) if as_json else console.ProgressBars() as watcher:
            done = carry_promotion(edges, plan, watcher=watcher)
    if as_json:
        said = {"preview": preview_id, "ids": promotion.ids, "note": promotion.note}
        print(json.dumps({**said, "plan": plan.plan_id, "done": None if done is None else asdict(done)}, indent=1))
    else:
        console_promote.show_kept(edges.name, preview_id, promotion, done)
