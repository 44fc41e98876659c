"""The table of what one real Airflow did with many streams' runs and a backfill beside them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Found = Mapping[str, Any]
RUNS = (
    "`python -m benchmarks.many_runs`: Kafka, PostgreSQL, a Spark that is there with four slots, eight tasks at once, "
    "all on two cores. Every stream has always more to read, a batch of one small waveform a run; three days of one "
    "more are backfilled meanwhile. Seconds are median / 95 % / most. The cores were all taken, by others, too, so "
    "that most of the waiting is for them."
)


_MANY = 20
"""Of fewer, 95 % is no figure."""


def rows_of_runs(found: Mapping[str, Found]) -> tuple[list[str], list[list[str]]]:
    """`found`: each measurement by its name, as `benchmarks.many_runs` wrote it."""
    return ["", *found], [[name, *(cell(f) for f in found.values())] for name, cell in _ROWS]


def _spread(said: Found) -> str:
    if said.get("tasks", 0) < 2:
        return "none began"
    most_of_them = f"{said['p95']:.1f}" if said["tasks"] >= _MANY else "–"
    return f"{said['median']:.1f} / {most_of_them} / {said['most']:.1f}"


def _waited(kind: str, pool: str) -> Callable[[Found], str]:
    return lambda found: _spread(found[kind]["waited_for_a_slot"].get(pool, {}))


_ROWS: list[tuple[str, Callable[[Found], str]]] = [
    ("running runs that the scheduler looks at in a turn", lambda f: str(f["looked_at"])),
    ("ingests under way, at least", lambda f: str(f["ingests_active_at_least"])),
    ("looked at for, s", lambda f: f"{f['seconds']:.0f}"),
    ("cores that all this took, and others beside it", lambda f: f"{f['cores_ours']}, {f['cores_of_others']}"),
    ("**the backfill's runs that ended**, of three", lambda f: str(f["backfill"]["ended"])),
    ("its tasks that began", lambda f: str(f["backfill"]["tasks"])),
    ("these waited for a slot, s", _waited("backfill", "default_pool")),
    ("these waited for a Spark, s", _waited("backfill", "spark")),
    ("ingests that ended meanwhile", lambda f: str(f["ingests_ended"])),
    ("of one stream, least and most", lambda f: f"{f['of_one_stream']['least']}, {f['of_one_stream']['most']}"),
    ("ingests' tasks waited for a slot, s", _waited("ingests", "default_pool")),
    ("ingests' tasks waited for a Spark, s", _waited("ingests", "spark")),
    ("from a task's end until the scheduler saw the next, s", lambda f: _spread(f["seen_after_the_task_before"])),
    ("from its slot until a task began, s", lambda f: _spread(f["begun_after_it_had_a_slot"])),
]
