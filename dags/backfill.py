"""One DAG a stream to read past intervals: `backfill_NAME`, by Airflow's backfill dialogue or with an interval.

Says what runs when; what runs is `wavestitch.batch.backfill`. It moves no position, and runs beside the ingest. Tasks
of one run follow each other, a batch to its end before the next reads: the disk holds the landing of one.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import contextlib
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, TriggerRule, get_current_context, result, task, task_group

from wavestitch.batch.request import plan_request
from wavestitch.contracts.batch_stages import BATCH
from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.contracts.harmless import for_markdown
from wavestitch.contracts.stream import Stream, backfill_dag_id
from wavestitch.flows.alarms import late_after, tell_timed_out
from wavestitch.flows.backfill_intervals import BackfillIntervals
from wavestitch.flows.batch_tasks import (
    OWNER,
    RETRY_DELAY,
    carried_out,
    edges_of,
    log_line,
    log_remark,
    of_a_batch,
    publish_of,
    reassemble,
)
from wavestitch.flows.broken_dag import make_broken_dag
from wavestitch.flows.each_stream import streams_to_make
from wavestitch.flows.form_fields import text_or_nothing
from wavestitch.flows.gate_form import gate_of_run, gate_params
from wavestitch.flows.gate_question import answered, ask_about, validate_or_ask
from wavestitch.flows.pools import ANY_POOLS, Pools
from wavestitch.flows.turns import await_landing, await_turn
from wavestitch.schedule import schedule_problem
from wavestitch.settings import Settings, declared, load_settings

DAYS = "0 0 * * *"

PARAMS = {
    "interval": text_or_nothing(
        "Interval",
        "Triggered by hand: publish the waveforms that start in START/END, e.g. "
        "2026-01-30T00:00:00Z/2026-01-31T00:00:00Z. A backfill takes it from its dialogue.",
    ),
    **gate_params(parks=False),
}

LATE = timedelta(days=1)


@task(execution_timeout=timedelta(minutes=30))
def plan(stream: str) -> list[str]:
    """**Pins the inputs of all batches** that the interval takes, and names what retention has taken of it.

    Its XComs: `return_value`, the plans' ids; `planned`, the whole.
    """
    from wavestitch.batch.backfill import PLANNED, step_plan_backfill  # noqa: PLC0415

    context = get_current_context()
    run, params = context["dag_run"], context["params"]
    gate_of_run(context)
    interval = (run.data_interval_start, run.data_interval_end) if run.data_interval_start else None
    request = plan_request(
        str(getattr(run.run_type, "value", run.run_type)), interval, {"interval": params["interval"]}
    )
    if request.scope is None:
        raise BadInput("say which interval is meant (START/END), or use Backfill in the Trigger dialogue")
    planned = step_plan_backfill(edges_of(stream), request.scope)
    context["ti"].xcom_push(key="planned", value=PLANNED.content(planned))
    takes = f"the interval takes {planned.offsets} offsets, in {len(planned.plans)} batches; no position moves"
    log_line(f"{stream}: {planned.nothing or takes}")
    for r in planned.lost:
        log_remark(f"{r} is gone from the log, and no ingest has read it")
    for told in planned.stages:
        log_line(f"{told.stage}: {told.does}")
    for remark in planned.remarks:
        log_remark(remark)
    return list(planned.plans)


@task(execution_timeout=timedelta(hours=3))
def read(stream: str, plan_id: str) -> dict[str, Any]:
    """**Reads the batch's offsets** from Kafka into the landing, up to exactly their ends. Waits for its turn: while a
    batch before it is under way it is *up for reschedule*; where that one has stopped it fails, and says which.
    """
    ti = get_current_context()["ti"]
    await_landing(ti)
    try:
        return carried_out("read", stream, plan_id)
    except Transient as error:
        if "before" in error.facts:
            await_turn(ti, error)
        raise


@task(execution_timeout=timedelta(minutes=15))
def commit_offsets(stream: str, plan_id: str) -> dict[str, Any]:
    """**Shows the newest head in the consumer group**, whose positions stay where they are; frees the landing."""
    return carried_out("commit offsets", stream, plan_id)


@task(execution_timeout=timedelta(minutes=30))
def plan_across_cuts(stream: str) -> list[str]:
    """**Plans the batches that read waveforms together** of which no batch above had all chunks; often none."""
    from wavestitch.batch.backfill import PLANNED, step_plan_seams  # noqa: PLC0415

    ti = get_current_context()["ti"]
    seams = step_plan_seams(edges_of(stream), PLANNED.of(ti.xcom_pull(task_ids="plan", key="planned")))
    ti.xcom_push(key="planned", value=PLANNED.content(seams))
    return list(seams.plans)


@result
@task(execution_timeout=timedelta(minutes=15), trigger_rule=TriggerRule.NONE_FAILED)
def report(stream: str) -> dict[str, Any]:
    """**Says what came of it**: published, known before, not whole, and what the log has no more.

    Fails where the interval is empty because its records are gone.
    """
    from wavestitch.batch.backfill import BACKFILLED, PLANNED, step_close_backfill  # noqa: PLC0415

    ti = get_current_context()["ti"]
    planned = PLANNED.of(ti.xcom_pull(task_ids="plan", key="planned"))
    across = ti.xcom_pull(task_ids="plan_across_cuts", key="planned")
    done = step_close_backfill(edges_of(stream), planned, PLANNED.of(across) if across else None)
    log_line(f"{stream}: {done.published} waveforms were published, by {done.batches} batches")
    for said in done.said:
        log_remark(said)
    return BACKFILLED.content(done)


def carry_batches(stream: Stream, group_id: str, plan_ids: Any, *, pools: Pools) -> Any:
    """A task for each stage, for each of these plans. One that waits for an answer at its gate holds no slot; those
    behind it ask for their turn again."""
    # Airflow's backfills run as many at once as their dialogue says: one Spark at a time for all of them.
    reassemble_alone = reassemble.override(pool=pools.spark, max_active_tis_per_dag=1)
    read_of = read.override(pool=pools.readers)
    # By its own rule Airflow would have it wait for the questions of all batches, the later of which wait for it.
    answered_alone = answered.override(trigger_rule=TriggerRule.NONE_FAILED)

    @task_group(group_id=group_id)
    def batch(plan_id: str) -> None:
        name = stream.name
        reassembled = reassemble_alone(name, plan_id, [read_of(name, plan_id)])
        looked = validate_or_ask(name, plan_id, reassembled)
        validated = answered_alone(name, plan_id, reassembled, looked)
        looked >> ask_about(stream, holds=False) >> validated
        publish_of(name)(name, plan_id, reassembled, validated) >> commit_offsets(name, plan_id)

    return batch.expand(plan_id=plan_ids)


def make_backfill_dag(stream: Stream, *, retry_delay: timedelta = RETRY_DELAY, pools: Pools = ANY_POOLS) -> DAG:
    """The DAG of one stream. Raises `BadInput` for intervals that are none."""
    cron = stream.backfill_intervals or stream.schedule or DAYS
    if problem := schedule_problem(cron, key="backfill_intervals"):
        raise BadInput(f"streams/{stream.name}.yaml: {problem}")
    with DAG(
        backfill_dag_id(stream.name),
        description=f"Read past intervals of {stream.topic} again",
        doc_md=describe_backfill(stream, cron),
        schedule=BackfillIntervals(cron, timezone="UTC"),
        start_date=datetime(1970, 1, 1, tzinfo=UTC),
        catchup=False,
        allowed_run_types=["backfill", "manual"],
        max_active_runs=1,
        # With the weights below, of each run one task at a time, that of the batch which has come farthest.
        max_active_tasks=1,
        dagrun_timeout=timedelta(days=2) + timedelta(seconds=stream.gate_timeout),
        on_failure_callback=tell_timed_out,
        deadline=late_after(LATE),
        tags=[OWNER, "backfill"],
        params=deepcopy(PARAMS),  # Airflow writes a run's values into them
        default_args={**of_a_batch(retry_delay), "weight_rule": "upstream"},
    ) as dag:
        batches = carry_batches(stream, "batch", plan(stream.name), pools=pools)
        across = plan_across_cuts(stream.name)
        batches >> across
        carry_batches(stream, "across_cuts", across, pools=pools) >> report(stream.name)
    return dag


def describe_backfill(stream: Stream, cron: str) -> str:
    """What an operator wants to know before a backfill, as Markdown."""
    if stream.backfill_by == "start":
        where = "wherever they can lie in the log, less what earlier batches have read and found to start elsewhere"
    else:
        where = f"where records of the interval's time lie, {stream.search_margin} s earlier and later"
    remarks = "".join(f"\n\n**{for_markdown(remark)}**" for remark in stream.remarks())
    return f"""# Backfill of {stream.name}

Publishes the waveforms that **start** in a past interval, if they are not published yet. Positions and what is held
stay as they are; the ingest may run at the same time.

- **Trigger → Backfill**: one run for each interval of `{cron}` (UTC). Choose *All runs* to read again what was read.
- **Trigger → Single run** with an *interval* of your own.

It looks {where}. An interval above the limits of a batch becomes several batches; waveforms across their cuts are read
together at the end. The result of the task `report` names what was published, what is not whole, and what retention has
taken; where nothing is left because of that, the run fails.{remarks}

Stages of each batch: {" → ".join(s.name for s in BATCH)}. Cancel, clear or repeat it at any time: nothing is published
twice.
"""


def make_dags(settings: Settings) -> list[DAG]:
    """A DAG for each file that declares a stream; of the others `ingest.py` says what is wrong."""
    dags = []
    for name, said in streams_to_make(declared(settings), backfill_dag_id).items():
        if isinstance(said, BadInput):
            continue
        # Whatever it is: the DAG of the ingest shows it, and no other stream's goes with it.
        with contextlib.suppress(Exception):
            try:
                dags.append(make_backfill_dag(said, pools=Pools.of(settings)))
            except BadInput as error:
                dags.append(make_broken_dag(backfill_dag_id(name), error.message))
    return dags


# By keys that no name of this module has: a stream chooses its own.
globals().update({f"DAG {dag.dag_id}": dag for dag in make_dags(load_settings())})
