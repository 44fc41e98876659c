"""The soak's report: JSON for machines, curves and a short table for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from tests.soak.verdict import MIB, Trend

mpl.use("Agg")
_PANELS = {
    "memory, MiB": ("rss_soak", "rss_broker"),
    "disk, MiB": ("kafka_bytes", "warehouse_bytes", "landing_bytes"),
    "table metadata, MiB": ("metadata_bytes_waveforms", "metadata_bytes_held", "metadata_bytes_batches"),
    "snapshots": ("snapshots_waveforms", "snapshots_held", "snapshots_batches"),
    "files": ("warehouse_files", "landing_files", "receipts"),
    "open handles": ("handles_soak", "handles_broker"),
}


def write_report(folder: Path, report: Mapping[str, Any], samples: Sequence[Mapping[str, float]]) -> Path:
    """`soak-report.json`, `soak-report.png` and `soak-report.md` in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "soak-report.json"
    path.write_text(json.dumps({**report, "samples": list(samples)}, indent=1))
    _draw(folder / "soak-report.png", samples)
    (folder / "soak-report.md").write_text(markdown(report))
    return path


def markdown(report: Mapping[str, Any]) -> str:
    rows = [
        f"| {t['figure']} | {_shown(t['figure'], t['level'])} | {_shown(t['figure'], t['per_hour'])} "
        f"| {_shown(t['figure'], t['grew'])} | {_shown(t['figure'], t['allowed'])} "
        f"| {'yes' if t['bounded'] else '**NO**'} |"
        for t in report["trends"]
    ]
    events = ", ".join(f"{n} {what}" for what, n in sorted(report["events"].items()))
    data = ", ".join(f"{n} {what}" for what, n in report["data"].items())
    return "\n".join(
        [
            f"# Soak: {'passed' if report['passed'] else 'FAILED'}",
            "",
            f"{report['hours']:.2f} h, seed {report['seed']}: {report['waveforms']} waveforms, "
            f"{report['sent_bytes'] / MIB:.0f} MiB. {events}.",
            f"Against the oracle: {data}.",
            "",
            "| figure | level | per hour | grew in the second half | allowed | bounded |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            *[f"- {p}" for p in report["problems"]],
            "",
        ]
    )


def trends_json(trends: Sequence[Trend]) -> list[dict[str, Any]]:
    return [t.to_json() for t in trends]


def _shown(figure: str, value: float) -> str:
    in_bytes = "bytes" in figure or "rss" in figure
    return f"{value / MIB:.2f} MiB" if in_bytes else f"{value:.1f}"


def _draw(path: Path, samples: Sequence[Mapping[str, float]]) -> None:
    figure = Figure(figsize=(12, 9), layout="constrained")
    axes = figure.subplots(3, 2)
    minutes = [s["seconds"] / 60 for s in samples]
    for panel, (title, names) in zip(axes.flat, _PANELS.items(), strict=True):
        for name in names:
            scale = MIB if "MiB" in title else 1
            panel.plot(minutes, [s.get(name, 0) / scale for s in samples], label=name.replace("_", " "))
        panel.set_title(title)
        panel.set_xlabel("minutes")
        panel.set_ylim(bottom=0)
        panel.legend(fontsize="small")
    figure.savefig(path, dpi=90)
