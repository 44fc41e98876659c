"""A rewind on a terminal: what would move, its kept preview, and what it loses. Shows; decides nothing."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from wavestitch.batch.rewind import Rewind
from wavestitch.console import show_stages
from wavestitch.contracts.accepted_skip import accepting
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.position import Head
from wavestitch.contracts.rewind_preview import HEADS, RewindPreview
from wavestitch.contracts.stages import explain
from wavestitch.terminal import coloured, out


def show_rewind(rewind: Rewind, *, applied: bool) -> None:
    table = Table(title="rewind" + ("" if applied else " (dry run)"), title_justify="left")
    for name in ("partition", "from", "to", "offsets to read again"):
        table.add_column(name, justify="right")
    for p, (was, to) in sorted(rewind.moves.items()):
        table.add_row(str(p), "-" if was is None else str(was), str(to), str(max(0, (was or 0) - to)))
    out.print(table)
    missing = [gone.said for gone in rewind.missing]
    _show_losses(rewind.skipped, missing, remarks=rewind.remarks, settles=rewind.settles)
    show_stages(explain(rewind.stages))
    if not applied:
        out.print(f"Nothing was changed. Add{accepting(rewind.skipped)} --apply to do it.", highlight=False)


def show_preview(preview: RewindPreview, head: Head | None) -> None:
    """What would happen, then what would be lost, then what to do next. `head`: the one that it made."""
    table = Table(title=f"rewind of {preview.stream}" + ("" if head else " (preview)"), title_justify="left")
    for name in HEADS:
        table.add_column(name, justify="right")
    for row in preview.rows:
        table.add_row(*row.cells)
    out.print(table)
    out.print(preview.reads_again, highlight=False)
    _show_losses(preview.skipped, preview.missing, remarks=preview.remarks, settles=preview.settles)
    command = f"wavestitch rewind {preview.stream}"
    if head is None:
        accepted = accepting(preview.skipped)
        out.print(f"Nothing was changed. Do exactly this: {command} --preview {preview.preview_id}{accepted} --apply")
    else:
        out.print(f"head {head.sequence}, generation {head.generation}; undo: {command} --to undo:{head.sequence}")


def _show_losses(
    skipped: Iterable[OffsetRange], missing: Iterable[str], *, remarks: Iterable[str], settles: str | None
) -> None:
    for r in skipped:
        out.print(coloured(("skipped for good:", "red"), f" {r} ({r.size} offsets)"))
    for gone in missing:
        out.print(coloured(("missing:", "red"), f" {gone}"))
    for remark in remarks:
        out.print(remark, highlight=False)
    if settles:
        out.print(f"settles: {settles}", highlight=False)
