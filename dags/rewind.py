"""The DAG `rewind`: moves a stream's positions on purpose. A dry run unless its form says otherwise, never scheduled.

Decides nothing: `wavestitch.batch.rewind` does. Its task is never tried again by itself: somebody is looking.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Param, get_current_context, result, task

from wavestitch.batch.request import rewind_target
from wavestitch.batch.rewind import TARGETS, apply_rewind, plan_rewind
from wavestitch.contracts.batch_stages import REWIND
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.plain_text import MAX_SAID, said_by_person
from wavestitch.contracts.stages import explain
from wavestitch.contracts.stream import is_stream_name
from wavestitch.settings import load_settings, stream_names

_STAGES = "\n".join(f"- **{stage.name}**: {stage.does}" for stage in REWIND)
DOC = f"""# Rewind

Moves the positions of a stream, so that the next run reads again what was read before, or leaves out what must not be
read. Going back loses nothing: what is published is recognised and not published again. Undo it with *to*: `previous`.

Trigger it once as it is: the result of the task shows what would move. Then again with **apply**. A run that is under
way at that moment ends *fenced*: it can neither publish nor move the positions back.

Going forward skips data that nobody reads any more: only with **accept skip**, and the stream's table keeps the ranges.

What it does, in this order:

{_STAGES}
"""

log = logging.getLogger(__name__)


@result
@task(execution_timeout=timedelta(minutes=15))
def rewind() -> dict[str, Any]:
    """**Shows what would move**, per partition, and moves it where `apply` was chosen. Never tried again by itself."""
    from wavestitch.batch.deployment import Deployment  # noqa: PLC0415 - loads the clients of Kafka and the tables

    context = get_current_context()
    params = context["params"]
    why = said_by_person(params["why"], "the reason (why)")
    if params["apply"] and not why:
        raise BadInput("apply needs a reason (why): it is recorded with the rewind")
    deployment = Deployment()
    stream, tables = deployment.stream(params["stream"]), deployment.tables(params["stream"])
    who = context["dag_run"].triggering_user_name or "Airflow"
    found = plan_rewind(
        stream,
        rewind_target(params["to"], params["partitions"]),
        log=deployment.log,
        tables=tables,
        who=who,
        why=why,
    )
    for told in explain(found.stages):
        log.info("%s: %s", told.stage, told.does)
    if params["apply"]:
        accepted = {name: params[name] for name in ("accept_skip", "accept_missing")}
        apply_rewind(stream, found, **accepted, log=deployment.log, tables=tables)
    for remark in (*(f"missing: {m.said}" for m in found.missing), *found.remarks):
        log.info(remark)
    if found.settles:
        log.info("settles: %s", found.settles)
    log.info("applied" if params["apply"] else "a dry run: nothing was moved")
    return {
        "applied": params["apply"],
        "generation": found.head.generation,
        "moves": {str(p): list(move) for p, move in found.moves.items()},
        "skipped": [list(r) for r in found.skipped],
        "stages": [f"{told.stage}: {told.does}" for told in explain(found.stages)],
        "missing": [m.what for m in found.missing],
    }


with DAG(
    "rewind",
    description="Move a stream's positions on purpose, to read again or to skip",
    doc_md=DOC,
    schedule=None,
    start_date=datetime(1970, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    dagrun_timeout=timedelta(hours=1),
    tags=["wavestitch", "rewind"],
    default_args={"owner": "wavestitch", "retries": 0},
    params={
        "stream": Param(
            type="string",
            enum=[n for n in stream_names(load_settings()) if is_stream_name(n)] or ["(no stream is declared)"],
            title="Stream",
            description="Whose positions are moved.",
            section="Where to",
        ),
        "to": Param(
            type="string",
            minLength=1,
            title="To",
            description=f"{TARGETS[:1].upper()}{TARGETS[1:]}. The offset named is the next one that is read.",
            section="Where to",
        ),
        "partitions": Param(
            None,
            type=["null", "string"],
            title="Partitions",
            description="Of these partitions only, e.g. 0,2; the others stay where they are.",
            section="Where to",
        ),
        "apply": Param(
            False,
            type="boolean",
            title="Apply",
            description="Move the positions. Off: a dry run that only shows what would move.",
            section="Do it",
        ),
        "accept_skip": Param(
            False,
            type="boolean",
            title="Accept skip",
            description="Accept that the skipped offsets, which the dry run lists, are never read.",
            section="Do it",
        ),
        "accept_missing": Param(
            False,
            type="boolean",
            title="Accept missing",
            description="Accept that the rows that somebody took out of the tables, which the dry run lists, are gone.",
            section="Do it",
        ),
        "why": Param(
            None,
            type=["null", "string"],
            maxLength=MAX_SAID,
            title="Why",
            description="Recorded with the rewind, beside your name. Needed with apply.",
            section="Do it",
        ),
    },
) as dag:
    rewind()
