"""A small client of Airflow's REST API: trigger a run, follow it, read what it left.

Never retries what changes something: a trigger that failed on the way may have happened.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from urllib.parse import quote

import httpx

from wavestitch.contracts.errors import BadInput, Terminal, Transient, WavestitchError

_POLL_SECONDS = 1.0  # each look takes the server fifty milliseconds, on the processors that its tasks need
_FINISHED = frozenset({"success", "failed"})
_PAGE = 100


@cache
def trusted() -> ssl.SSLContext:
    """Whose certificates a client of Airflow's takes. Read once a process: that takes longer than a question does."""
    return httpx.create_ssl_context(trust_env=False)


@dataclass(frozen=True, slots=True)
class TaskState:
    """Where a task of a run stands. `map_index` is -1 for an unmapped task; `state` is None before it starts."""

    task_id: str
    map_index: int
    state: str | None
    try_number: int


@dataclass(frozen=True, slots=True)
class ImportFailure:
    """A DAG file that could not be read, with Airflow's reason."""

    filename: str
    stack_trace: str


class AirflowApi:
    """One logged-in user of one Airflow. A context manager; `close` ends its connections."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    @classmethod
    def login(cls, *, url: str, user: str, password: str, seconds: float = 30) -> AirflowApi:
        """`seconds`: so long an answer is waited for, here and later. Raises `BadInput` for wrong credentials,
        `Transient` if nobody answers there."""
        # trust_env: a proxy in the environment cannot reach this machine's own addresses.
        client = httpx.Client(base_url=url, timeout=seconds, trust_env=False, verify=trusted())
        api = cls(client)
        try:
            answer = api.request("POST", "/auth/token", json={"username": user, "password": password})
        except WavestitchError:
            client.close()
            raise
        client.headers["Authorization"] = f"Bearer {answer['access_token']}"
        return api

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> AirflowApi:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.close()

    def request(
        self, method: str, path: str, *, json: Any = None, params: Mapping[str, str | int] | None = None
    ) -> Any:
        """The decoded answer. Raises `BadInput` for what Airflow refuses, `Transient` where it cannot answer."""
        where = f"{method} {self._client.base_url}{path}"
        try:
            response = self._client.request(method, path, json=json, params=params)
        except httpx.TransportError as error:
            done = "" if method == "GET" else " (what it was asked may be done: look before it is asked again)"
            raise Transient(
                f"{where}: no answer ({type(error).__name__}: {error}); is Airflow running?{done}"
            ) from error
        if response.status_code >= 500:
            raise Transient(f"{where}: Airflow failed with {response.status_code}: {_detail(response)}")
        if response.status_code >= 400:
            raise BadInput(
                f"{where}: Airflow refused with {response.status_code}: {_detail(response)}",
                status=response.status_code,
            )
        return response.json() if response.content else None

    def import_errors(self) -> list[ImportFailure]:
        answer = self.request("GET", "/api/v2/importErrors", params={"limit": _PAGE})
        return [ImportFailure(str(each["filename"]), str(each["stack_trace"])) for each in answer["import_errors"]]

    def wait_for_dag(self, dag_id: str, *, seconds: float = 60) -> None:
        """Until Airflow knows this DAG. Raises `Terminal`, with the import errors, if it does not in time."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.request("GET", f"/api/v2/dags/{quote(dag_id, safe='')}")
                return
            except BadInput as error:
                if error.facts.get("status") != 404:
                    raise
            if time.monotonic() > deadline:
                broken = [f"{each.filename}: {each.stack_trace}" for each in self.import_errors()]
                raise Terminal(
                    f"Airflow does not know the DAG {dag_id} after {seconds:.0f} s; import errors: "
                    + ("\n".join(broken) or "none")
                )
            time.sleep(_POLL_SECONDS)

    def unpause(self, dag_id: str) -> None:
        self.request("PATCH", f"/api/v2/dags/{quote(dag_id, safe='')}", json={"is_paused": False})

    def trigger(
        self, dag_id: str, conf: Mapping[str, Any] | None = None, *, logical_date: datetime | None = None
    ) -> str:
        """Start a manual run and return its id."""
        date = None if logical_date is None else logical_date.isoformat()
        body = {"logical_date": date, "conf": dict(conf or {})}  # the date is a required key, even where it is null
        answer = self.request("POST", f"/api/v2/dags/{quote(dag_id, safe='')}/dagRuns", json=body)
        return str(answer["dag_run_id"])

    def run_state(self, dag_id: str, run_id: str) -> str:
        """queued, running, success or failed."""
        return str(self.request("GET", _run_path(dag_id, run_id))["state"])

    def unfinished_runs(self, dag_id: str) -> list[str]:
        """The ids of the runs that are queued or running."""
        answer = self.request(
            "GET", f"/api/v2/dags/{quote(dag_id, safe='')}/dagRuns", params={"limit": _PAGE, "order_by": "-run_after"}
        )
        return [str(run["dag_run_id"]) for run in answer["dag_runs"] if run["state"] not in _FINISHED]

    def task_states(self, dag_id: str, run_id: str) -> list[TaskState]:
        """All task instances of a run, by task and map index."""
        found: list[dict[str, Any]] = []
        while True:
            params: dict[str, str | int] = {"limit": _PAGE, "offset": len(found)}
            answer = self.request("GET", f"{_run_path(dag_id, run_id)}/taskInstances", params=params)
            found += answer["task_instances"]
            if not answer["task_instances"] or len(found) >= answer["total_entries"]:
                break
        states = [TaskState(t["task_id"], int(t["map_index"]), t["state"], int(t["try_number"])) for t in found]
        return sorted(states, key=lambda each: (each.task_id, each.map_index))

    def xcom(self, dag_id: str, run_id: str, task_id: str, *, key: str = "return_value", map_index: int = -1) -> Any:
        """What a task handed on, as JSON values."""
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{quote(task_id, safe='')}/xcomEntries/{quote(key, safe='')}"
        return self.request("GET", path, params={"map_index": map_index, "stringify": "false"})["value"]

    def wait(
        self,
        dag_id: str,
        run_id: str,
        on_change: Callable[[list[TaskState]], None] = lambda _states: None,
        *,
        seconds: float = 600,
    ) -> str:
        """Until the run is finished: its state. `on_change` gets all task states each time one of them changed.

        Raises `Transient` after `seconds`; the run goes on. An Airflow that cannot answer for a moment is asked again.
        """
        deadline = time.monotonic() + seconds
        seen: list[TaskState] | None = None
        state = "unknown"
        while time.monotonic() < deadline:
            try:
                state = self.run_state(dag_id, run_id)
                states = self.task_states(dag_id, run_id)  # after the state, so that the last ones are final
            except Transient:
                time.sleep(_POLL_SECONDS)
                continue
            if states != seen:
                seen = states
                on_change(states)
            if state in _FINISHED:
                return state
            time.sleep(_POLL_SECONDS)
        raise Transient(
            f"run {run_id} of {dag_id} is {state} after {seconds:.0f} s and goes on; look at it in Airflow's UI",
            dag_id=dag_id,
            run_id=run_id,
        )


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{quote(dag_id, safe='')}/dagRuns/{quote(run_id, safe='')}"


def _detail(response: httpx.Response) -> str:
    try:
        body = response.json()
    except ValueError:
        return response.text[:500]
    return str(body.get("detail", body) if isinstance(body, dict) else body)[:2000]
