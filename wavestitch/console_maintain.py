"""What a person sees of maintenance: a table of what goes, and what was there before and after. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.table import Table

from wavestitch.console import MIB, show_stages
from wavestitch.contracts.maintenance import Footprint, MaintenanceReport
from wavestitch.terminal import lines, out


def show_maintenance(reports: Sequence[MaintenanceReport]) -> None:
    for report in reports:
        show_stages(report.stages)
        _show_actions(report)
        _show_footprint(report)
    if not reports:
        out.print("no stream is declared")
    elif not all(r.applied for r in reports):
        out.print("Nothing was changed. Add --apply to do it.")


def _show_actions(report: MaintenanceReport) -> None:
    table = Table(title=report.stream + ("" if report.applied else " (dry run)"), title_justify="left")
    table.add_column("action")
    table.add_column("went" if report.applied else "would go", justify="right")
    table.add_column("MiB", justify="right")
    table.add_column("among them")
    for a in report.actions:
        size = "" if a.bytes is None else f"{a.bytes / MIB:.1f}"
        table.add_row(a.action, f"{a.count} {a.unit}", size, lines(a.examples))
    out.print(table)
    for a in report.actions:
        facts = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in a.facts.items() if n)
        for line in [*a.kept, *([facts] if facts else [])]:
            out.print(f"  {a.action}: {line}", highlight=False, style="dim")
    for line in [*report.remarks, *(f"{f.stage} failed: {f.message}" for f in report.failures)]:
        out.print(f"  {line}", highlight=False)


def _show_footprint(report: MaintenanceReport) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("")
    for name in ("before", *(["after"] if report.applied else [])):
        table.add_column(name, justify="right")
    columns = [report.before, report.after] if report.applied else [report.before]
    for title, figure in _FIGURES.items():
        table.add_row(title, *(figure(f) for f in columns))
    out.print(table)


def _tables(found: Footprint) -> str:
    return ", ".join(f"{name} {n}" for name, n in found.snapshots.items()) or "0"


_FIGURES: dict[str, Callable[[Footprint], str]] = {
    "landing": lambda f: f"{f.landing_files} files, {f.landing_bytes / MIB:.1f} MiB",
    "warehouse": lambda f: f"{f.warehouse_files} files, {f.warehouse_bytes / MIB:.1f} MiB",
    "data docs": lambda f: f"{f.docs_bytes / MIB:.1f} MiB",
    "live data files": lambda f: ", ".join(f"{name} {n}" for name, n in f.data_files.items()) or "0",
    "snapshots": _tables,
    "table metadata": lambda f: f"{f.metadata_bytes / 1024:.0f} KiB",
}
