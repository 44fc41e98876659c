"""One DAG a stream: `ingest_NAME` for each `streams/NAME.yaml`. Says what runs when; what runs is `wavestitch.batch`.

A stream whose file cannot be read keeps its DAG, which shows why, and takes no other one away. What a task needs is
imported in the task: this file is parsed again and again.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, CronDataIntervalTimetable, get_current_context, result, task
from airflow.sdk.exceptions import AirflowTimetableInvalid

from wavestitch.batch.request import earlier_plan, plan_request
from wavestitch.contracts.batch_stages import BATCH
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.harmless import for_markdown, harmless
from wavestitch.contracts.stream import Stream, backfill_dag_id, ingest_dag_id, rewind_dag_id
from wavestitch.flows.alarms import late_after, tell_timed_out
from wavestitch.flows.batch_tasks import (
    OWNER,
    RETRY_DELAY,
    SHOWN,
    carried_out,
    edges_of,
    log_line,
    log_remark,
    of_a_batch,
    publish_of,
    read,
    reassemble,
)
from wavestitch.flows.broken_dag import make_broken_dag
from wavestitch.flows.each_stream import streams_to_make
from wavestitch.flows.form_fields import text_or_nothing
from wavestitch.flows.gate_form import gate_of_run, gate_params
from wavestitch.flows.gate_question import answered, ask_about, validate_or_ask
from wavestitch.flows.pools import ANY_POOLS, Pools
from wavestitch.flows.priorities import BY_HEADROOM
from wavestitch.schedule import schedule_problem
from wavestitch.settings import Settings, declared, load_settings

START = datetime(1970, 1, 1, tzinfo=UTC)

WHAT = "What to read (nothing: from the stream's positions on)"
PARAMS = {
    "offsets": text_or_nothing(
        "Offsets",
        "Read these only: PARTITION:START-END, separated by commas, e.g. 0:100-200,1:0-50. END itself "
        "is not read. The stream's positions stay where they are.",
        section=WHAT,
    ),
    "partitions": text_or_nothing(
        "Partitions",
        "Go on from the stream's positions in these partitions only, e.g. 0,2; the others stay.",
        section=WHAT,
    ),
    "until": text_or_nothing(
        "Until",
        "Go on from the stream's positions no further than PARTITION:OFFSET, separated by commas. OFFSET "
        "itself is not read; the positions move to there.",
        section=WHAT,
    ),
    "plan_id": text_or_nothing(
        "Earlier plan",
        "Carry this plan through again (32 hex digits): the same inputs, the same outcome.",
        section=WHAT,
    ),
    **gate_params(parks=True),
}

CATCH_UP_DOC = "**Triggers the next run** where the batch's limits left records behind; skipped otherwise."


@task.short_circuit(execution_timeout=timedelta(minutes=15))
def plan(stream: str) -> list[dict[str, Any]]:
    """**Pins the inputs of the batch**: offset ranges, slices, the head it stands on, the stream's definition.

    Its XComs: `return_value`, the units of work; `plan`, the whole. Where there is nothing to do, everything after it
    is skipped and the run succeeds; `nothing` says why.
    """
    from wavestitch.batch.plan import NothingToDo  # noqa: PLC0415
    from wavestitch.batch.results import Finished, read_tasks, result_to_json  # noqa: PLC0415
    from wavestitch.batch.results_told import said_of_result  # noqa: PLC0415
    from wavestitch.batch.steps import step_plan, step_take_up  # noqa: PLC0415

    context = get_current_context()
    run, params = context["dag_run"], context["params"]
    run_type = str(getattr(run.run_type, "value", run.run_type))
    earlier = earlier_plan(run_type, params)
    request = plan_request(run_type, None, params)
    gate_of_run(context, request)
    edges = edges_of(stream)
    planned = step_take_up(edges, earlier) if earlier else step_plan(edges, request)
    log_line(f"{stream}: {said_of_result(planned)}")
    if isinstance(planned, NothingToDo):
        context["ti"].xcom_push(key="nothing", value=planned.why)
        return []
    context["ti"].xcom_push(key="plan", value=result_to_json(planned))
    context["ti"].xcom_push(key="plan_id", value=planned.plan_id)
    if isinstance(planned, Finished):
        return read_tasks(planned)
    for partition, why in planned.why.items():
        log_line(f"partition {partition} starts there: {why}")
    for told in planned.stages:
        log_line(f"{told.stage}: {told.does}")
    for remark in planned.remarks:
        log_remark(remark)
    return read_tasks(planned)


@task.short_circuit(execution_timeout=timedelta(minutes=15))
def commit_offsets(stream: str, plan_id: str) -> bool:
    """**Projects the positions into the consumer group**, last: for Kafka's own tools. Then the landing is freed.

    Its XComs: `committed`, what was done; `return_value`, whether the batch's limits left records behind it.
    """
    from wavestitch.batch.results import Planned, result_from_json  # noqa: PLC0415

    ti = get_current_context()["ti"]
    ti.xcom_push(key="committed", value=carried_out("commit offsets", stream, plan_id))
    planned = result_from_json(ti.xcom_pull(task_ids="plan", key="plan"), Planned)
    return isinstance(planned, Planned) and planned.left > 0


def make_ingest_dag(stream: Stream, *, retry_delay: timedelta = RETRY_DELAY, pools: Pools = ANY_POOLS) -> DAG:
    """The DAG of one stream. Raises `BadInput` for a schedule that is none."""
    with DAG(
        ingest_dag_id(stream.name),
        description=harmless(stream.description) or f"Waveforms of {stream.topic}",
        doc_md=describe_stream(stream),
        schedule=_timetable(stream),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        # Past intervals are read by a DAG of their own, beside this one.
        allowed_run_types=["scheduled", "manual", "operator_triggered", "asset_triggered"],
        dagrun_timeout=timedelta(hours=12) + timedelta(seconds=stream.gate_timeout),
        on_failure_callback=tell_timed_out,
        deadline=late_after(timedelta(seconds=stream.late_after)),
        tags=[OWNER, "ingest"],
        params=deepcopy(PARAMS),  # Airflow writes a run's values into them
        default_args={**of_a_batch(retry_delay), "weight_rule": BY_HEADROOM},
    ) as dag:
        planned = plan(stream.name)
        plan_id = planned["plan_id"]
        reads = read.override(pool=pools.readers).partial(stream=stream.name, plan_id=plan_id).expand(work=planned)
        reassembled = reassemble.override(pool=pools.spark)(stream.name, plan_id, reads)
        looked = validate_or_ask(stream.name, plan_id, reassembled)
        validated = answered(stream.name, plan_id, reassembled, looked)
        looked >> ask_about(stream, holds=True) >> validated
        published = result(publish_of(stream.name))(stream.name, plan_id, reassembled, validated)
        # The next run of this DAG at once, without waiting for its schedule: a lag is worked off batch by batch.
        catch_up = TriggerDagRunOperator(
            task_id="catch_up", trigger_dag_id=dag.dag_id, doc_md=CATCH_UP_DOC, execution_timeout=timedelta(minutes=5)
        )
        published >> commit_offsets(stream.name, plan_id) >> catch_up
    return dag


def describe_stream(stream: Stream) -> str:
    """What an operator wants to know before triggering, as Markdown."""
    limits = stream.limits
    expected = "".join(f"\n- `{e.type}` ({e.severity}): {for_markdown(str(e.kwargs))}" for e in stream.expectations)
    return f"""# {stream.name}

{for_markdown(stream.description)}

Topic `{stream.topic}`, consumer group `{stream.group}`, schedule `{stream.schedule or "none"}` (UTC).

A run goes from the stream's positions to the end of the log: {" → ".join(["plan", *(s.name for s in BATCH)])}.
**Trigger** it to do that now. Name *offsets* to read those instead: that leaves the positions alone, and so does the
DAG `{backfill_dag_id(stream.name)}`, which reads past intervals. To read data again: `{rewind_dag_id(stream.name)}`.
Retry or clear a task to carry the same plan on; clear `plan` for a new one. Nothing is published twice.

A batch has at most {limits.max_batch_records} records and {limits.max_batch_bytes >> 20} MiB, a waveform
{limits.max_waveform_bytes >> 20} MiB. An incomplete waveform waits {stream.allowed_lateness} s.

Expectations:{expected or " none."}
"""


def _timetable(stream: Stream) -> CronDataIntervalTimetable | None:
    if stream.schedule is None:
        return None
    if problem := schedule_problem(stream.schedule):
        raise BadInput(f"streams/{stream.name}.yaml: {problem}")
    timetable = CronDataIntervalTimetable(stream.schedule, timezone="UTC")
    try:
        timetable.validate()
    except AirflowTimetableInvalid as error:
        raise BadInput(f"streams/{stream.name}.yaml: 'schedule' is not valid: {stream.schedule!r}: {error}") from None
    return timetable


def make_dags(settings: Settings) -> list[DAG]:
    """A DAG for each file in the streams' folder, up to `most_streams`, and one that says which are left out. Whatever
    is wrong with one file is the trouble of its own DAG."""
    dags, found = [], declared(settings)
    for name, said in streams_to_make(found, ingest_dag_id).items():
        try:
            if isinstance(said, BadInput):
                raise said
            dags.append(make_ingest_dag(said, pools=Pools.of(settings)))
        except BadInput as error:
            dags.append(make_broken_dag(ingest_dag_id(name), error.message))
        except Exception as error:
            why = harmless(f"{type(error).__name__}: {error}", most=SHOWN)
            dags.append(
                make_broken_dag(
                    ingest_dag_id(name), f"streams/{name}.yaml: its DAG cannot be made: {why}; correct the file"
                )
            )
    if sentence := found.sentence:
        dags.append(make_broken_dag("streams_left_out", sentence))
    return dags


# By keys that no name of this module has: a stream chooses its own.
globals().update({f"DAG {dag.dag_id}": dag for dag in make_dags(load_settings())})
