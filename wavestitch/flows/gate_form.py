"""The fields of a form that say what becomes of a batch at a closed gate, and what a run says in them."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

from wavestitch.batch.request import GATES, Gate, check_gate
from wavestitch.contracts.plain_text import MAX_SAID, name_of_person

_SECTION = "Quality gate"

PARAMS = {
    "gate": Param(
        "stop",
        type="string",
        enum=list(GATES),
        title="Where an expectation about the whole batch fails",
        description="stop: nothing is published and the run fails. accept: publish nevertheless. park: hold the whole "
        "batch, so that the stream goes on.",
        section=_SECTION,
    ),
    "why": Param(
        None,
        type=["null", "string"],
        maxLength=MAX_SAID,
        title="Why",
        description="Recorded with the batch, beside your name. Needed with accept and park.",
        section=_SECTION,
    ),
}


def gate_of_run(context: Any) -> tuple[Gate, str]:
    """What a run's form says of a closed gate, and why and who says it."""
    params = context["params"]
    gate, why = check_gate(params["gate"], params["why"])
    who = context["dag_run"].triggering_user_name
    return gate, f"{why} ({name_of_person(who)})" if who else why
