"""When a batch of a backfill has its turn: after those before it, and Airflow alone knows whether they are under way.

While the one before is, a task asks again later, which costs it no try and holds no slot. Once that one has ended
without being finished, it fails at once, and says which. Decides nothing about a batch itself.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NoReturn

from airflow.sdk.exceptions import AirflowRescheduleException

from wavestitch.contracts.errors import Refused, Transient

STOPPED = ("failed", "upstream_failed", "skipped", "removed")
UNTIL_FINISHED = ("read", "reassemble", "validate", "answered", "publish")
AFTERWARDS = "commit_offsets"
"""Lets the landing go."""
SOONER = 2
"""A batch n places behind asks again after n halves of a retry's delay: not much later than its turn may come, and a
thousand that wait at once ask every four seconds."""


def await_landing(ti: Any) -> None:
    """While the batch before is finished and has its landing yet, Airflow asks again: the disk holds one."""
    states = _states_of(ti, 1)
    if states.get("publish") == "success" and states.get(AFTERWARDS) not in ("success", *STOPPED):
        raise _later(ti, 1)


def await_turn(ti: Any, error: Transient) -> NoReturn:
    """For a task which found that the batches before its own are not finished. Raises what makes Airflow ask again, or
    `Refused` where nobody is carrying the first of them through."""
    ahead = int(error.facts["ahead"])
    states = _states_of(ti, ahead)
    stopped = next((task for task in UNTIL_FINISHED if states.get(task) in STOPPED), None)
    if stopped is not None:
        raise Refused(f"{error.message}. Its task {stopped} is {states[stopped]}", **error.facts)
    if not states or states.get("publish") == "success":
        raise Refused(f"{error.message}. No task of this run carries it through", **error.facts)
    raise _later(ti, ahead)


def _later(ti: Any, ahead: int) -> AirflowRescheduleException:
    return AirflowRescheduleException(datetime.now(UTC) + ti.task.retry_delay / SOONER * ahead)


def _states_of(ti: Any, ahead: int) -> dict[str, str | None]:
    """Of the tasks for the batch so many places before, by their name in the group of both; None: has not begun."""
    group, map_index = ti.task_id.rpartition(".")[0], ti.map_index - ahead
    if map_index < 0:
        return {}
    found = ti.get_task_states(
        dag_id=ti.dag_id,
        run_ids=[ti.run_id],
        map_index=map_index,
        task_ids=[f"{group}.{task}" for task in (*UNTIL_FINISHED, AFTERWARDS)],
    ).get(ti.run_id, {})
    return {name.removeprefix(f"{group}.").removesuffix(f"_{map_index}"): state for name, state in found.items()}
