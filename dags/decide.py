"""One DAG a stream to decide about what is held: `decide_NAME`. Previewed, approved of by somebody, then carried out.

Decides nothing: `wavestitch.batch.held_approval` does, and the stages are those of `wavestitch held`.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param, get_current_context, result, task

from wavestitch.batch.request import Gate
from wavestitch.contracts.batch_stages import HELD
from wavestitch.contracts.held_choice import HeldAction
from wavestitch.contracts.plain_text import MAX_SAID
from wavestitch.contracts.reasons import OF_RECORDS, Reason
from wavestitch.contracts.stream import Stream, decide_dag_id
from wavestitch.flows.alarms import tell_timed_out
from wavestitch.flows.approval import APPROVE, SHOWN, Approval, approval_of
from wavestitch.flows.batch_tasks import (
    OWNER,
    RETRY_DELAY,
    edges_of,
    log_line,
    log_lines,
    of_a_batch,
    publish_of,
    reassemble,
)
from wavestitch.flows.each_stream import dags_of_streams
from wavestitch.flows.form_fields import needed_text, text_or_nothing
from wavestitch.flows.gate_question import answered, ask_about, looked_at
from wavestitch.flows.pending import TellPending
from wavestitch.flows.pools import ANY_POOLS, Pools
from wavestitch.settings import load_settings

WAITS = timedelta(days=1)
REASONS = [r.value for r in Reason if r not in OF_RECORDS]
_WHICH = "Which waveforms (all that is given must be met)"


PARAMS = {
    "action": Param(
        type="string",
        enum=[a.value for a in HeldAction],
        title="Decision",
        description="redrive: decide again by the stream's present definition. accept: publish nevertheless. pick: of "
        "a conflict one copy. discard: give it up for good. restore: undo a discard.",
    ),
    "why": needed_text(
        "Why",
        "Shown to whoever approves of it, and recorded with the decision beside both names.",
        most=MAX_SAID,
    ),
    "copy": text_or_nothing("Copy", "Of pick alone: first, last or PARTITION:OFFSET of the right copy."),
    "everything": Param(
        False,
        type="boolean",
        title="Everything",
        description="More than 1000 waveforms in one decision.",
    ),
    "ids": Param(
        None,
        type=["null", "array"],
        items={"type": "string"},
        title="Waveforms",
        description='Their ids, as JSON: ["w1", "w2"]. None: all that the fields below let through.',
        section=_WHICH,
    ),
    "reasons": Param(
        None,
        type=["null", "array"],
        items={"type": "string", "enum": REASONS},
        examples=REASONS,
        title="Held for",
        description="Only what is held for one of these.",
        section=_WHICH,
    ),
    "source": text_or_nothing("Source", "Only of this source, as the producer said (ws-meta).", section=_WHICH),
    "since": text_or_nothing(
        "Since",
        "Only where the newest chunk was recorded at this time or later (2026-01-31T12:00:00Z).",
        section=_WHICH,
    ),
    "until": text_or_nothing("Until", "… and before this time.", section=_WHICH),
    "batch": text_or_nothing("Batch", "Only what was held by the batch with this plan id.", section=_WHICH),
}
ASK_DOC = (
    "**Waits for somebody** to approve of what `preview` shows, or to reject it; it stands under *Required Actions*. "
    "Where nobody answers for a day, it is rejected."
)


@task(execution_timeout=timedelta(minutes=30), retries=0)
def preview(stream: str) -> str:
    """**Shows what would be decided about**, and keeps that: it is what will be done. Changes nothing.

    Its XComs: `return_value`, the preview's id; `shown`, the text that is put before whoever approves.
    """
    from wavestitch.batch.held_approval import preview_held  # noqa: PLC0415 - loads the clients of Kafka and Iceberg
    from wavestitch.batch.held_request import held_action, selection_of_form  # noqa: PLC0415
    from wavestitch.batch.history import history_of  # noqa: PLC0415
    from wavestitch.flows.held_markdown import describe_decision  # noqa: PLC0415

    context = get_current_context()
    form, edges = context["params"], edges_of(stream)
    found = preview_held(
        edges,
        held_action(form["action"]),
        selection_of_form(history_of(edges), form),
        who=context["dag_run"].triggering_user_name or "",
        why=form["why"],
        pick=(form["copy"] or "").strip(),
        everything=form["everything"],
    )
    shown = describe_decision(found)
    log_lines(shown)
    context["ti"].xcom_push(key=SHOWN, value=shown)
    return found.plan.plan_id


@task(execution_timeout=timedelta(minutes=15))
def keep_plan(stream: str, preview_id: str) -> str:
    """**Begins the batch** that was previewed, with the names of whoever asked and whoever approved."""
    from wavestitch.batch.held_approval import begin_approved  # noqa: PLC0415

    by, _ = approval_of(preview_id, get_current_context()["ti"])
    plan = begin_approved(edges_of(stream), preview_id, by=by)
    log_line(f"{stream}: batch {plan.plan_id} was begun, {plan.choice.note if plan.choice is not None else ''}")
    return plan.plan_id


@task(execution_timeout=timedelta(hours=1))
def validate(stream: str, plan_id: str, reassembled: dict[str, Any]) -> dict[str, Any]:
    """**Asks the gate**, except where somebody accepts what it says. Where it closes, `ask` puts that to somebody."""
    plan = edges_of(stream).plan(plan_id)
    why = plan.choice.why if plan.choice is not None else ""
    gate: Gate = "accept" if plan.accepts else "stop"
    return looked_at(stream, plan_id, reassembled, gate=gate, why=why, asked=True)


def make_decide_dag(stream: Stream, *, retry_delay: timedelta = RETRY_DELAY, pools: Pools = ANY_POOLS) -> DAG:
    """The DAG of one stream."""
    with DAG(
        decide_dag_id(stream.name),
        description=f"Decide about what {stream.name} holds: redrive, accept, pick, discard or restore",
        doc_md=describe_decide(stream),
        schedule=None,
        start_date=datetime(1970, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=WAITS + timedelta(hours=12) + timedelta(seconds=stream.gate_timeout),
        on_failure_callback=tell_timed_out,
        tags=[OWNER, "decide"],
        params=deepcopy(PARAMS),  # Airflow writes a run's values into them
        default_args=of_a_batch(retry_delay),
    ) as dag:
        previewed = preview(stream.name)
        approve = Approval(
            task_id=APPROVE,
            stream=stream.name,
            doc_md=ASK_DOC,
            subject=f"Decide about what {stream.name} holds?",
            defaults=Approval.REJECT,
            notifiers=TellPending(stream.name),
            response_timeout=WAITS,
            execution_timeout=timedelta(minutes=5),
            retries=0,
        )
        plan_id = keep_plan(stream.name, previewed)
        previewed >> approve >> plan_id
        reassembled = reassemble.override(pool=pools.spark)(stream.name, plan_id, [])
        looked = validate(stream.name, plan_id, reassembled)
        validated = answered(stream.name, plan_id, reassembled, looked)
        looked >> ask_about(stream, holds=True) >> validated
        result(publish_of(stream.name))(stream.name, plan_id, reassembled, validated)
    return dag


def describe_decide(stream: Stream) -> str:
    """What an operator wants to know before deciding, as Markdown."""
    stages = "\n".join(f"- **{stage.name}**: {stage.does}" for stage in HELD)
    return f"""# Decide about what {stream.name} holds

What is not published is held, with the reason. The page *Wavestitch* lists it; `wavestitch held {stream.name}` does the
same by hand. Nothing is read from Kafka: retention does not matter.

1. **Trigger** it with a *decision*, *why*, and which waveforms. `preview` shows those it would change, and writes it
   down.
2. **Approve** or reject it under *Required Actions*. Unanswered for a day it is rejected.
3. The tasks after it do exactly what was previewed. An ingest in between does not matter, unless it adds to one of
   these waveforms: that voids the preview; so does a decision after which other chunks of one are held, another
   definition of the stream, or a rewind.
4. **Where the gate closes** on what it would publish, `ask` puts that to somebody: publish it nevertheless, hold it as
   parked, or stop. Unanswered for {stream.gate_timeout} s it is what the stream says (`gate_default`).

**Undo**: a *discard* by *restore*, and the other way round. What was published stays published.

What is done, in this order:

{stages}
"""


_SETTINGS = load_settings()
globals().update(
    dags_of_streams(_SETTINGS, decide_dag_id, lambda stream: make_decide_dag(stream, pools=Pools.of(_SETTINGS)))
)
