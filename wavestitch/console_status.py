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
_FRESH = "fresh: late, or not, and the newest batch's p99 of waiting from last chunk to commit, of what is declared"


def show_status(found: Sequence[Mapping[str, Any]]) -> None:
    """A column `fresh` where a stream declares that."""
    fresh = ("fresh",) if any(row.get("freshness") for row in found) else ()
    figures = ("generation", "head", "backlog", "behind", *fresh, "headroom", "open", "quarantined")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("stream")
    for name in figures:
        table.add_column("gen" if name == "generation" else name, justify="right")
    table.add_column("watermark", no_wrap=True)
    for row in found:
        shown = {**row, **_shown_room(row.get("headroom")), "fresh": _shown_freshness(row.get("freshness"))}
        cells = (shown.get(name) for name in (*figures, "watermark"))
        table.add_row(row["stream"], *("" if v is None else str(v) for v in cells))
    out.print(table)
    for line in (*_LEGEND, *([_FRESH] if fresh else [])):
        out.print(line, style="dim")
    for row in found:
        for said in [*([row["problem"]] if "problem" in row else []), *row.get("remarks", ())]:
            out.print(f"{row['stream']}: {said}", highlight=False)


def _shown_freshness(of: Mapping[str, Any] | None) -> str:
    if of is None:
        return ""
    p99 = "" if of["p99_s"] is None else f" p99 {of['p99_s']:.1f} s"
    return f"{'late' if of['late'] else 'yes' if of['known'] else 'not known'}{p99} of {length(of['declared_s'])}"


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
