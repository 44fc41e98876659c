"""Stitching where an Airflow connection says: spark-submit by the hook of Airflow's provider.

Decides what of Spark's end a task gets to see: the error that the application left, never an exit code alone. Whatever
ends the step, spark-submit has ended before it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from airflow.sdk import get_current_context

from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.modes import MASK
from wavestitch.settings import Settings


def submit_through_connection(settings: Settings, job: Path, outcome: Path) -> None:
    """Run the stitching app where the Airflow connection says, and raise the error that it left, not an exit code."""
    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook  # noqa: PLC0415
    from airflow.sdk import BaseHook  # noqa: PLC0415
    from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException  # noqa: PLC0415

    from spark_apps import submit  # noqa: PLC0415
    from wavestitch.batch.deployment import Deployment  # noqa: PLC0415

    name = settings.spark.connection
    try:
        master = str(BaseHook.get_connection(name).host or "")
    except AirflowNotFoundException:
        # The hook would go to a YARN cluster that nobody named.
        raise BadInput(
            f"Airflow has no connection {name!r} (settings: spark.connection); make one of type spark"
        ) from None
    submit.error_file(outcome).unlink(missing_ok=True)
    with submit.properties_file(submit.spark_conf(master, Deployment(settings).spark_conf)) as properties:
        hook = SparkSubmitHook(
            conn_id=name,
            name="wavestitch reassemble",
            properties_file=properties.name,
            application_args=["--job", str(job), "--result", str(outcome)],
        )
        # Airflow tells the task when it is cleared or out of time; the application must hear of it.
        get_current_context()["task"].on_kill = hook.on_kill
        try:
            with _outlived(hook):
                hook.submit(
                    str(submit.APPLICATION),
                    env=submit.spark_environment(settings.spark.java_home, also=settings.spark.environment),
                    pass_fds=properties.handles,
                    umask=MASK,
                )
        except AirflowException as error:
            left = submit.left_error(outcome)
            raise left or Transient(f"Spark failed and the application left no error: {str(error)[-600:]}") from error


@contextlib.contextmanager
def _outlived(hook: Any) -> Iterator[None]:
    """Whatever ends the step, spark-submit has ended before it.

    The hook neither waits for what its `on_kill` kills nor closes the pipe, and whatever else interrupts it would leave
    the application running beside the next attempt.
    """
    try:
        yield
    finally:
        if (child := hook._submit_sp) is not None:
            child.kill()
            child.wait()
            child.stdout.close()
