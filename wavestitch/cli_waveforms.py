"""`wavestitch verify-table`: whether what is published is still what was sent."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict
from typing import Annotated

import typer

from wavestitch import console, terminal
from wavestitch.batch.carry import Silent
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.errors import Altered, Refused


def verify_table(
    stream: Annotated[str, typer.Argument(help="A stream declared in streams/NAME.yaml")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts")] = False,
) -> None:
    """Read every published sample, turn it back into what was sent, and compare it with the digest beside it."""
    from wavestitch.tables.maintenance.verify_waveforms import verify_waveforms  # noqa: PLC0415

    deployment = Deployment()
    deployment.stream(stream)  # only what is declared has tables
    table = deployment.tables(stream).waveforms()
    if table is None:
        raise Refused(f"stream {stream} has no table yet: nothing was published")
    with nullcontext(Silent()) if as_json else console.ProgressBars() as watcher:
        watcher.begin("verify")
        found = verify_waveforms(table, progress=watcher.progress)
    if as_json:
        terminal.out.print_json(json.dumps(asdict(found)))
    else:
        terminal.out.print(
            f"{found.rows} waveforms of {found.bytes} bytes in {found.files} files: "
            f"{len(found.altered) + found.more} are not what was sent"
        )
        for row in found.altered:
            terminal.out.print(f"  {row.waveform_id}: {row.why} ({row.file})", markup=False, highlight=False)
    if found.altered:
        first = found.altered[0]
        raise Altered(
            f"{len(found.altered) + found.more} waveforms of stream {stream} are not what was sent; the first is "
            f"{first.waveform_id!r} in {first.file}: {first.why}. Set the table back to a snapshot before that "
            "file came, or rewind over what the topic still has",
            file=first.file,
        )
