"""What Airflow calls where a task has failed for good, or a run is late: somebody is told, by `[notify]`.

A failure that comes again with every run is told once a day. Nothing here raises: Airflow has its own work to finish.
Decides nothing about the run.
"""

from __future__ import annotations

import logging
import time
from datetime import timedelta
from typing import Any

from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from wavestitch.contracts.errors import Fenced, WavestitchError
from wavestitch.contracts.harmless import harmless
from wavestitch.flows.addresses import run_page
from wavestitch.settings import load_settings

FAILED_WITH = "failed_with"
"""XCom of a task that failed for good: its sentence."""

log = logging.getLogger(__name__)


def tell_failure(context: Any) -> None:
    """A task's `on_failure_callback`: after its last try. That a run was overtaken needs nobody."""
    error = context.get("exception")
    if isinstance(error, Fenced):
        return
    try:
        ti = context["ti"]
        # For the page of the run, which says it first: Airflow keeps the sentence in the task's log alone.
        ti.xcom_push(key=FAILED_WITH, value=harmless(said_of(error)))
    except Exception:
        log.exception("the page of the run will not say why it failed")
    try:
        ti = context["ti"]
        _tell_once_a_day(ti.dag_id, ti.task_id, ti.run_id, said_of(error))
    except Exception:  # the task's own error is what counts, and Airflow shows it
        log.exception("nobody was told of this failure")


def tell_late(context: Any) -> None:
    """A run's deadline has passed; it goes on."""
    try:
        from wavestitch.batch.notify import notify  # noqa: PLC0415

        run = dict(context["dag_run"])
        dag_id, run_id = str(run["dag_id"]), str(run["dag_run_id"])
        notify(
            load_settings().notify,
            subject=f"{dag_id}: a run takes longer than it should",
            text=f"Run {run_id} has not ended. It goes on; look at which task it stands: {run_page(dag_id, run_id)}",
            facts={"dag": dag_id, "run": run_id},
        )
    except Exception:  # the run goes on, whatever hinders the telling
        log.exception("nobody was told that this run is late")


def tell_timed_out(context: Any) -> None:
    """A DAG's `on_failure_callback`: Airflow has ended a run at its `dagrun_timeout`, and skipped what was left of it.
    What else ends a run has failed in a task, which tells it."""
    if context.get("reason") != "timed_out":
        return
    try:
        from wavestitch.batch.notify import notify  # noqa: PLC0415

        dag, run_id = context["dag"], str(context["run_id"])
        notify(
            load_settings().notify,
            subject=f"{dag.dag_id}: a run was ended by its time-out",
            text=f"Run {run_id} took longer than {dag.dagrun_timeout}, and Airflow has skipped what was left of it. "
            "What it committed stays; clear the skipped tasks, all at once, to have it go on: "
            f"{run_page(dag.dag_id, run_id)}",
            facts={"dag": dag.dag_id, "run": run_id},
        )
    except Exception:  # the run has ended, whatever hinders the telling
        log.exception("nobody was told that this run was ended by its time-out")


def late_after(length: timedelta) -> list[DeadlineAlert]:
    """A DAG's `deadline`: so long after a run was queued, or cleared."""
    # In seconds, as Airflow takes them, too: whoever clears a run that failed or is under way has it count from then
    # on, and of a `timedelta`, which it keeps as an object, Airflow 3.3.2 cannot (it answers 500, and clears nothing).
    seconds: Any = length.total_seconds()
    return [DeadlineAlert(DeadlineReference.DAGRUN_QUEUED_AT, seconds, SyncCallback(tell_late), name="late")]


def said_of(error: object) -> str:
    """A sentence of ours; of another error its kind, since its text may have anything in it."""
    if isinstance(error, WavestitchError):
        return error.message
    return f"{type(error).__name__}; the task's log says more" if error is not None else "the task's log says why"


def _tell_once_a_day(dag_id: str, task_id: str, run_id: str, sentence: str) -> None:
    from wavestitch.batch.kept_told import keep_failures, kept_failures  # noqa: PLC0415
    from wavestitch.batch.notify import notify  # noqa: PLC0415
    from wavestitch.contracts.quantities import epoch_ms  # noqa: PLC0415

    settings = load_settings()
    kept = kept_failures(settings.landing, dag_id)
    told = kept.telling(task_id, sentence, now=epoch_ms(time.time_ns()))
    if told is None:
        return
    delivered = notify(
        settings.notify,
        subject=f"{dag_id}: {task_id} failed",
        text=f"{sentence}\n{run_page(dag_id, run_id)}",
        facts={"dag": dag_id, "task": task_id, "run": run_id},
    )
    if not delivered:
        return
    try:
        keep_failures(settings.landing, dag_id, told)
    except WavestitchError as error:  # as where Airflow's DAG processor sees the landing to read alone
        log.warning("this failure was told, and is told again with the next run that ends so: %s", error.message)
