"""`wavestitch held …`: what is not published, page by page, one waveform or record in full, and decisions about it.

A decision is shown first, and done with --apply; it reads nothing from Kafka.
"""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from wavestitch import console, console_held
from wavestitch.batch.carry import Silent
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.deployment_edges import DeploymentEdges
from wavestitch.batch.held_approval import begin_approved
from wavestitch.batch.held_decision import HeldPreview, carry_out, plan_held
from wavestitch.batch.held_records import find_records, refuse_without_bytes
from wavestitch.batch.held_request import held_action, held_selection
from wavestitch.batch.held_told import chunk_said, texts_said, waveform_said
from wavestitch.batch.held_waveforms import Selection, select_held
from wavestitch.batch.preview_answer import refuse_dead_preview
from wavestitch.batch.results import Finished, Published
from wavestitch.cli_reject import Reject, reject_kept
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.stages import explain
from wavestitch.write_once import disk_errors


def held(
    stream: Annotated[str, typer.Argument(help="A stream declared in streams/NAME.yaml")],
    action: Annotated[
        str, typer.Argument(help="list, show, record, redrive, accept, pick, discard or restore")
    ] = "list",
    ids: Annotated[
        list[str] | None, typer.Argument(help="Waveforms (record: PARTITION:OFFSET); none: all that is meant")
    ] = None,
    reason: Annotated[list[str] | None, typer.Option(help="Held for this; may be given several times")] = None,
    source: Annotated[str, typer.Option(help="Of this source, as ws-meta says")] = "",
    since: Annotated[str | None, typer.Option(help="Newest record time, from (2026-01-31T12:00:00Z)")] = None,
    until: Annotated[str | None, typer.Option(help="… and before")] = None,
    batch: Annotated[str | None, typer.Option(help="Held by the batch with this plan id")] = None,
    after: Annotated[str, typer.Option(help="list: only ids behind this one")] = "",
    most: Annotated[int, typer.Option(min=1, max=10_000, help="list: so many waveforms a page")] = 50,
    into: Annotated[
        Path | None, typer.Option(help="record: write its key, headers and bytes, as an Arrow file")
    ] = None,
    copy: Annotated[str, typer.Option(help="pick: first, last or PARTITION:OFFSET of the right copy")] = "",
    why: Annotated[str, typer.Option(help="Recorded with the decision")] = "",
    everything: Annotated[bool, typer.Option("--all", help="More than 1000 waveforms in one decision")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Keep what is shown, under an id, so that this is done")] = False,
    preview_id: Annotated[str | None, typer.Option("--preview", help="Exactly what was kept under this id")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; without, a preview")] = False,
    reject: Reject = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts")] = False,
) -> None:
    """What is not published, and why; and what becomes of it: `held STREAM discard ID --why … --apply`."""
    deployment = Deployment()
    deployment.stream(stream)  # only what is declared has tables
    said = (ids, reason, source, since, until, batch, after, into, copy, everything, keep)
    if reject:
        edges, others = DeploymentEdges(deployment, stream), (action != "list", apply, *said)
        reject_kept(edges, preview_id, find=edges.decision, why=why, others=others)
        return
    if preview_id is not None:
        if action != "list" or why or any(said):
            raise BadInput("--preview says itself what, about which and why; leave all but --apply and --json out")
        _approve(DeploymentEdges(deployment, stream), preview_id, apply=apply, js=as_json)
        return
    if keep and apply:
        raise BadInput("--keep keeps what is shown, to be looked at: do it afterwards with --preview ID --apply")
    wanted = held_selection(
        deployment.history(stream),
        ids=ids or (),
        reasons=reason or (),
        source=source,
        since=since,
        until=until,
        batch=batch,
        after=after,
    )
    if action == "list":
        _list(deployment, stream, wanted, most, as_json)
    elif action == "show":
        _show(deployment, stream, wanted, as_json)
    elif action == "record":
        _record(deployment, stream, wanted.ids, into, as_json)
    else:
        meant = held_action(action)
        edges = DeploymentEdges(deployment, stream)
        found = plan_held(edges, meant, wanted, who=getpass.getuser(), why=why, pick=copy, everything=everything)
        if keep:
            edges.keep_decision(found.plan)
        done = _carry(partial(carry_out, edges, found.plan), js=as_json) if apply else None
        _show_decision(found, done, kept=keep, js=as_json)


def _list(deployment: Deployment, stream: str, wanted: Selection, most: int, as_json: bool) -> None:
    tables = deployment.tables(stream)
    head = tables.head()
    counts = dict(head.held.counts) if head is not None and head.held is not None else {}
    page = list(islice(select_held(tables, deployment.stream(stream), wanted), most + 1))
    more = page[most - 1].waveform_id if len(page) > most else None
    if as_json:
        rows = [waveform_said(one) for one in page[:most]]
        _print_json({"chunks": counts, "waveforms": rows, "after": more})
    else:
        console_held.show_list(stream, counts, page[:most], after=more)


def _show(deployment: Deployment, stream: str, wanted: Selection, as_json: bool) -> None:
    if not wanted.ids:
        raise BadInput(f"which waveform? `wavestitch held {stream} show ID`")
    definition = deployment.stream(stream)
    found = list(select_held(deployment.tables(stream), definition, wanted))
    if not found:
        raise BadInput(f"nothing of {wanted.ids[0]!r} is held; `wavestitch held {stream}` lists what is")
    if as_json:
        rows = ((one, list(map(chunk_said, one.held, one.states))) for one in found)
        _print_json([waveform_said(one) | {"metadata": texts_said(one.held), "held": held} for one, held in rows])
        return
    for one in found:
        console_held.show_waveform(one, definition)


def _record(deployment: Deployment, stream: str, places: Sequence[str], into: Path | None, as_json: bool) -> None:
    if not places:
        raise BadInput(f"which record? `wavestitch held {stream} record PARTITION:OFFSET`")
    tables, definition = deployment.tables(stream), deployment.stream(stream)
    found = find_records(tables, deployment.log, definition, places)
    head = tables.head()
    if into is not None and head is not None:
        refuse_without_bytes(found, definition)
        if os.path.lexists(into):
            raise BadInput(f"{into} is there already; name a new file")
        with disk_errors(f"writing {into}"):
            tables.held_payloads(head.held, {r.held.key for r in found}, into)
    if as_json:
        rows = [(chunk_said(r.held, r.held.reason) | {"metadata": texts_said([r.held])}, r) for r in found]
        _print_json([said | {"without_bytes": r.without_bytes, "in_log": r.in_log} for said, r in rows])
    else:
        console_held.show_records(found)


def _print_json(what: Any) -> None:
    print(json.dumps(what, indent=1, default=str))


def _carry(carry: Callable[..., Published | Finished], *, js: bool) -> Published | Finished:
    with nullcontext(Silent()) if js else console.ProgressBars() as watcher:
        return carry(watcher=watcher)


def _show_decision(found: HeldPreview, done: Published | Finished | None, *, kept: bool, js: bool) -> None:
    if not js:
        console_held.show_decision(found, done, kept=kept)
        return
    shown = {k: v for k, v in asdict(found).items() if k != "plan"} | {
        "stages": [asdict(s) for s in explain(found.stages)]
    }
    ids = found.plan.choice.ids if found.plan.choice is not None else ()
    result = None if done is None else asdict(done)
    remarks = list(found.plan.remarks)
    _print_json({"plan": found.plan.plan_id, "ids": ids, **shown, "remarks": remarks, "kept": kept, "done": result})


def _approve(edges: DeploymentEdges, preview_id: str, *, apply: bool, js: bool) -> None:
    """What was kept, here or in Airflow: shown again, or done as it was shown, or not at all."""
    plan, done = edges.decision(preview_id), None
    if plan.held_choice is None:
        raise BadInput(
            f"preview {preview_id[:16]} of stream {edges.name} is of a promotion; look at it with `wavestitch promote "
            f"{edges.name} --preview {preview_id}`"
        )
    if not apply:
        refuse_dead_preview(edges, preview_id, made_ms=plan.clock_ms)
    if apply:
        plan = begin_approved(edges, preview_id, by=getpass.getuser())
        done = _carry(partial(carry_out, edges, plan), js=js)
    if js:
        choice = None if plan.choice is None else asdict(plan.choice)
        _print_json({"preview": preview_id, "choice": choice, "done": None if done is None else asdict(done)})
    else:
        console_held.show_kept(preview_id, plan, done)
