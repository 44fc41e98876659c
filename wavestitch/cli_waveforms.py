"""`wavestitch waveforms`, `plot`: what is published. `wavestitch verify-table`: whether it still is what was sent."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from wavestitch import console, terminal
from wavestitch.batch.carry import Silent
from wavestitch.batch.deployment import Deployment
from wavestitch.contracts.errors import Altered, BadInput, Refused


def verify_table(
    stream: Annotated[str, typer.Argument(help="A stream declared in streams/NAME.yaml")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts")] = False,
) -> None:
    """Read every published row, turn it back into what was sent, and compare it with the digests beside it."""
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
        terminal.out.print_data(asdict(found))
    else:
        terminal.out.print(
            f"{found.rows} waveforms of {found.bytes} bytes in {found.files} files: "
            f"{len(found.altered) + found.more} are not what was sent"
            + (f"; {found.deleted} more were deleted by another tool" if found.deleted else "")
        )
        for row in found.altered:
            terminal.out.print(f"  {row.waveform_id}: {row.why} ({row.file})", markup=False, highlight=False)
    if found.altered:
        first = found.altered[0]
        raise Altered(
            f"{len(found.altered) + found.more} waveforms of stream {stream} are not what was sent; the first is "
            f"{first.waveform_id!r} in {first.file}: {first.why}. What is read again is a replay of a row that stands: "
            "put the files back as they were; or delete exactly these rows from the table with another engine, then "
            f"`wavestitch rewind {stream} --to earliest --apply` (or to a time before they came) while the topic still "
            "has their chunks: what was not deleted is recognised",
            file=first.file,
        )


def waveforms(
    stream: Annotated[str, typer.Argument(help="A stream declared in streams/NAME.yaml")],
    ids: Annotated[list[str] | None, typer.Argument(help="These waveforms; none: all that are meant")] = None,
    source: Annotated[str | None, typer.Option(help="Of this source")] = None,
    channel: Annotated[str | None, typer.Option(help="Of this channel")] = None,
    start: Annotated[str | None, typer.Option(help="First sample from (2026-01-31T12:00:00Z)")] = None,
    end: Annotated[str | None, typer.Option(help="… and before")] = None,
    most: Annotated[int, typer.Option(min=1, help="So many at most")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts")] = False,
) -> None:
    """What is published: who, when, how much. Samples are not read."""
    from wavestitch.reading.stream import open_stream  # noqa: PLC0415

    asked = open_stream(stream).listed(source=source, channel=channel, start=start, end=end, ids=ids)
    found = list(islice(asked, most + 1))
    if as_json:
        print(json.dumps({"waveforms": found[:most], "more": len(found) > most}, indent=1, default=str))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("waveform", "source", "channel", "start", "seconds", "Hz", "samples", "units"):
        table.add_column(name, justify="right" if name in ("seconds", "Hz", "samples") else "left")
    for row in found[:most]:
        seconds = row["sample_count"] / row["sampling_rate_hz"]
        said = (row["waveform_id"], row["source"], row["channel"], f"{row['start_time']:%Y-%m-%d %H:%M:%S.%f}")
        rate = repr(row["sampling_rate_hz"]).removesuffix(".0")  # as it is: 359.9999999 is not 360
        numbers = (f"{seconds:g}", rate, str(row["sample_count"]))
        table.add_row(*(terminal.lines([x]) for x in (*said, *numbers, row["units"])))
    terminal.out.print_table(table)
    if len(found) > most:
        terminal.out.print(f"there are more than {most}; say --most, or narrow it down")


def plot(
    stream: Annotated[str, typer.Argument(help="A stream declared in streams/NAME.yaml")],
    waveform: Annotated[str, typer.Argument(help="A published waveform's id")],
    into: Annotated[Path | None, typer.Option(help="A PNG to write; none: here, in dots. What is there stays")] = None,
) -> None:
    """Draw one waveform in its unit, over seconds: here, or as a picture."""
    from wavestitch.reading.stream import open_stream  # noqa: PLC0415

    found = next(open_stream(stream).waveforms(ids=[waveform]), None)
    if found is None:
        raise BadInput(f"stream {stream} has published no waveform {waveform!r}; `wavestitch waveforms {stream}` lists")
    if into is None:
        from wavestitch.reading.sketch import sketch  # noqa: PLC0415

        width = min(max(terminal.out.width - 16, 16), 144)
        terminal.out.print(terminal.lines([repr(found), *sketch(found, width=width)]), soft_wrap=True)
        return
    from wavestitch.reading.drawing import draw  # noqa: PLC0415 - takes a second to import

    draw(found, into)
    terminal.out.print(f"{into}: {len(found)} samples, {found.rate_hz:g} Hz", markup=False, highlight=False)
