"""`wavestitch rewind`: shown first, then done; or kept as it was shown, for another person or a later hour."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from wavestitch import console_rewind
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.preview_answer import refuse_dead_preview
from wavestitch.batch.request import parse_accepted, rewind_target
from wavestitch.batch.rewind import Rewind, apply_rewind, plan_rewind
from wavestitch.batch.rewind_preview import apply_preview, preview_rewind, with_gates
from wavestitch.batch.rewind_target import TARGETS
from wavestitch.cli_reject import Reject, reject_kept
from wavestitch.contracts.accepted_skip import ALL
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.position import Head
from wavestitch.contracts.rewind_preview import PREVIEWS, RewindPreview
from wavestitch.contracts.stages import explain

AcceptSkip = Annotated[
    str,
    typer.Option(
        metavar="RANGES", help=f"Accept by name that these offsets are never read, e.g. 0:5-9,2:7-8; {ALL}: those shown"
    ),
]
AcceptMissing = Annotated[
    bool, typer.Option(help="Accept by name that the shown rows, which somebody took out of the tables, are gone")
]


def rewind(
    stream: Annotated[str, typer.Argument(help="A stream declared in streams/NAME.yaml")],
    to: Annotated[str | None, typer.Option("--to", help=TARGETS)] = None,
    partitions: Annotated[str | None, typer.Option("--partitions", help="Of these partitions only, e.g. 0,2")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep what is shown, under an id, so that this is done")] = False,
    preview_id: Annotated[str | None, typer.Option("--preview", help="Exactly what was kept under this id")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; without, a dry run")] = False,
    reject: Reject = False,
    accept_skip: AcceptSkip = "",
    accept_missing: AcceptMissing = False,
    held_snapshot: Annotated[
        int | None, typer.Option("--held", help="rebuilt, start-over: this snapshot of the held table has what is held")
    ] = None,
    why: Annotated[str, typer.Option(help="Recorded with the rewind")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts")] = False,
) -> None:
    """Move the stream's positions on purpose. A dry run by default; undo it with `--to previous`."""
    accepted_skip = parse_accepted(accept_skip)
    deployment = Deployment()
    deployment.stream(stream)  # only what is declared has tables
    edges = DeploymentEdges(deployment, stream)
    if reject:
        others = (to, partitions, held_snapshot, keep, apply)
        reject_kept(edges, preview_id, find=edges.preview, why=why, others=others)
        return
    if preview_id is not None or keep:
        shown = _kept(edges, to, partitions, preview_id=preview_id, why=why, held=held_snapshot, apply=apply)
        head = None
        if apply:
            by = getpass.getuser()
            head = apply_preview(edges, shown, by=by, accept_skip=accepted_skip, accept_missing=accept_missing)
        _show_preview(shown, head, as_json=as_json)
        return
    found = plan_rewind(
        edges.stream,
        rewind_target(_where(to), partitions),
        log=edges.log,
        tables=edges.tables,
        who=getpass.getuser(),
        why=why,
        held=held_snapshot,
    )
    found = with_gates(edges, found, why=why, apply=apply)
    if apply:
        apply_rewind(
            edges.stream,
            found,
            accept_skip=accepted_skip,
            accept_missing=accept_missing,
            log=edges.log,
            tables=edges.tables,
        )
    if as_json:
        print(json.dumps(rewind_to_json(found, applied=apply), indent=1, default=str))
    else:
        console_rewind.show_rewind(found, applied=apply)


def _kept(
    edges: DeploymentEdges,
    to: str | None,
    partitions: str | None,
    *,
    preview_id: str | None,
    why: str,
    held: int | None,
    apply: bool,
) -> RewindPreview:
    if preview_id is not None:
        if to or partitions or why or held is not None:
            raise BadInput("--preview says itself where to and why; leave --to, --partitions, --held and --why out")
        kept_preview = edges.preview(preview_id)
        refuse_dead_preview(edges, preview_id, made_ms=kept_preview.made_ms)
        return kept_preview
    if held is not None:
        raise BadInput("--held is looked for anew each time; leave --keep out, look, and do it with --apply")
    if apply:
        raise BadInput("--keep keeps what is shown, to be looked at: do it afterwards with --preview ID --apply")
    return preview_rewind(edges, _where(to), partitions, who=getpass.getuser(), why=why)


def _where(to: str | None) -> str:
    if to is None:
        raise BadInput(f"say where to go (--to), or what was kept (--preview); allowed are {TARGETS}")
    return to


def _show_preview(shown: RewindPreview, head: Head | None, *, as_json: bool) -> None:
    if not as_json:
        console_rewind.show_preview(shown, head)
        return
    found = {"preview_id": shown.preview_id, "applied": head is not None, **PREVIEWS.content(shown)}
    print(json.dumps(found | ({"head": head.sequence} if head is not None else {}), indent=1, default=str))


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
