"""An answer counts for what it was given about: the preview, or the plan, that was put before somebody; for no other.

Else whoever clears the tasks around a question, and not the question, would have an old answer approve of something
that nobody was shown.
"""
# mypy: disable-error-code="misc"

from __future__ import annotations

from typing import Any

from wavestitch.contracts.errors import Refused

ABOUT = "about"
"""The XCom, and the field of the answer, that says what it is about."""


class BoundAnswer:
    """Before an operator that asks, in the order of its classes. Where it asks again, the answer is about what it asked
    last."""

    def about(self, ti: Any) -> str:
        """The id of what is put before somebody now."""
        raise NotImplementedError

    def execute(self, context: Any) -> Any:
        context["ti"].xcom_push(key=ABOUT, value=self.about(context["ti"]))
        return super().execute(context)

    def execute_complete(self, context: Any, event: dict[str, Any]) -> Any:
        given = super().execute_complete(context, event)
        return {**given, ABOUT: left_by_itself(context["ti"])}


def left_by_itself(ti: Any) -> str:
    """What the question of this very task instance is about."""
    return str(ti.xcom_pull(task_ids=ti.task_id, key=ABOUT, map_indexes=ti.map_index))


def refuse_answer_about_another(given: Any, about: str, *, asked_by: str) -> None:
    """`given`: the XCom of the task `asked_by`. Raises `Refused` where the answer is not about this."""
    if given.get(ABOUT) != about:
        raise Refused(
            f"what was answered by task `{asked_by}` was asked about {given.get(ABOUT)}, and this is about {about}: it "
            f"was made anew since; clear `{asked_by}`, too, so that somebody is asked about this one"
        )


def name_of_answerer(given: Any) -> str:
    """Empty where nobody answered in time."""
    return str((given["responded_by_user"] or {}).get("name") or "")
