"""What a campaign comes to: figures as JSON, a table in Markdown, and the claim in one line. Never runs a case itself.

Only a campaign of which every planned case ran clean, every history held and every mutant was caught is `ok`. What is
left of it (histories, schedules) is played within the time that is given, and the next call goes on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.campaign_account import ClassAccount
from tests.faults.campaign_checks import (
    CHECKS,
    HISTORIES,
    check_beside,
    generated_mutants,
    histories_so_far,
    schedules_so_far,
    soak_left,
)
from tests.faults.fault_class import FaultClass
from tests.faults.killed_batch import POINTS
from tests.faults.power_loss import POWER_LOSS
from tests.histories.tracing import STEPS

SUMS = ("records", "lost", "duplicated", "altered", "unexplained_gaps")


@dataclass(frozen=True, slots=True)
class Report:
    ok: bool
    text: str


def write_report(
    classes: Sequence[FaultClass], known: Mapping[str, ClassAccount], path: Path, *, checks_until: float | None
) -> Report:
    """Write the report of these runs. `checks_until`: the moment until which histories and schedules are played, and
    then the rest is checked that no run is about; None leaves all of that out."""
    table = [_row(c, known) for c in classes]
    sums = {name: sum(row[name] for row in table) for name in SUMS}
    beside = {} if checks_until is None else check_beside(checks_until)
    steps = sum((Counter(known[c.name].steps) for c in classes if c.name in known), Counter[str]())
    planned = all(row["runs"] == row["cases"] and not row["failed_seeds"] for row in table)
    clean = not any(sums[name] for name in SUMS[1:])
    kinds, contained = beside.get("hostile", (0, 0))
    histories, history_records = beside.get("histories") or histories_so_far()
    sums["records"] += history_records
    mutants, caught = beside.get("mutants", (0, 0))
    schedules = beside.get("schedules") or schedules_so_far()
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
        "model": {"steps": dict(sorted(steps.items())), "not_taken": sorted(set(STEPS) - steps.keys())},
        "peak_memory_mib": max((row["peak_mib"] for row in table), default=0),
        "longest_run": _longest(table),
        "every_run_ended_by_its_deadline": planned,
        "still_to_run": {
            "cases": sum(row["cases"] - row["runs"] for row in table),
            "histories": max(0, HISTORIES - histories),
            "schedules": schedules["left"],
            "schedules_of_the_whole": schedules["left_of_the_whole"],
            "modules_to_mutate": to_mutate,
            "soak_hours": soak_left(),
            "checks": [name for name in CHECKS if name not in beside],
        },
        "classes": table,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n")
    return Report(
        found["ok"],
        f"{_markdown(table)}\n{_claim(found)}\n{_model(found['model'])}\n{_still_to_run(found['still_to_run'])}\n",
    )


def _row(fault: FaultClass, known: Mapping[str, ClassAccount]) -> dict[str, Any]:
    mine = known.get(fault.name, ClassAccount())
    planned = range(fault.cases)
    failed = [run for seed, run in sorted(mine.failed.items()) if int(seed) in planned]
    return {
        "class": fault.name,
        "matrix_rows": list(fault.rows),
        "cases": fault.cases,
        "runs": len(mine.done & set(planned)),
        "seeds": f"0-{fault.cases - 1}",
        "failed_seeds": sorted(run["seed"] for run in failed),
        # What ran clean lost nothing, and altered nothing.
        **{name: sum(run.get(name, 0) for run in failed) for name in SUMS},
        "records": mine.records + sum(run.get("records", 0) for run in failed),
        "ends": mine.ends,
        "peak_mib": max([mine.peak_mib, *(run.get("peak_mib", 0) for run in failed)]),
        "seconds": round(mine.seconds + sum(run["seconds"] for run in failed), 1),
        "longest_run": mine.longest_run,
        "run_deadline": mine.run_deadline,
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
        longest = f"{r['longest_run']:.1f} s of {r['run_deadline']:.0f}" if r["run_deadline"] else ""
        lines.append(
            f"| {r['class']} | {rows} | {r['runs']} of {r['cases']} | {len(r['failed_seeds'])} | {counts} | {longest} |"
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


def _model(said: Mapping[str, Any]) -> str:
    """Every real run is a way through the model, or its case fails."""
    missing = said["not_taken"]
    took = f"real runs took {len(STEPS) - len(missing)} of the {len(STEPS)} steps of the protocol's model"
    return f"{took}; never: {', '.join(missing)}" if missing else took


def _still_to_run(left: Mapping[str, Any]) -> str:
    counted = {name.replace("_", " "): len(n) if isinstance(n, list) else n for name, n in left.items()}
    return "still to be run on the present code: " + ", ".join(f"{n:g} {name}" for name, n in counted.items())
