"""The fields of a form that say what becomes of a batch at a closed gate, and what a run says in them."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

from wavestitch.batch.request import GATES, Gate, check_gate
from wavestitch.contracts.plain_text import MAX_SAID, name_of_person
from wavestitch.flows.form_fields import text_or_nothing

_SECTION = "Quality gate"

ASK = "ask"


def gate_params(*, asks: bool) -> dict[str, Param]:
    """`asks`: its DAG can ask somebody, and does where the form is left as it is."""
    ask = "ask: somebody is asked, under Required Actions. " if asks else ""
    return {
        "gate": Param(
            ASK if asks else "stop",
            type="string",
            enum=[*((ASK,) if asks else ()), *GATES],
            title="Where an expectation about the whole batch fails",
            description=f"{ask}stop: nothing is published and the run fails. accept: publish nevertheless. park: hold "
            "the whole batch, so that the stream goes on.",
            section=_SECTION,
        ),
        "why": text_or_nothing(
            "Why",
            "Recorded with the batch, beside your name. Needed with accept and park.",
            section=_SECTION,
            most=MAX_SAID,
        ),
    }


def asks(context: Any) -> bool:
    """Whether somebody is to be asked about a closed gate."""
    return bool(context["params"]["gate"] == ASK)


def gate_of_run(context: Any) -> tuple[Gate, str]:
    """What a run's form says of a closed gate, and why and who says it. Until somebody is asked, it stops."""
    params = context["params"]
    gate, why = check_gate("stop" if asks(context) else params["gate"], params["why"])
    who = context["dag_run"].triggering_user_name
    return gate, f"{why} ({name_of_person(who)})" if who else why
