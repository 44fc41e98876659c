"""What Airflow wrote down of its runs and tasks, and how long each of them waited, and for whom. Changes nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

import psycopg

ENDED = ("success", "failed")
INGEST = "ingest_"


@dataclass(frozen=True, slots=True)
class Run:
    """Times in seconds since the epoch; `end` is None while it is queued or under way."""

    dag_id: str
    run_id: str
    state: str
    queued: float
    start: float | None
    end: float | None

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    def active_at(self, at: float) -> bool:
        """Whether it was queued or under way."""
        return self.queued <= at and (self.end is None or at < self.end)


@dataclass(frozen=True, slots=True)
class Task:
    """One that began. `scheduled`: when the scheduler saw that it may; `queued`: when it had a slot of its pool."""

    dag_id: str
    run_id: str
    pool: str
    scheduled: float
    queued: float
    start: float
    end: float | None


@dataclass(frozen=True, slots=True)
class Records:
    runs: Sequence[Run]
    tasks: Sequence[Task]


def read_records(database: str) -> Records:
    """Of Airflow's metadata database, a PostgreSQL."""
    when = "extract(epoch FROM {})::float8"
    runs = ", ".join(when.format(name) for name in ("queued_at", "start_date", "end_date"))
    tasks = ", ".join(when.format(name) for name in ("scheduled_dttm", "queued_dttm", "start_date", "end_date"))
    began = "scheduled_dttm IS NOT NULL AND queued_dttm IS NOT NULL AND start_date >= queued_dttm"
    with psycopg.connect(database) as asked:
        return Records(
            [Run(*row) for row in asked.execute(f"SELECT dag_id, run_id, state, {runs} FROM dag_run")],  # noqa: S608
            [
                Task(*row)
                for row in asked.execute(f"SELECT dag_id, run_id, pool, {tasks} FROM task_instance WHERE {began}")  # noqa: S608
            ],
        )


def summary(records: Records, *, since: float, until: float, backfilled: str) -> dict[str, Any]:
    """Of the runs and tasks between two moments, in seconds. `backfilled`: the DAG beside the ingests."""
    past = [r for r in records.runs if r.dag_id == backfilled]
    until = max((r.end for r in past), default=until) if past and all(r.end for r in past) else until  # type: ignore[type-var,assignment]
    ingests = [r for r in records.runs if r.dag_id.startswith(INGEST)]
    moments = [since, *(r.end for r in ingests if r.end is not None and since < r.end < until)]
    active = [sum(r.active_at(at) for r in ingests) for at in moments]
    ended = Counter(r.dag_id for r in ingests if r.end is not None and since <= r.end < until)
    each = [ended[dag_id] for dag_id in {r.dag_id for r in ingests}]
    tasks = [t for t in records.tasks if since <= t.scheduled < until]
    return {
        "seconds": round(until - since, 1),
        "ingests_active_at_least": min(active),
        "ingests_ended": sum(each),
        "of_one_stream": {"least": min(each), "most": max(each)},
        "backfill": {
            "runs": len(past),
            "ended": sum(r.state == "success" for r in past),
            "tasks": sum(t.dag_id == backfilled for t in tasks),
            "waited_for_a_slot": by_pool(t for t in tasks if t.dag_id == backfilled),
        },
        "ingests": {"waited_for_a_slot": by_pool(t for t in tasks if t.dag_id.startswith(INGEST))},
        "seen_after_the_task_before": spread(_noticed(records.tasks, tasks)),
        "begun_after_it_had_a_slot": spread(t.start - t.queued for t in tasks),
    }


def by_pool(tasks: Iterable[Task]) -> dict[str, Any]:
    waits = defaultdict(list)
    for t in tasks:
        waits[t.pool].append(t.queued - t.scheduled)
    return {pool: spread(found) for pool, found in sorted(waits.items())}


def spread(seconds: Iterable[float]) -> dict[str, float]:
    found = sorted(seconds)
    if len(found) < 2:
        return {"tasks": len(found), **({"median": round(found[0], 2)} if found else {})}
    return {
        "tasks": len(found),
        "median": round(median(found), 2),
        "p95": round(quantiles(found, n=20, method="inclusive")[-1], 2),
        "most": round(found[-1], 2),
    }


def _noticed(all_: Sequence[Task], tasks: Sequence[Task]) -> list[float]:
    """Seconds from the end of the task before it in its run until it was scheduled: the scheduler's own lag."""
    ends = defaultdict(list)
    for t in all_:
        if t.end is not None:
            ends[t.dag_id, t.run_id].append(t.end)
    found = []
    for t in tasks:
        before = [end for end in ends[t.dag_id, t.run_id] if end <= t.scheduled]
        if before:
            found.append(t.scheduled - max(before))
    return found
