"""A run as Airflow's database has it: its state, its tasks' states, and what they said. Three questions, however many
tasks a run was mapped to."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from sqlalchemy import String, cast, func, select

from wavestitch.flows.alarms import FAILED_WITH
from wavestitch.ui.run_story import RunFacts
from wavestitch.ui.said import MOST_CHARS, plain

_SAID = ("return_value", "plan_id", "nothing", "shown", "found", "closed", FAILED_WITH)
_MOST = 2000
"""XComs of one run that are looked at: one task of `maintain` for each stream, and the few of all others."""


def facts_of_run(session: Any, dag_id: str, run_id: str) -> RunFacts | None:
    """None where there is no such run."""
    here = (DagRun.dag_id == dag_id, DagRun.run_id == run_id)
    state = session.scalar(select(DagRun.state).where(*here))
    if state is None:
        return None
    tasks: dict[str, dict[str, int]] = defaultdict(dict)
    counted = select(TaskInstance.task_id, TaskInstance.state, func.count()).where(
        TaskInstance.dag_id == dag_id, TaskInstance.run_id == run_id
    )
    for task, found, count in session.execute(counted.group_by(TaskInstance.task_id, TaskInstance.state)):
        tasks[task][_word(found)] = count
    said: dict[tuple[str, str], Any] = {}
    failures: dict[str, str] = {}
    asked = select(XComModel.task_id, XComModel.key, XComModel.map_index, XComModel.value).where(
        XComModel.dag_id == dag_id,
        XComModel.run_id == run_id,
        XComModel.key.in_(_SAID),
        func.length(cast(XComModel.value, String)) <= MOST_CHARS,
    )
    for task, key, index, value in session.execute(asked.order_by(XComModel.map_index, XComModel.task_id).limit(_MOST)):
        if key == FAILED_WITH:
            failures.setdefault(task, str(value))
        elif index < 0:
            said[task, key] = plain(value)
    return RunFacts(dag_id, run_id, _word(state), dict(tasks), said, failures)


def _word(state: Any) -> str:
    return str(getattr(state, "value", state) or "none")
