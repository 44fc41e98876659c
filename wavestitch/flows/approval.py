"""Airflow's own approval of a preview; a rejection, nobody's answer in time too, is kept beside the preview.

So it is final: nobody does what was rejected by hand, or by clearing the task and answering otherwise.
"""
# mypy: disable-error-code="misc"

from __future__ import annotations

from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator

from wavestitch.flows.batch_tasks import edges_of

PREVIEW = "preview"
"""The task that leaves the preview's id."""
_NOBODY = "nobody, who did not answer in time"


class Approval(ApprovalOperator):
    """Of what the task `preview` of the same run has kept. `stream`: its name."""

    def __init__(self, *, stream: str, **how: Any) -> None:
        super().__init__(**how)
        self.stream = stream

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        given = super().execute_complete(context, event)
        if given["chosen_options"] != [self.APPROVE]:
            from wavestitch.batch.preview_answer import reject_preview  # noqa: PLC0415 - loads the clients

            by = str((given["responded_by_user"] or {}).get("name") or "") or _NOBODY
            preview_id = context["ti"].xcom_pull(task_ids=PREVIEW)
            reject_preview(edges_of(self.stream), preview_id, by=by)
        return given
