"""Where streams stand, and what was told of them, as lines for people. Prints; decides nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from wavestitch.contracts.rewind_preview import length
from wavestitch.terminal import out

_LEGEND = (
    "backlog: offsets not yet read; behind: how old the first of them is; headroom: until retention may take it;",
    "open and quarantined in chunks; watermark: how far the stream's data have come",
)


def show_status(found: Sequence[Mapping[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("stream")
    for name in ("gen", "head", "backlog", "behind", "headroom", "open", "quarantined"):
        table.add_column(name, justify="right")
    table.add_column("watermark", no_wrap=True)
    for row in found:
        shown = {**row, **_shown_room(row.get("headroom"))}
        figures = ("generation", "head", "backlog", "behind", "headroom", "open", "quarantined", "watermark")
        table.add_row(row["stream"], *(str(v) if (v := shown.get(name)) is not None else "" for name in figures))
    out.print(table)
    for line in _LEGEND:
        out.print(line, style="dim")
    for row in found:
        for said in [*([row["problem"]] if "problem" in row else []), *row.get("remarks", ())]:
            out.print(f"{row['stream']}: {said}", highlight=False)


def _shown_room(room: Mapping[str, Any] | None) -> dict[str, str]:
    """As a table has it: `behind` and `headroom`."""
    if room is None:
        return {"behind": "", "headroom": ""}
    gone = f"{room['lost']} lost" if room["lost"] else ""
    left = "" if room["left_s"] is None else "any moment" if room["left_s"] <= 0 else length(room["left_s"])
    return {
        "behind": "" if room["behind_s"] is None else length(room["behind_s"]),
        "headroom": " ".join(filter(None, (room["alarm"], gone, left))),
    }
