"""`wavestitch verify`: does the table still say what Kafka said? `wavestitch compare`: what would another definition
make of it? Read, stitched, validated again; nothing published.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from wavestitch import console, console_verify, terminal
from wavestitch.batch.carry import Silent
from wavestitch.batch.deployment import Deployment
from wavestitch.batch.verify_request import VerifyRequest, verify_request
from wavestitch.contracts.errors import BadInput, WavestitchError
from wavestitch.contracts.stream import Stream as Definition
from wavestitch.exit_codes import exit_code_of
from wavestitch.stream_files import read_definition
from wavestitch.write_once import disk_errors, write_first

Found = TypeVar("Found")
Stream = Annotated[str, typer.Argument(help="A stream declared in streams/NAME.yaml")]
Offsets = Annotated[str | None, typer.Option(help="PARTITION:START-END,…")]
Interval = Annotated[str | None, typer.Option(help="START/END (ISO times, UTC): the waveforms that start in it")]
Batch = Annotated[str | None, typer.Option(help="What this batch read: a plan id, or its beginning")]
Partitions = Annotated[str | None, typer.Option(help="Of these partitions only, e.g. 0,2")]
Into = Annotated[Path | None, typer.Option(help="A file for the whole report (JSON). What is there stays")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts")]


def verify(
    stream: Stream,
    offsets: Offsets = None,
    interval: Interval = None,
    batch: Batch = None,
    partitions: Partitions = None,
    into: Into = None,
    as_json: AsJson = False,
) -> None:
    """Read a range again, stitch and validate it, and compare it with the table; publish nothing, move nothing.

    Without a range: all that ingests have read and the log still has. Exit code 0: all that was compared is the same;
    6: something differs, is missing in the table, not found in Kafka, lost, or fails today; 7: nothing differs, but
    part of it is gone from Kafka, or there was nothing to compare.
    """
    from wavestitch.batch.verify import verified_to_json, verify_range  # noqa: PLC0415 - loads what stitches

    deployment, request = Deployment(), _asked(into, offsets, interval, batch, partitions)
    done = _looked(deployment, stream, None, as_json, partial(verify_range, request=request))
    _report(verified_to_json(done), into, as_json, show=lambda: console_verify.show_verified(done))


def compare(
    stream: Stream,
    definition: Annotated[
        Path | None, typer.Option(help="The other definition; without, streams/drafts/NAME.yaml")
    ] = None,
    offsets: Offsets = None,
    interval: Interval = None,
    batch: Batch = None,
    partitions: Partitions = None,
    into: Into = None,
    as_json: AsJson = False,
) -> None:
    """Read a range again, stitch and validate it by another definition, and say what that changes; publish nothing.

    Without a range: all that ingests have read and the log still has. Exit code 0: it would change nothing; 6: a
    waveform would differ, be newly published or newly fail; 7: none would, but part of the range is gone from Kafka, or
    there was nothing to compare.
    """
    from wavestitch.batch.compare import compare_definition, compared_to_json  # noqa: PLC0415 - loads what stitches

    deployment, request = Deployment(), _asked(into, offsets, interval, batch, partitions)
    present = deployment.stream(stream)
    other = deployment.draft(stream) if definition is None else read_definition(definition, present.name)
    done = _looked(deployment, stream, other, as_json, partial(compare_definition, present=present, request=request))
    _report(compared_to_json(done), into, as_json, show=lambda: console_verify.show_compared(done))


def _asked(
    into: Path | None, offsets: str | None, interval: str | None, batch: str | None, partitions: str | None
) -> VerifyRequest:
    _refuse_over(into)
    return verify_request({"offsets": offsets, "interval": interval, "batch": batch, "partitions": partitions})


def _looked(
    deployment: Deployment, stream: str, definition: Definition | None, as_json: bool, look: Callable[..., Found]
) -> Found:
    from wavestitch.batch.comparing_edges import VerifyingEdges  # noqa: PLC0415 - loads what stitches

    with nullcontext(Silent()) if as_json else console.ProgressBars() as watcher:
        return look(VerifyingEdges(deployment, stream, definition=definition), watcher=watcher)


def _refuse_over(into: Path | None) -> None:
    """Before the hours that it takes."""
    if into is None:
        return
    try:
        os.lstat(into)
    except FileNotFoundError:
        return
    except OSError as error:
        raise BadInput(f"{into} cannot be written ({error.strerror}); name another file with --into") from error
    raise BadInput(f"{into} exists; name another file with --into")


def _keep(report: dict[str, Any], into: Path) -> None:
    with disk_errors("writing the report"):
        kept = write_first(into, json.dumps(report, indent=1) + "\n")
    if not kept:
        raise BadInput(f"{into} was made by another meanwhile and stays; the report is in no file: name another --into")


def _report(found: dict[str, Any], into: Path | None, as_json: bool, *, show: Callable[[], None]) -> None:
    not_kept: WavestitchError | None = None
    if into is not None:
        try:
            _keep(found, into)
        except WavestitchError as error:  # what took hours to find is shown all the same
            not_kept = error
    why = terminal.try_to_show(lambda: print(json.dumps(found, indent=1)) if as_json else show())
    kept = into is not None and not_kept is None
    if why:
        where = f"the whole report is in {into}" if kept else "keep it with --into"
        terminal.err.print(f"what was found could not be shown ({why}); {where}", highlight=False)
    elif kept and not as_json:
        terminal.try_to_show(lambda: terminal.out.print(f"the whole report is in {into}"))
    if not_kept is not None:
        terminal.err.print(not_kept.message, highlight=False)
    code = found["exit_code"] or (exit_code_of(not_kept) if not_kept is not None else 0)
    if code:
        raise typer.Exit(code)
