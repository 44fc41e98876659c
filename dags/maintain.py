"""The DAG `maintain`: lets go, once a day, of what no batch and no reader needs any more. One task a stream.

Decides nothing: `wavestitch.maintain` does. By hand it is a dry run unless its form says otherwise.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable, Param, TriggerRule, get_current_context, task

from wavestitch.contracts.maintenance_stages import STAGES
from wavestitch.contracts.stream import name_in_airflow
from wavestitch.flows.alarms import late_after, tell_failure, tell_timed_out
from wavestitch.flows.batch_tasks import log_line
from wavestitch.settings import load_settings, stream_names

_STAGES = "\n".join(f"- **{stage.name}**: {stage.does}" for stage in STAGES)
DOC = f"""# Maintain

Lets go of what nobody needs any more, stream by stream, in this order:

{_STAGES}

It runs every night and applies. Triggered by hand it is a *dry run*: the result of each task shows what would go.
Choose *apply* to do it. Nothing of a batch that is under way is touched, of a stopped one neither. How long things stay
is set in `wavestitch.toml`, section `[maintain]`. A run at the same moment as a batch is harmless: the batch wins.
A stage that fails does not keep the others from running; the task fails at the end.
"""
DRY_RUN, APPLY = "dry run", "apply"


@task(execution_timeout=timedelta(hours=3), trigger_rule=TriggerRule.ALL_DONE)
def maintain(stream: str) -> dict[str, Any]:
    """**Maintains one stream**: shows what may go, and lets it go on schedule or where `apply` was chosen."""
    from wavestitch.batch.deployment import Deployment  # noqa: PLC0415
    from wavestitch.maintain.run import maintain_stream, raise_failures  # noqa: PLC0415

    class Logged:
        """What happens, in the task's log."""

        def begin(self, step: str, total: int | None = None) -> None:
            log_line(step)

        def say(self, text: str) -> None:
            log_line(text)

        def progress(self, records: int, size: int) -> None: ...

    context = get_current_context()
    run_type = str(getattr(context["dag_run"].run_type, "value", context["dag_run"].run_type))
    apply = run_type == "scheduled" or context["params"]["mode"] == APPLY
    report = maintain_stream(Deployment(), stream, apply=apply, watcher=Logged())
    for action in report.actions:
        log_line(f"{stream}: {action.action}: {action.count} {action.unit} {'went' if apply else 'would go'}")
        for line in action.kept:
            log_line(f"{stream}: {action.action}: kept: {line}")
    raise_failures([report])
    # Without tuples: XCom would wrap them.
    return dict(json.loads(json.dumps(asdict(report))))


with DAG(
    "maintain",
    description="Let go of what nobody needs any more: landing, small files, snapshots, orphans",
    doc_md=DOC,
    schedule=CronTriggerTimetable("17 3 * * *", timezone="UTC"),
    start_date=datetime(1970, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    # One after another: each holds what it puts together in memory. It starts no Spark, and waits for none.
    max_active_tasks=1,
    dagrun_timeout=timedelta(hours=12),
    on_failure_callback=tell_timed_out,
    tags=["wavestitch", "maintain"],
    deadline=late_after(timedelta(hours=6)),
    default_args={"owner": "wavestitch", "retries": 0, "on_failure_callback": tell_failure},
    params={
        "mode": Param(
            DRY_RUN,
            type="string",
            enum=[DRY_RUN, APPLY],
            title="Mode",
            description="dry run: only show what would go. apply: let it go. On schedule it is always applied.",
            section="Do it",
        ),
    },
) as dag:
    for name in stream_names(load_settings()):
        maintain.override(task_id=name_in_airflow(name))(name)
