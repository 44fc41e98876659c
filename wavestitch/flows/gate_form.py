"""The fields of a form that say what becomes of a batch at a closed gate, and what a run says in them."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

from wavestitch.batch.plan_request import PlanRequest
from wavestitch.batch.request import GATES, Gate, check_gate
from wavestitch.contracts.plain_text import MAX_SAID, name_of_person
from wavestitch.flows.form_fields import text_or_nothing

_SECTION = "Quality gate"

ASK = "ask"


def gate_params(*, parks: bool) -> dict[str, Param]:
    """`parks`: of an ingest's DAG. A backfill holds nothing, so that there is nothing to park."""
    park = " park: hold the whole batch, so that the stream goes on; not for named offsets." if parks else ""
    return {
        "gate": Param(
            ASK,
            type="string",
            enum=[ASK, *(g for g in GATES if parks or g != "park")],
            title="Where an expectation about the whole batch fails",
            description="ask: somebody is asked, under Required Actions. stop: nothing is published and the run fails. "
            f"accept: publish nevertheless.{park}",
            section=_SECTION,
        ),
        "why": text_or_nothing(
            "Why",
            f"Recorded with the batch, beside your name. Needed with accept{' and park' if parks else ''}.",
            section=_SECTION,
            most=MAX_SAID,
        ),
    }


def asks(context: Any) -> bool:
    """Whether somebody is to be asked about a closed gate."""
    return bool(context["params"]["gate"] == ASK)


def gate_of_run(context: Any, request: PlanRequest | None = None) -> tuple[Gate, str]:
    """What a run's form says of a closed gate, and why and who says it. Until somebody is asked, it stops. `request`:
    the batch that is to be planned."""
    params = context["params"]
    gate, why = check_gate("stop" if asks(context) else params["gate"], params["why"], request)
    who = context["dag_run"].triggering_user_name
    return gate, f"{why} ({name_of_person(who)})" if who else why
