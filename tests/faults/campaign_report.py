"""What a campaign comes to: figures as JSON, a table in Markdown, and the claim in one line. Never runs a case itself.

Only a campaign of which every planned case ran clean, every history held and every mutant was caught is `ok`. What is
left of it (histories, schedules) is played within the time that is given, and the next call goes on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.campaign_checks import HISTORIES, check_beside, generated_mutants
from tests.faults.fault_class import FaultClass
from tests.faults.killed_batch import POINTS

POWER_LOSS = "power lost at any moment"
"""Each end of a run of this class is a state of the disk that was recovered from."""
SUMS = ("records", "lost", "duplicated", "altered", "unexplained_gaps")
Runs = Mapping[tuple[str, int], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Report:
    ok: bool
    text: str


def write_report(classes: Sequence[FaultClass], runs: Runs, path: Path, *, checks_until: float | None) -> Report:
    """Write the report of these runs. `checks_until`: the moment until which histories and schedules are played, and
    then the rest is checked that no run is about; None leaves all of that out."""
    table = [_row(c, runs) for c in classes]
    sums = {name: sum(row[name] for row in table) for name in SUMS}
    beside = {} if checks_until is None else check_beside(checks_until)
    planned = all(row["runs"] == row["cases"] and not row["failed_seeds"] for row in table)
    clean = not any(sums[name] for name in SUMS[1:])
    kinds, contained = beside.get("hostile", (0, 0))
    histories, history_records = beside.get("histories", (0, 0))
    sums["records"] += history_records
    mutants, caught = beside.get("mutants", (0, 0))
    schedules = beside.get("schedules", {"played": 0, "violations": 0, "left": ["all"]})
    generated, to_mutate = generated_mutants()
    catalogs = beside.get("catalogs", {})
    found: dict[str, Any] = {
        "ok": planned
        and clean
        and histories >= HISTORIES
        and 0 < mutants == caught
        and 0 < kinds == contained
        and not schedules["violations"]
        and not schedules["left"]
        and not generated["without_a_reason"]
        and bool(catalogs)
        and not any(tests["failed"] for tests in catalogs.values()),
        "histories": histories,
        "schedules": schedules["played"],
        "catalogs": catalogs,
        "fault_runs": sum(row["runs"] for row in table),
        "fault_classes": len(table),
        "power_loss_states": sum(sum(row["ends"].values()) for row in table if row["class"] == POWER_LOSS),
        **sums,
        "mutants": mutants,
        "mutants_caught": caught,
        "generated_mutants": generated,
        "hostile": {"kinds": kinds, "contained": contained},
        "peak_memory_mib": max((row["peak_mib"] for row in table), default=0),
        "longest_run": _longest(table),
        "every_run_ended_by_its_deadline": planned,
        "still_to_run": {
            "cases": sum(row["cases"] - row["runs"] for row in table),
            "histories": max(0, HISTORIES - histories),
            "schedules": schedules["left"],
            "modules_to_mutate": to_mutate,
        },
        "classes": table,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
    return Report(found["ok"], f"{_markdown(table)}\n{_claim(found)}\n")


def _row(fault: FaultClass, runs: Runs) -> dict[str, Any]:
    mine = [runs[fault.name, seed] for seed in range(fault.cases) if (fault.name, seed) in runs]
    ends: dict[str, int] = {}
    for run in mine:
        for end in run.get("ends", ()):
            ends[end] = ends.get(end, 0) + 1
    longest: Mapping[str, Any] = max(mine, key=lambda r: r.get("longest_run", 0.0), default={})
    return {
        "class": fault.name,
        "matrix_rows": list(fault.rows),
        "cases": fault.cases,
        "runs": len(mine),
        "seeds": f"0-{fault.cases - 1}",
        "failed_seeds": [r["seed"] for r in mine if not r["ok"]],
        **{name: sum(r.get(name, 0) for r in mine) for name in SUMS},
        "ends": dict(sorted(ends.items())),
        "peak_mib": max((r.get("peak_mib", 0) for r in mine), default=0),
        "seconds": round(sum(r["seconds"] for r in mine), 1),
        "longest_run": longest.get("longest_run", 0.0),
        "run_deadline": longest.get("run_deadline", 0.0),
    }


def _longest(table: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    row = max(table, key=lambda r: r["longest_run"], default=None)
    return {} if row is None else {k: row[k] for k in ("class", "longest_run", "run_deadline")}


def _markdown(table: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        "| fault | rows | runs | failed | records | lost | twice | altered | gaps | longest run |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for r in table:
        rows = ", ".join(str(n) for n in r["matrix_rows"])
        counts = " | ".join(str(r[n]) for n in SUMS)
        lines.append(
            f"| {r['class']} | {rows} | {r['runs']} of {r['cases']} | {len(r['failed_seeds'])} | {counts} | "
            f"{r['longest_run']:.1f} s of {r['run_deadline']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def _claim(found: Mapping[str, Any]) -> str:
    counts = "/".join(str(found[n]) for n in SUMS[1:])
    kinds, contained = found["hostile"]["kinds"], found["hostile"]["contained"]
    hostile = f"hostile corpus contained ({contained} of {kinds} kinds)"
    ended = found["every_run_ended_by_its_deadline"]
    ends = "every run ended by its deadline" if ended else "not every planned case has run clean"
    return (
        f"{found['fault_runs']} faults of {found['fault_classes']} classes at {len(POINTS)} kill points, "
        f"{found['histories']} histories, {found['records']} records: {counts} lost/twice/altered/unexplained; "
        f"{found['mutants_caught']} of {found['mutants']} mutants caught; {hostile}; "
        f"peak memory {found['peak_memory_mib']} MiB; {ends}"
    )
