"""The DAG `watch`: every five minutes one look at all streams. Whoever must know is told, once, and streams that are to
be started by their lag are.

Decides nothing: `wavestitch.batch.watch` and `wavestitch.batch.lag_trigger` do. Moves nothing itself.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable, get_current_context, task

from wavestitch.contracts.stream import ingest_dag_id
from wavestitch.flows.alarms import late_after, tell_failure, tell_timed_out
from wavestitch.flows.batch_tasks import log_line, log_remark
from wavestitch.flows.priorities import WATCH
from wavestitch.flows.start_ingest import StartIngest

DOC = """# Watch

Looks at each stream: how much is unread, how old that is, how long retention leaves it, and whether it is as fresh as
it declares. What is other than was last told (green, amber, red; something lost; later than declared; a stream that
cannot be looked at twice in a row; one that should be started by its lag and cannot be) is told by the ways of
`[notify]` in `wavestitch.toml`, once, until it changes again. The log of the task `look` says where each stream stands.

Then it starts the ingest of each stream that says `trigger: lag`, where something is unread, no run of it is queued or
under way, and its plan would not be refused. The log of the task `behind` says of each why, or why not.

It moves nothing itself. `wavestitch watch` looks and tells by hand, `wavestitch status` shows it without telling
anybody.
"""
START_DOC = "**Starts the ingest** of each stream that `behind` found; skipped where there is none."
UNDER_WAY = ["queued", "running"]


@task(execution_timeout=timedelta(minutes=20))
def look() -> list[dict[str, Any]]:
    """**Looks at all streams** side by side, and tells what is new. A stream that cannot be looked at fails nothing.

    Its XComs: `return_value`, what was seen; `by_lag`, the streams that are to be started by their lag.
    """
    from wavestitch.batch.deployment import Deployment  # noqa: PLC0415 - loads the clients of Kafka and Iceberg
    from wavestitch.batch.watch import watch_streams, watched_line, watched_to_json  # noqa: PLC0415
    from wavestitch.settings import stream_names  # noqa: PLC0415

    deployment = Deployment()
    found = watch_streams(deployment, stream_names(deployment.settings))
    for seen in found:
        (log_remark if seen.worrying else log_line)(watched_line(seen))
    starts = {seen.stream: seen.start for seen in found}
    for name, start in starts.items():
        log_line(f"{name}: {'to be started' if start.now else 'not started'}: {start.why}")
    get_current_context()["ti"].xcom_push(key="by_lag", value=[name for name, start in starts.items() if start.now])
    return [watched_to_json(seen) for seen in found]


@task(execution_timeout=timedelta(minutes=5))
def behind() -> list[str]:
    """**Finds the ingests to be started**: those of streams that are to be, and of which no run is queued or under way.

    A run that is under way looks at the end of the log itself, and what it leaves the next look finds.
    """
    ti = get_current_context()["ti"]
    found = []
    for name in ti.xcom_pull(task_ids="look", key="by_lag") or []:
        dag_id = ingest_dag_id(name)
        if ti.get_dr_count(dag_id=dag_id, states=UNDER_WAY):
            log_line(f"{dag_id}: not started: a run of it is queued or under way")
        else:
            found.append(dag_id)
    return found


with DAG(
    "watch",
    description="Look at every stream, and tell somebody before retention takes what is unread, or where it is late",
    doc_md=DOC,
    schedule=CronTriggerTimetable("*/5 * * * *", timezone="UTC"),
    start_date=datetime(1970, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(minutes=30),
    on_failure_callback=tell_timed_out,
    tags=["wavestitch", "watch"],
    deadline=late_after(timedelta(minutes=15)),
    default_args={
        "owner": "wavestitch",
        "retries": 0,
        "on_failure_callback": tell_failure,
        "priority_weight": WATCH,
    },
) as dag:
    found = behind()
    look() >> found
    StartIngest.partial(task_id="start", doc_md=START_DOC, execution_timeout=timedelta(minutes=5)).expand(
        trigger_dag_id=found
    )
