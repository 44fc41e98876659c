"""Two of Airflow's schedulers on one PostgreSQL, one of which dies with all that it has started.

By `make test-airflow`: its forty tasks are minutes of two processors.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from tests.postgresql import Postgresql
from tests.stack.live_airflow import SECONDS, LiveAirflow, comes_true, recorded, start_live
from tests.stack.test_airflow_backfill import DAY_NS, FIRST_NS
from wavestitch.local.broker import Broker
from wavestitch.local.process import Daemon, session_members, start_daemon, wait_until

SOON = {
    # When a scheduler is taken for dead: by default after half a minute, in which one of a busy machine may be silent.
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "45",
    # How often that is looked at, and its tasks are taken up by another one: by default every five minutes.
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
    "AIRFLOW__CORE__PARALLELISM": "4",
}
OLD = {"limits": {"max_clock_skew": "36500 d", "max_batch_records": 8}, "reading": {"min_slice": 1}}
DAYS = 3
INGESTS = 2
JOBS = "SELECT id FROM job WHERE job_type = 'SchedulerJob' AND state = 'running' ORDER BY id"
AT_WORK = (
    "SELECT task_id FROM task_instance WHERE queued_by_job_id = :job AND state = 'running' "
    "AND task_id IN ('batch.read', 'batch.reassemble', 'batch.publish', 'read', 'reassemble', 'publish')"
)
SCHEDULERS = "SELECT count(*) FROM job WHERE job_type = 'SchedulerJob'"
BY_WHOM = "SELECT queued_by_job_id, count(*) FROM task_instance WHERE queued_by_job_id IS NOT NULL GROUP BY 1"
OF_JOB = "SELECT dag_id, run_id, task_id, map_index FROM task_instance WHERE queued_by_job_id = :job"


@pytest.fixture
def alone(
    broker: Broker,
    postgresql: Postgresql,
    java_home: Path,
    topic_factory: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LiveAirflow]:
    """An Airflow of this test's own."""
    found = start_live(
        tmp_path_factory.mktemp("schedulers"),
        broker,
        java_home=java_home,
        topics=topic_factory,
        database=postgresql.address(postgresql.new_database()),
        more=SOON,
    )
    try:
        yield found
    finally:
        found.stop()


def asked(live: LiveAirflow, question: str, **about: Any) -> list[tuple[Any, ...]]:
    """What Airflow's database says."""
    engine = create_engine(live.environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
    with engine.begin() as connection:
        found = [tuple(row) for row in connection.execute(text(question), about)]
    engine.dispose()
    return found


def die(daemon: Daemon) -> None:
    """As its machine does: the scheduler, its tasks and what they started."""
    for pid in sorted({*session_members(daemon.pid), *_below(daemon.pid)}):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os.waitpid(daemon.pid, 0)


def _below(pid: int) -> list[int]:
    """Its descendants, in whatever session."""
    import psutil  # noqa: PLC0415 - here alone

    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def test_two_schedulers_carry_runs_side_by_side_and_one_that_dies_in_the_middle_doubles_and_loses_nothing(
    alone: LiveAirflow,
) -> None:
    skerry = alone.declare("skerry", OLD, flows=["backfill"])
    holm = alone.declare("holm", OLD, flows=["ingest"])
    skerry.send(*(recorded(f"d{n}", start_ns=FIRST_NS + n * DAY_NS) for n in range(DAYS)))
    holm.send(*(recorded(f"h{n}", start_ns=FIRST_NS + n * DAY_NS) for n in range(DAYS)))
    ((first,),) = asked(alone, JOBS)
    daemon = start_daemon(
        argv=[sys.executable, "-m", "airflow", "scheduler", "--skip-serve-logs"],
        env=alone.surroundings(),
        pid_file=alone.home / "second.pid",
        log=alone.home / "second.log",
    )
    try:
        assert comes_true(lambda: len(asked(alone, JOBS)) > 1), daemon.last_lines()
        (second,) = {job for (job,) in asked(alone, JOBS)} - {first}
        with alone.airflow.login("op") as op:
            op.request(
                "POST",
                "/api/v2/backfills",
                json={
                    "dag_id": "backfill_skerry",
                    "from_date": "2020-01-01T00:00:00Z",
                    "to_date": f"2020-01-0{DAYS}T00:00:00Z",
                    "max_active_runs": DAYS,
                },
            )
            for _ in range(INGESTS):
                op.trigger("ingest_holm")
        middle = wait_until(lambda: bool(asked(alone, AT_WORK, job=second)), seconds=SECONDS, every=0.2)
        at_work = asked(alone, AT_WORK, job=second)
        its_own = asked(alone, OF_JOB, job=second)
        assert middle, daemon.last_lines()
    finally:
        die(daemon)
    print(f"killed while it carried {at_work}, after {len(its_own)} tasks")
    runs = alone.wait_all("backfill_skerry", DAYS, seconds=1200) + alone.wait_all("ingest_holm", INGESTS)
    print("tasks by scheduler:", asked(alone, BY_WHOM))
    assert {run["state"] for run in runs} == {"success"}, runs
    assert asked(alone, JOBS) == [(first,)], "a scheduler ended of itself"
    assert asked(alone, SCHEDULERS) == [(2,)], "a scheduler ended of itself, and another one was started"
    assert skerry.published() == [f"d{n}" for n in range(DAYS)]
    assert holm.published() == [f"h{n}" for n in range(DAYS)]
    assert holm.positions() == holm.ends()
