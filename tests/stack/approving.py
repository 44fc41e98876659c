"""What somebody does in a live Airflow whose run is previewed first: asks for it, waits until it is shown, approves."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from tests.stack.live_airflow import SECONDS, LiveAirflow, comes_true
from wavestitch.contracts.errors import Transient


def waits(live: LiveAirflow, dag_id: str, run_id: str) -> str:
    """Until its approval waits for somebody; the text that is put before them."""

    def pending() -> bool:
        states = {}
        with suppress(Transient):  # a busy machine: the server answers later
            states = {t.task_id: t.state for t in api.task_states(dag_id, run_id)}
        assert states.get("preview") != "failed", "the preview failed"
        return states.get("approve") == "awaiting_input"

    with live.airflow.login() as api:
        assert comes_true(pending)
        live.wait_asked(dag_id, run_id, "approve")
        return str(api.xcom(dag_id, run_id, "preview", key="shown"))


def answer(live: LiveAirflow, user: str, dag_id: str, run_id: str, chosen: str) -> None:
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/approve/-1/hitlDetails"
    with live.airflow.login(user) as api:
        api.request("PATCH", path, json={"chosen_options": [chosen], "params_input": {}})


def ask(live: LiveAirflow, dag_id: str, form: dict[str, Any]) -> tuple[str, str]:
    """A decision that op asks for, once it waits for an approval: its run, and what is put before whoever approves."""
    with live.airflow.login("op") as op:
        run_id = op.trigger(dag_id, form)
    return run_id, waits(live, dag_id, run_id)


def approve(live: LiveAirflow, dag_id: str, run_id: str) -> str:
    """By admin; how the run ends."""
    answer(live, "admin", dag_id, run_id, "Approve")
    with live.airflow.login() as api:
        return api.wait(dag_id, run_id, seconds=SECONDS)
