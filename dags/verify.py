"""One DAG a stream to compare its table with Kafka, by its definition or by a draft of another one: `verify_NAME`.
Reads a range again; publishes nothing.

Decides nothing: `wavestitch.batch.verify` and `compare` do, as for the commands of these names. Moves nothing. Where
table and log differ the run fails, and whoever is told of failures is told; what a draft would change fails nothing.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Param, get_current_context, result, task

from wavestitch.contracts.stream import Stream, verify_dag_id
from wavestitch.flows.alarms import late_after, tell_timed_out
from wavestitch.flows.batch_tasks import OWNER, RETRY_DELAY, comparing_edges_of, log_line, of_a_batch
from wavestitch.flows.each_stream import dags_of_streams
from wavestitch.flows.form_fields import text_or_nothing
from wavestitch.flows.pools import ANY_POOLS, Pools
from wavestitch.settings import load_settings

if TYPE_CHECKING:
    from wavestitch.batch.verify_request import VerifyRequest

PRESENT, DRAFT = "present", "draft"
_WHICH = "Which range (one of the first three; none: all that ingests have read and the log still has)"
PARAMS = {
    "interval": text_or_nothing(
        "Interval",
        "The waveforms that start in START/END, e.g. 2026-01-30T00:00:00Z/2026-01-31T00:00:00Z.",
        section=_WHICH,
    ),
    "offsets": text_or_nothing("Offsets", "PARTITION:START-END,…, e.g. 0:100-200,1:0-50.", section=_WHICH),
    "batch": text_or_nothing("Batch", "What this batch read: a plan id, or its beginning.", section=_WHICH),
    "partitions": text_or_nothing("Partitions", "Of these partitions only, e.g. 0,2.", section=_WHICH),
    "definition": Param(
        PRESENT,
        type="string",
        enum=[PRESENT, DRAFT],
        title="By which definition",
        description="present: the one in force; the run fails where the table differs. draft: the one in "
        "streams/drafts/NAME.yaml; the result says what it would change.",
        section="Definition",
    ),
}
SHOWN = 50
"""Waveforms in the log and the result of a task that are not the same."""


@result
@task(execution_timeout=timedelta(hours=12))
def verify(stream: str) -> dict[str, Any]:
    """**Reads the range again, stitches and validates it, and compares it with the table.** Publishes nothing.

    Fails where they differ; its XCom `found` says in what, then, too. By a draft: says what that would change.
    """
    from wavestitch.batch.carry import Said  # noqa: PLC0415 - loads the clients of Kafka and Iceberg
    from wavestitch.batch.verify import shortened, verified_to_json, verify_range  # noqa: PLC0415
    from wavestitch.batch.verify_request import verify_request  # noqa: PLC0415
    from wavestitch.contracts.errors import Altered  # noqa: PLC0415
    from wavestitch.contracts.verification import DIFFERENCES, DIFFERENT  # noqa: PLC0415

    context = get_current_context()
    request = verify_request(context["params"])
    if context["params"]["definition"] == DRAFT:
        return _by_draft(stream, request)
    done = verify_range(comparing_edges_of(stream), request, watcher=Said(log_line))
    few = shortened(done, waveforms=SHOWN, ranges=SHOWN)
    others, found = few.waveforms, verified_to_json(few)
    log_line(found["compared"])
    for one in others:
        log_line(f"{one.waveform_id}: {one.found}, published by {one.plan_id[:16] or 'nobody'}: {one.why}")
    for remark in (*few.misplaced, *few.remarks):
        log_line(remark)
    context["ti"].xcom_push(key="found", value=found)
    if done.exit_code == DIFFERENT:
        first = [f"{one.waveform_id!r}: {one.found}, {one.why}" for one in others if one.found in DIFFERENCES]
        raise Altered(
            f"{found['compared']}; the first is {[*first, *done.misplaced][0]}. "
            f"`wavestitch verify {stream}` with the same range and --into FILE names all of them"
        )
    return found


def _by_draft(stream: str, request: VerifyRequest) -> dict[str, Any]:
    from wavestitch.batch.carry import Said  # noqa: PLC0415
    from wavestitch.batch.compare import compare_definition, compared_to_json, few_changes  # noqa: PLC0415
    from wavestitch.batch.deployment import Deployment  # noqa: PLC0415

    deployment = Deployment()
    edges = comparing_edges_of(stream, definition=deployment.draft(stream))
    done = compare_definition(edges, deployment.stream(stream), request, watcher=Said(log_line))
    few = few_changes(done, waveforms=SHOWN, ranges=SHOWN)
    found = compared_to_json(few)
    for said in (found["compared"], *few.otherwise, *few.remarks):
        log_line(said)
    for one in few.waveforms:
        log_line(f"{one.waveform_id}: {one.change}, published by {one.plan_id[:16] or 'nobody'}: {one.why}")
    return found


def make_verify_dag(stream: Stream, *, retry_delay: timedelta = RETRY_DELAY, pools: Pools = ANY_POOLS) -> DAG:
    """The DAG of one stream."""
    with DAG(
        verify_dag_id(stream.name),
        description=f"Does the table of {stream.name} still say what {stream.topic} said? Publishes nothing",
        doc_md=describe_verify(stream),
        schedule=None,
        start_date=datetime(1970, 1, 1, tzinfo=UTC),
        catchup=False,
        max_active_runs=1,
        dagrun_timeout=timedelta(days=1),
        on_failure_callback=tell_timed_out,
        deadline=late_after(timedelta(hours=12)),
        tags=[OWNER, "verify"],
        params=deepcopy(PARAMS),  # Airflow writes a run's values into them
        default_args=of_a_batch(retry_delay),
    ) as dag:
        verify.override(pool=pools.comparisons)(stream.name)
    return dag


def describe_verify(stream: Stream) -> str:
    """What an operator wants to know before it, as Markdown."""
    return f"""# Verify {stream.name}

Reads a range of the log again, stitches it, asks the gate, and compares each waveform with its row in the table, at one
snapshot, which the result names. **Nothing is published, held or moved**; it may run beside ingests.

**Trigger** it with an interval, offsets or a batch; without, all that ingests have read and the log still has.
The result says how many waveforms are the same, and of the others what they are and why. Where table and log differ the
run fails. What retention has taken is named, and fails nothing: it cannot be compared any more.

**By a draft** (`streams/drafts/{stream.name}.yaml`: other expectations, other limits) the result says what that
definition would change: what it would newly publish, what of the table it would refuse. The draft is not in force, and
the run succeeds.

By hand: `wavestitch verify {stream.name}`, `wavestitch compare {stream.name}`, with `--into FILE` for all of it.
"""


_settings = load_settings()
globals().update(dags_of_streams(_settings, verify_dag_id, partial(make_verify_dag, pools=Pools.of(_settings))))
