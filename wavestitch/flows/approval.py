"""Airflow's own approval of a preview; a rejection, nobody's answer in time too, is kept beside the preview.

So it is final: nobody does what was rejected by hand, or by clearing the task and answering otherwise. An approval is
of the preview that was shown, and carries its id.
"""
# mypy: disable-error-code="misc"

from __future__ import annotations

from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator

from wavestitch.flows.batch_tasks import edges_of
from wavestitch.flows.bound_answer import BoundAnswer, left_by_itself, name_of_answerer, refuse_answer_about_another

PREVIEW, SHOWN, APPROVE = "preview", "shown", "approve"
"""The task that leaves the preview's id, and its text for whoever is asked; and the task that asks."""
_NOBODY = "nobody, who did not answer in time"


class Approval(BoundAnswer, ApprovalOperator):
    """Of what the task `preview` of the same run has kept. `stream`: its name."""

    def __init__(self, *, stream: str, **how: Any) -> None:
        super().__init__(**how)
        self.stream = stream

    def about(self, ti: Any) -> str:
        # First the id, then the text, as they are left: where the preview is made anew in between, none of it matches.
        preview_id = str(ti.xcom_pull(task_ids=PREVIEW))
        self.body = ti.xcom_pull(task_ids=PREVIEW, key=SHOWN)
        return preview_id

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        given = super().execute_complete(context, event)
        if given["chosen_options"] != [self.APPROVE]:
            from wavestitch.batch.preview_answer import reject_preview  # noqa: PLC0415 - loads the clients

            by = name_of_answerer(given) or _NOBODY
            reject_preview(edges_of(self.stream), left_by_itself(context["ti"]), by=by)
        return given


def approval_of(preview_id: str, ti: Any) -> tuple[str, dict[str, Any]]:
    """Who approved of this very preview, and what they ticked. Raises `Refused` where the answer is about another."""
    given = ti.xcom_pull(task_ids=APPROVE)
    refuse_answer_about_another(given, preview_id, asked_by=APPROVE)
    return name_of_answerer(given), dict(given["params_input"] or {})
