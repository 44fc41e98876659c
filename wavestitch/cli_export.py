"""`wavestitch export`: published waveforms as files of other formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, cast

import typer

from wavestitch import terminal


def export(
    stream: Annotated[str, typer.Argument(help="A stream declared in streams/NAME.yaml")],
    ids: Annotated[list[str] | None, typer.Argument(help="These waveforms; none: all that are meant")] = None,
    to: Annotated[str, typer.Option(help="mseed, wfdb, edf, hdf5, parquet or npz")] = "npz",
    into: Annotated[Path, typer.Option(help="The folder for the files; what is there stays")] = Path("exported"),
    source: Annotated[str | None, typer.Option(help="Of this source")] = None,
    channel: Annotated[str | None, typer.Option(help="Of this channel")] = None,
    start: Annotated[str | None, typer.Option(help="First sample from (2026-01-31T12:00:00Z)")] = None,
    end: Annotated[str | None, typer.Option(help="… and before")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts")] = False,
) -> None:
    """Write one file a waveform, exactly, or refuse: docs/reading.md has what each format can carry."""
    from wavestitch.reading.exactness import Format  # noqa: PLC0415
    from wavestitch.reading.stream import open_stream  # noqa: PLC0415

    asked = {"source": source, "channel": channel, "start": start, "end": end, "ids": ids}
    files: dict[str, str] = {}
    for one in open_stream(stream).export(into, cast(Format, to), **asked):
        files[one.waveform_id] = str(one.path)
        if not as_json:
            terminal.out.print(f"{one.path}: {one.waveform_id}", markup=False, highlight=False, soft_wrap=True)
    if as_json:
        print(json.dumps({"files": files}, indent=1))
