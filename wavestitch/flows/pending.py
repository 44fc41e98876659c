"""Tells whoever `[notify]` of the settings names that a question waits in Airflow, and where it is answered.

Called by the operator that asks, once its question stands. Never fails that: who was not told finds the question under
Required Actions all the same.
"""
# mypy: disable-error-code="misc"

from __future__ import annotations

from typing import Any

from airflow.sdk import BaseNotifier

from wavestitch.contracts.errors import WavestitchError
from wavestitch.flows.addresses import question_page

ANSWER_BY = "answer_by"
"""Of an operator that looks again before its time is out: when that is."""


class TellPending(BaseNotifier):
    """Of one stream."""

    def __init__(self, stream: str) -> None:
        super().__init__()
        self.stream = stream

    def notify(self, context: Any) -> None:
        """The question as it is asked, what can be answered, and until when."""
        from wavestitch.batch.notify import notify  # noqa: PLC0415
        from wavestitch.settings import load_settings  # noqa: PLC0415

        question, ti = context["task"], context["ti"]
        page, until = (
            question_page(ti),
            question.hitl_summary_extra.get(ANSWER_BY) or question.hitl_summary_extra.get("timeout_datetime"),
        )
        facts = {
            "stream": self.stream,
            "dag": ti.dag_id,
            "run": ti.run_id,
            "task": ti.task_id,
            "answers": ", ".join(question.options),
            "until": until,
            "page": page,
        }
        try:
            ways = load_settings().notify
        except WavestitchError as error:
            self.log.error("nobody was told that an answer is waited for: %s", error.message)
            return
        notify(ways, subject=question.subject, text=f"{question.body}\n\nAnswer it until {until}: {page}", facts=facts)
