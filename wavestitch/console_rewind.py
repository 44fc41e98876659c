"""The kept preview of a rewind on a terminal. Shows; decides nothing."""

from __future__ import annotations

from rich.table import Table

from wavestitch.contracts.position import Head
from wavestitch.contracts.rewind_preview import HEADS, RewindPreview
from wavestitch.terminal import coloured, out


def show_preview(preview: RewindPreview, head: Head | None) -> None:
    """What would happen, then what would be lost, then what to do next. `head`: the one that it made."""
    table = Table(title=f"rewind of {preview.stream}" + ("" if head else " (preview)"), title_justify="left")
    for name in HEADS:
        table.add_column(name, justify="right")
    for row in preview.rows:
        table.add_row(*row.cells)
    out.print(table)
    out.print(preview.reads_again, highlight=False)
    for r in preview.skipped:
        out.print(coloured(("skipped for good:", "red"), f" {r} ({r.size} offsets)"))
    for gone in preview.missing:
        out.print(coloured(("missing:", "red"), f" {gone}"))
    for remark in preview.remarks:
        out.print(remark, highlight=False)
    if preview.settles:
        out.print(f"settles: {preview.settles}", highlight=False)
    command = f"wavestitch rewind {preview.stream}"
    if head is None:
        out.print(f"Nothing was changed. Do exactly this: {command} --preview {preview.preview_id} --apply")
    else:
        out.print(f"head {head.sequence}, generation {head.generation}; undo: {command} --to undo:{head.sequence}")
