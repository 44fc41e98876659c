"""The DAG `watch`: every five minutes one look at all streams, and whoever must know is told, once. One task for all.

Decides nothing: `wavestitch.batch.watch` does. Moves nothing.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable, task

from wavestitch.contracts.harmless import harmless
from wavestitch.flows.alarms import late_after, tell_failure

DOC = """# Watch

Looks at each stream: how much is unread, how old that is, how long retention leaves it. What is other than was last
told (green, amber, red; something lost; a stream that cannot be looked at twice in a row) is told by the ways of
`[notify]` in `wavestitch.toml`, once, until it changes again. The log of the task `look` says where each stream stands.

It moves nothing. `wavestitch watch` does the same by hand, `wavestitch status` shows it without telling anybody.
"""

log = logging.getLogger(__name__)


@task(execution_timeout=timedelta(minutes=20))
def look() -> list[dict[str, Any]]:
    """**Looks at all streams** side by side, and tells what is new. A stream that cannot be looked at fails nothing."""
    from wavestitch.batch.deployment import Deployment  # noqa: PLC0415 - loads the clients of Kafka and Iceberg
    from wavestitch.batch.watch import watch_streams, watched_line, watched_to_json  # noqa: PLC0415
    from wavestitch.settings import stream_names  # noqa: PLC0415

    deployment = Deployment()
    found = watch_streams(deployment, stream_names(deployment.settings))
    for seen in found:
        log.log(logging.WARNING if seen.worrying else logging.INFO, "%s", harmless(watched_line(seen)))
    return [watched_to_json(seen) for seen in found]


with DAG(
    "watch",
    description="Look at every stream's headroom, and tell somebody before retention takes what is unread",
    doc_md=DOC,
    schedule=CronTriggerTimetable("*/5 * * * *", timezone="UTC"),
    start_date=datetime(1970, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(minutes=30),
    tags=["wavestitch", "watch"],
    deadline=late_after(timedelta(minutes=15)),
    default_args={"owner": "wavestitch", "retries": 0, "on_failure_callback": tell_failure},
) as dag:
    look()
