"""One DAG a stream to move its positions on purpose: `rewind_NAME`. Previewed, approved of by somebody, then done.

Decides nothing: `wavestitch.batch.rewind_preview` does. No task is tried again by itself: somebody is looking.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param, get_current_context, result, task

from wavestitch.batch.rewind_target import TARGETS
from wavestitch.contracts.batch_stages import REWIND
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.plain_text import MAX_SAID, said_by_person
from wavestitch.contracts.stream import Stream, ingest_dag_id, rewind_dag_id
from wavestitch.flows.alarms import tell_failure, tell_timed_out
from wavestitch.flows.approval import APPROVE, SHOWN, Approval, approval_of
from wavestitch.flows.batch_tasks import OWNER, edges_of, log_line, log_lines
from wavestitch.flows.each_stream import dags_of_streams
from wavestitch.flows.form_fields import needed_text, text_or_nothing
from wavestitch.flows.pending import TellPending
from wavestitch.flows.priorities import ASKED_FOR
from wavestitch.settings import load_settings

WAITS = timedelta(days=1)

PARAMS = {
    "to": needed_text(
        "To",
        f"{TARGETS[:1].upper()}{TARGETS[1:]}. The offset named is the next one that is read.",
    ),
    "partitions": text_or_nothing(
        "Partitions",
        "Of these partitions only, e.g. 0,2; the others stay where they are.",
    ),
    "why": needed_text(
        "Why",
        "Shown to whoever approves of it, and recorded with the rewind beside both names.",
        most=MAX_SAID,
    ),
}
ACCEPTED = {
    "accept_skip": Param(
        False,
        type="boolean",
        title="Accept skip",
        description="The offsets that are listed as skipped are never read.",
    ),
    "accept_missing": Param(
        False,
        type="boolean",
        title="Accept missing",
        description="The rows that are listed as missing are gone for good.",
    ),
}
ASK_DOC = (
    "**Waits for somebody** to approve of what `preview` shows, or to reject it; it stands under *Required Actions*. "
    "Where nobody answers for a day, it is rejected."
)


@task(execution_timeout=timedelta(minutes=15))
def preview(stream: str) -> str:
    """**Shows what would move**, per partition, and keeps that: it is what will be done. Moves nothing.

    Its XComs: `return_value`, the preview's id; `shown`, the text that is put before whoever approves.
    """
    from wavestitch.batch.rewind_preview import preview_rewind  # noqa: PLC0415 - loads the clients of Kafka and Iceberg
    from wavestitch.flows.rewind_markdown import describe_preview  # noqa: PLC0415

    context = get_current_context()
    params = context["params"]
    why = said_by_person(params["why"], "the reason (why)")
    if not why:
        raise BadInput("a rewind needs a reason (why): it is recorded with it")
    who = context["dag_run"].triggering_user_name or ""
    found = preview_rewind(edges_of(stream), params["to"], params["partitions"], who=who, why=why)
    shown = describe_preview(found)
    log_lines(shown)
    context["ti"].xcom_push(key=SHOWN, value=shown)
    return found.preview_id


@result
@task(execution_timeout=timedelta(minutes=15))
def apply(stream: str, preview_id: str) -> dict[str, Any]:
    """**Moves the positions** exactly as previewed, if the preview still holds. Never tried again by itself."""
    from wavestitch.batch.rewind_preview import apply_preview  # noqa: PLC0415

    by, ticked = approval_of(preview_id, get_current_context()["ti"])
    edges = edges_of(stream)
    found = edges.preview(preview_id)
    head = apply_preview(edges, found, by=by, **{name: bool(ticked.get(name)) for name in ACCEPTED})
    moved = f"the positions were moved by head {head.sequence} of generation {head.generation}"
    log_line(
        f"{stream}: {moved}; the next batch reads from there. Undo it by this DAG, with undo:{head.sequence} as To"
    )
    return {
        "head": head.sequence,
        "generation": head.generation,
        "positions": {str(p): at.next_offset for p, at in sorted(head.positions.items())},
        "undo": f"undo:{head.sequence}",
        "asked_by": found.asked_by,
        "approved_by": by,
    }


def make_rewind_dag(stream: Stream) -> DAG:
    """The DAG of one stream."""
    with DAG(
        rewind_dag_id(stream.name),
        description=f"Move the positions of {stream.name} on purpose, to read again or to skip",
        doc_md=describe_rewind(stream),
        schedule=None,
        start_date=datetime(1970, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=WAITS + timedelta(hours=2),
        on_failure_callback=tell_timed_out,
        tags=[OWNER, "rewind"],
        params=deepcopy(PARAMS),  # Airflow writes a run's values into them
        default_args={
            "owner": OWNER,
            "retries": 0,
            "on_failure_callback": tell_failure,
            "priority_weight": ASKED_FOR,
        },
    ) as dag:
        previewed = preview(stream.name)
        approve = Approval(
            task_id=APPROVE,
            stream=stream.name,
            doc_md=ASK_DOC,
            subject=f"Rewind {stream.name}?",
            params=ACCEPTED,
            defaults=Approval.REJECT,
            notifiers=TellPending(stream.name),
            response_timeout=WAITS,
            execution_timeout=timedelta(minutes=5),
        )
        previewed >> approve >> apply(stream.name, previewed)
    return dag


def describe_rewind(stream: Stream) -> str:
    """What an operator wants to know before a rewind, as Markdown."""
    stages = "\n".join(f"- **{stage.name}**: {stage.does}" for stage in REWIND)
    other = ", by somebody else than who asked for it" if stream.rewind_approval == "other" else ""
    return f"""# Rewind {stream.name}

Moves the positions of the stream, so that the next run of `{ingest_dag_id(stream.name)}` reads again what was read
before, or leaves out what must not be read. Going back loses nothing: what is published is recognised.

1. **Trigger** it with *to* and *why*. `preview` shows what would move, and writes it down.
2. **Approve** or reject it under *Required Actions*{other}. Unanswered for a day it is rejected.
3. `apply` does exactly what was previewed. An ingest in between does not matter; another rewind voids the preview.

**Undo**: trigger it again with *to* `undo:HEAD`, as the result of `apply` names it; also after later ingests.
Going forward skips data that nobody reads any more: only with *accept skip*, and the table keeps the ranges.

What is done, in this order:

{stages}
"""


globals().update(dags_of_streams(load_settings(), rewind_dag_id, make_rewind_dag))
