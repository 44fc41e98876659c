"""Every operation, by the stages that it may have, in their order: what the documentation shows, and nothing else does.

A batch leaves stages of its planning out that there is no need for; nothing else is ever left out or done beside.
"""

from __future__ import annotations

from wavestitch.contracts import batch_stages as stages
from wavestitch.contracts import maintenance_stages
from wavestitch.contracts.stages import Stage


def operations() -> dict[str, tuple[type[Stage], ...]]:
    return {
        "**batch** (`run`, Airflow's `ingest_…`)": (*stages.PLANNING, *stages.BATCH),
        "**rewind** (`rewind`)": stages.REWIND,
        "**decision about what is held** (`held`)": (stages.KeepPlan, *stages.HELD),
        "**promotion** (`promote`)": (stages.KeepPlan, *stages.BATCH),
        "**undo of a promotion** (`undo`)": stages.TAKE_BACK,
        "**maintenance** (`maintain`)": maintenance_stages.STAGES,
    }


def stages_page() -> str:
    """As Markdown: every operation in a line, every stage in a row. The documentation is held against it by a test."""
    found = operations()
    lines = [f"- {operation}: {' → '.join(s.name for s in kinds)}" for operation, kinds in found.items()]
    lines += ["", "| stage | what it does | what it leaves | undo |", "|---|---|---|---|"]
    for stage in dict.fromkeys(s for kinds in found.values() for s in kinds):
        lines.append(f"| {stage.name} | {stage.does} | {', '.join(sorted(stage.effects))} | {stage.undo} |")
    return "\n".join(lines)
