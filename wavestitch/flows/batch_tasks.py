"""What a stream's DAGs carry a batch through with: a task for each stage, its edges, and when one is tried again.

Wiring only: what a stage does is `wavestitch.batch`. What a task needs is imported in the task, since the files that
import this one are parsed again and again.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule, get_current_context, task

from wavestitch.contracts.batch_stages import BATCH
from wavestitch.contracts.errors import StateUnknown, Terminal, Transient
from wavestitch.contracts.harmless import harmless
from wavestitch.flows.alarms import tell_failure
from wavestitch.flows.assets import asset_outlet, update_asset
from wavestitch.flows.priorities import ASKED_FOR

if TYPE_CHECKING:
    from wavestitch.batch.comparing_edges import VerifyingEdges
    from wavestitch.batch.deployment import Deployment
    from wavestitch.batch.deployment_edges import DeploymentEdges
    from wavestitch.batch.results import Result
    from wavestitch.contracts.stream import Stream

OWNER = "wavestitch"
RETRIES = 2
RETRY_DELAY = timedelta(minutes=1)

ON_ERROR = ExceptionRetryPolicy(
    rules=[
        RetryRule(Terminal, RetryAction.FAIL, reason="trying again cannot help; the message says what does"),
        RetryRule(Transient, RetryAction.RETRY, reason="the same step may succeed later"),
        RetryRule(StateUnknown, RetryAction.RETRY, reason="the next try looks at the table before it does anything"),
    ]
)

READ_DOC = "**Reads units of work** (the slices in its name) from Kafka into the landing, up to exactly their ends."
SHOWN = 200
"""Characters of a task's name, or of a fault."""

log = logging.getLogger(__name__)


def of_a_batch(retry_delay: timedelta) -> dict[str, Any]:
    """The default arguments of tasks that carry a batch."""
    return {
        "owner": OWNER,
        "retries": RETRIES,
        "retry_delay": retry_delay,
        "retry_exponential_backoff": 2.0,
        "max_retry_delay": timedelta(minutes=15),
        "retry_policy": ON_ERROR,
        "on_failure_callback": tell_failure,
        "priority_weight": ASKED_FOR,
    }


# Airflow takes a task's documentation from its docstring, but not that of a mapped one.
@task(doc_md=READ_DOC, map_index_template="{{ slices }}", execution_timeout=timedelta(hours=3))
def read(stream: str, plan_id: str, work: dict[str, Any]) -> dict[str, Any]:
    """Units of work into the landing, one after another."""
    get_current_context()["slices"] = work["slices"][:SHOWN]
    return carried_out("read", stream, plan_id, units=tuple(map(int, work["units"])))


@task(execution_timeout=timedelta(hours=3))
def reassemble(stream: str, plan_id: str, reads: list[dict[str, Any]]) -> dict[str, Any]:
    """**Stitches what is whole**, by Spark, through Airflow's `spark` connection of the settings."""
    from wavestitch.batch.results import Read, result_from_json, together  # noqa: PLC0415

    return carried_out("reassemble", stream, plan_id, together([result_from_json(r, Read) for r in reads]))


@task(execution_timeout=timedelta(hours=1))
def publish(stream: str, plan_id: str, reassembled: dict[str, Any], validated: dict[str, Any]) -> dict[str, Any]:
    """**Decides and commits**, in one atomic snapshot of the stream's table. Until then nothing counts."""
    from wavestitch.batch.results import Reassembled, Validated, result_from_json  # noqa: PLC0415

    made = result_from_json(reassembled, Reassembled)
    done = carried_out("publish", stream, plan_id, made, result_from_json(validated, Validated))
    for remark in done.get("remarks", ()):
        log_remark(remark)
    update_asset(get_current_context(), edges_of(stream), plan_id)
    return done


def publish_of(stream: str) -> Any:
    """The task `publish` of one stream's DAG, which updates the stream's asset."""
    return publish.override(outlets=[asset_outlet(stream)])


def carried_out(stage: str, stream: str, plan_id: str, *so_far: Result, **how: Any) -> dict[str, Any]:
    """The stage of a batch that this task is for. `so_far`: what the stages before it have left."""
    from wavestitch.batch.carry import NOTHING_READ, Carried, How, Said, carry_out  # noqa: PLC0415
    from wavestitch.batch.results import result_to_json  # noqa: PLC0415
    from wavestitch.batch.results_told import said_of_result  # noqa: PLC0415

    (kind,) = (k for k in BATCH if k.name == stage)
    carried = Carried(plan_id, (NOTHING_READ, *so_far))
    done = carry_out(kind, edges_of(stream), carried, How(**how, watcher=Said(log_line))).results[-1]
    log_line(f"{stream}: {said_of_result(done)}")
    return result_to_json(done)


def edges_of(stream: str) -> DeploymentEdges:
    """The edges of this task's process: bounded children read, Airflow's connection leads to what stitches."""
    from consumers.unit_reader import read_units  # noqa: PLC0415
    from wavestitch.batch.deployment import Deployment  # noqa: PLC0415
    from wavestitch.batch.deployment_edges import DeploymentEdges  # noqa: PLC0415
    from wavestitch.flows.addresses import docs_page  # noqa: PLC0415

    deployment, findings = Deployment(), partial(docs_page, stream)
    return DeploymentEdges(deployment, stream, read=read_units, submit=_submits(deployment), findings=findings)


def comparing_edges_of(stream: str, definition: Stream | None = None) -> VerifyingEdges:
    """Of a verification, which stitches by itself. `definition`: in place of the stream's own."""
    from wavestitch.batch.comparing_edges import VerifyingEdges  # noqa: PLC0415
    from wavestitch.batch.deployment import Deployment  # noqa: PLC0415

    return VerifyingEdges(Deployment(), stream, definition=definition)


def _submits(deployment: Deployment) -> Callable[[Path, Path], None]:
    """As the settings say, of a Spark that is there or where they name no connection; else where Airflow's says."""
    spark = deployment.settings.spark
    if spark.remote is not None or not spark.connection:
        from wavestitch.batch.deployment_edges import submit_by_settings  # noqa: PLC0415

        return submit_by_settings(deployment, log_line, on_start=_hear_of_the_end)

    from wavestitch.flows.spark_connection import submit_through_connection  # noqa: PLC0415

    return partial(submit_through_connection, deployment.settings)


def _hear_of_the_end(ended: Callable[[], None]) -> None:
    """Airflow tells the task when it is cleared or out of time; a Spark that stays must hear of it."""
    get_current_context()["task"].on_kill = ended


def log_line(text: str) -> None:
    """What a step says, with what strangers said in it, as one line of the task's log; nothing, where it is blank."""
    if text.strip():
        log.info("%s", harmless(text))


def log_lines(text: str) -> None:
    """The same of a text that was put before somebody."""
    for line in text.splitlines():
        log_line(line)


def log_remark(text: str) -> None:
    """What stops nothing, and somebody should know."""
    log.warning("%s", harmless(text))
