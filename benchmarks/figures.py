"""What a measurement says, as values: runs, their medians, ratios, and how they compare with earlier ones. Pure.

Absolute figures drift with the machine; only ratios of runs that took turns on one machine hold. MB are 10^6 bytes of
payload, GiB and MiB are 2^30 and 2^20; CPU seconds are user and system of all processes of a part, the broker apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

MIB = 1 << 20
GIB = 1 << 30
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall and CPU seconds."""

    wall: float
    cpu: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.wall - other.wall, self.cpu - other.cpu)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one contender: what it cost, the payload bytes it got through, peak private MiB per kind of process,
    and what it says of itself."""

    cost: Cost
    size: int
    peak_mib: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


def summarise(runs: Sequence[Run]) -> Json:
    """Medians over the rounds; peaks are the largest that was seen. Raises `ValueError` without a run."""
    if not runs:
        raise ValueError("no run was measured; look for what failed above")
    walls = [r.cost.wall for r in runs]
    wall, size = median(walls), runs[0].size
    kinds = sorted({k for r in runs for k in r.peak_mib})
    return {
        "mb_s": rate(size, wall),
        "wall_s": round(wall, 3),
        "cpu_s": round(median(r.cost.cpu for r in runs), 3),
        "wall_s_rounds": [round(w, 3) for w in walls],
        "bytes": size,
        "peak_private_mib": {k: round(max(r.peak_mib.get(k, 0.0) for r in runs), 1) for k in kinds},
    }


def median_costs(rounds: Sequence[Mapping[str, Cost]]) -> dict[str, Json]:
    """Median wall and CPU seconds of each step over the rounds, in the order of the first round."""
    return {
        name: {
            "wall_s": round(median(r[name].wall for r in rounds if name in r), 3),
            "cpu_s": round(median(r[name].cpu for r in rounds if name in r), 3),
        }
        for name in rounds[0]
    }


def rate(size: int, seconds: float) -> float:
    """MB/s."""
    return round(size / 1e6 / seconds, 1) if seconds > 0 else 0.0


def ratio(found: float | None, base: float | None) -> float | None:
    """`found / base`; None where either is missing or nothing."""
    return None if not found or not base else round(found / base, 3)


def pick(results: Mapping[str, Any], *path: str) -> Any:
    """What stands at the path, or None where a part of it is missing (it failed, or was not asked for)."""
    at: Any = results
    for name in path:
        if not isinstance(at, Mapping) or name not in at:
            return None
        at = at[name]
    return at


def compare(now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """One line for each ratio that both have: what it is, what it was, and by how much it moved."""
    lines = []
    for name, value in now.items():
        was = then.get(name)
        if value is None or not was:
            continue
        lines.append(f"{name:44}{value:9.2f}  committed {was:8.2f}  {100 * (value / was - 1):+6.0f} %")
    return lines
