"""One DAG a stream to publish a range again by its definition, in the place of what is there: `promote_NAME`. Compared,
approved of by somebody, then done exactly as it was shown.

Decides nothing: `wavestitch.batch.promote` does, and the stages are those of `wavestitch promote`.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from airflow.sdk import DAG, get_current_context, result, task

from wavestitch.contracts.batch_stages import BATCH
from wavestitch.contracts.plain_text import MAX_SAID
from wavestitch.contracts.stream import Stream, promote_dag_id
from wavestitch.flows.alarms import tell_timed_out
from wavestitch.flows.approval import APPROVE, SHOWN, Approval, approval_of
from wavestitch.flows.batch_tasks import (
    OWNER,
    RETRY_DELAY,
    carried_out,
    comparing_edges_of,
    edges_of,
    log_line,
    log_lines,
    of_a_batch,
    publish_of,
    read,
    reassemble,
)
from wavestitch.flows.each_stream import dags_of_streams
from wavestitch.flows.form_fields import needed_text, text_or_nothing
from wavestitch.flows.pending import TellPending
from wavestitch.flows.pools import ANY_POOLS, Pools
from wavestitch.settings import load_settings

WAITS = timedelta(days=1)
_WHICH = "Which range (one of the first three; none: all that ingests have read and the log still has)"
PARAMS = {
    "why": needed_text(
        "Why", "Shown to whoever approves of it, and recorded with it beside both names.", most=MAX_SAID
    ),
    "interval": text_or_nothing(
        "Interval",
        "The waveforms that start in START/END, e.g. 2026-01-30T00:00:00Z/2026-01-31T00:00:00Z.",
        section=_WHICH,
    ),
    "offsets": text_or_nothing("Offsets", "PARTITION:START-END,…, e.g. 0:100-200,1:0-50.", section=_WHICH),
    "batch": text_or_nothing("Batch", "What this batch read: a plan id, or its beginning.", section=_WHICH),
    "partitions": text_or_nothing("Partitions", "Of these partitions only, e.g. 0,2.", section=_WHICH),
}
ASK_DOC = (
    "**Waits for somebody** to approve of what `preview` shows, or to reject it; it stands under *Required Actions*. "
    "Where nobody answers for a day, it is rejected."
)


@task(execution_timeout=timedelta(hours=12), retries=0)
def preview(stream: str) -> str:
    """**Reads the range again and compares it with the table**, and keeps what that would change. Publishes nothing.

    Its XComs: `return_value`, the preview's id; `shown`, the text that is put before whoever approves.
    """
    from wavestitch.batch.carry import Said  # noqa: PLC0415 - loads the clients of Kafka and Iceberg
    from wavestitch.batch.promote import preview_promotion  # noqa: PLC0415
    from wavestitch.batch.verify_request import verify_request  # noqa: PLC0415
    from wavestitch.flows.promote_markdown import describe_promotion  # noqa: PLC0415

    context = get_current_context()
    found = preview_promotion(
        edges_of(stream),
        comparing_edges_of(stream),
        verify_request(context["params"]),
        who=context["dag_run"].triggering_user_name or "",
        why=context["params"]["why"],
        watcher=Said(log_line),
    )
    shown = describe_promotion(found)
    log_lines(shown)
    context["ti"].xcom_push(key=SHOWN, value=shown)
    return found.plan.plan_id


@task(execution_timeout=timedelta(minutes=15))
def keep_plan(stream: str, preview_id: str) -> list[dict[str, Any]]:
    """**Begins the batch** that was shown, with the names of whoever asked and whoever approved.

    Its XComs: `return_value`, the units of work; `plan_id`.
    """
    from wavestitch.batch.held_approval import begin_approved  # noqa: PLC0415
    from wavestitch.batch.results import describe_plan, read_tasks  # noqa: PLC0415

    ti = get_current_context()["ti"]
    by, _ = approval_of(preview_id, ti)
    plan = begin_approved(edges_of(stream), preview_id, by=by)
    log_line(f"{stream}: batch {plan.plan_id} was begun, {plan.choice.note if plan.choice is not None else ''}")
    ti.xcom_push(key="plan_id", value=plan.plan_id)
    return read_tasks(describe_plan(plan))


@task(execution_timeout=timedelta(hours=1))
def validate(stream: str, plan_id: str, reassembled: dict[str, Any]) -> dict[str, Any]:
    """**Asks the gate** about what is to be put in. What it says of the whole was shown, and is accepted."""
    from wavestitch.batch.results import Reassembled, result_from_json  # noqa: PLC0415

    plan = edges_of(stream).plan(plan_id)
    why = plan.choice.why if plan.choice is not None else ""
    made = result_from_json(reassembled, Reassembled)
    return carried_out("validate", stream, plan_id, made, gate="accept", why=why)


@task(execution_timeout=timedelta(minutes=15))
def commit_offsets(stream: str, plan_id: str) -> dict[str, Any]:
    """**Lets the landing go**, and shows the new head in the consumer group. No position moves."""
    return carried_out("commit offsets", stream, plan_id)


def make_promote_dag(stream: Stream, *, retry_delay: timedelta = RETRY_DELAY, pools: Pools = ANY_POOLS) -> DAG:
    """The DAG of one stream."""
    with DAG(
        promote_dag_id(stream.name),
        description=f"Publish a range of {stream.name} again by its definition, in the place of what is there",
        doc_md=describe_promote(stream),
        schedule=None,
        start_date=datetime(1970, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=WAITS + timedelta(days=1),
        on_failure_callback=tell_timed_out,
        tags=[OWNER, "promote"],
        params=deepcopy(PARAMS),  # Airflow writes a run's values into them
        default_args=of_a_batch(retry_delay),
    ) as dag:
        previewed = preview.override(pool=pools.comparisons)(stream.name)
        approve = Approval(
            stream=stream.name,
            task_id=APPROVE,
            doc_md=ASK_DOC,
            subject=f"Replace what {stream.name} has published?",
            defaults=Approval.REJECT,
            notifiers=TellPending(stream.name),
            response_timeout=WAITS,
            execution_timeout=timedelta(minutes=5),
            retries=0,
        )
        planned = keep_plan(stream.name, previewed)
        previewed >> approve >> planned
        plan_id = planned["plan_id"]
        reads = read.override(pool=pools.readers).partial(stream=stream.name, plan_id=plan_id).expand(work=planned)
        reassembled = reassemble.override(pool=pools.spark)(stream.name, plan_id, reads)
        validated = validate(stream.name, plan_id, reassembled)
        published = result(publish_of(stream.name))(stream.name, plan_id, reassembled, validated)
        published >> commit_offsets(stream.name, plan_id)
    return dag


def describe_promote(stream: Stream) -> str:
    """What an operator wants to know before it, as Markdown."""
    stages = "\n".join(f"- **{stage.name}**: {stage.does}" for stage in BATCH)
    return f"""# Publish a range of {stream.name} again

What the definition in `streams/{stream.name}.yaml` makes of a range today is put in the place of what is published. Try
a definition as a draft first: `verify_{stream.name}` with *draft*.

1. **Trigger** it with a range and *why*. `preview` reads the range, says what would be replaced, newly published or
   taken out of the table, and writes that down. Nothing is changed.
2. **Approve** or reject it under *Required Actions*. Unanswered for a day it is rejected.
3. The tasks after it do exactly that, in one commit, or nothing. An ingest in between does not matter, unless it
   changed one of these waveforms; that voids it, and so does a rewind, another definition, or a log that lost some.

What is taken out is held with its reason. Positions stay. **Undo**: `wavestitch undo {stream.name}` puts the rows back.

What is done, in this order:

{stages}
"""


_settings = load_settings()
globals().update(dags_of_streams(_settings, promote_dag_id, partial(make_promote_dag, pools=Pools.of(_settings))))
