"""`wavestitch verify`: does the table still say what Kafka said? Read, stitched, validated again; nothing published."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from wavestitch import console, console_verify, terminal
from wavestitch.batch.carry import Silent
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.verify_request import verify_request
from wavestitch.contracts.errors import BadInput
from wavestitch.write_once import disk_errors, write_first


def verify(
    stream: Annotated[str, typer.Argument(help="A stream declared in streams/NAME.yaml")],
    offsets: Annotated[str | None, typer.Option(help="PARTITION:START-END,…")] = None,
    interval: Annotated[
        str | None, typer.Option(help="START/END (ISO times, UTC): the waveforms that start in it")
    ] = None,
    batch: Annotated[str | None, typer.Option(help="What this batch read: a plan id, or its beginning")] = None,
    partitions: Annotated[str | None, typer.Option(help="Of these partitions only, e.g. 0,2")] = None,
    into: Annotated[Path | None, typer.Option(help="A file for the whole report (JSON). What is there stays")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts")] = False,
) -> None:
    """Read a range again, stitch and validate it, and compare it with the table; publish nothing, move nothing.

    Without a range: all that ingests have read and the log still has. Exit code 0: all that was compared is the same;
    6: something differs, is missing in the table, not found in Kafka, or fails today; 7: nothing differs, but part of
    it is gone from Kafka, or there was nothing to compare.
    """
    from wavestitch.batch.comparing_edges import VerifyingEdges  # noqa: PLC0415 - loads what stitches
    from wavestitch.batch.verify import verified_to_json, verify_range  # noqa: PLC0415

    asked = {"offsets": offsets, "interval": interval, "batch": batch, "partitions": partitions}
    request = verify_request(asked)
    if into is not None and into.exists():
        raise BadInput(f"{into} exists; name another file with --into")
    with nullcontext(Silent()) if as_json else console.ProgressBars() as watcher:
        done = verify_range(VerifyingEdges(Deployment(), stream), request, watcher=watcher)
    found = verified_to_json(done)
    if into is not None:
        with disk_errors("writing the report"):
            write_first(into, json.dumps(found, indent=1) + "\n")
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        console_verify.show_verified(done)
        if into is not None:
            terminal.out.print(f"the whole report is in {into}")
    if found["exit_code"]:
        raise typer.Exit(found["exit_code"])
