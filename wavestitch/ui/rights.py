"""Who may see which stream: who may read the DAG that ingests it. Asks Airflow's auth manager, decides nothing itself.

Never answers from a cache: a right that was taken away is gone with the next request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.dag import DagModel
from fastapi import HTTPException

from wavestitch.contracts.stream import (
    backfill_dag_id,
    decide_dag_id,
    ingest_dag_id,
    promote_dag_id,
    rewind_dag_id,
    verify_dag_id,
)
from wavestitch.settings import load_settings, stream_names

DAGS: Sequence[Callable[[str], str]] = (
    *(ingest_dag_id, backfill_dag_id, rewind_dag_id),
    *(decide_dag_id, verify_dag_id, promote_dag_id),
)
"""Of one stream."""


def readable_streams(names: Sequence[str], user: Any) -> list[str]:
    """Those of the streams whose DAG the user may read, in their order."""
    dags = {name: ingest_dag_id(name) for name in names}
    may = _readable(list(dags.values()), user)
    return [name for name in names if dags[name] in may]


def readable_runs(names: Sequence[str], user: Any) -> Mapping[str, str]:
    """The DAGs of these streams whose runs the user may read, and the stream that each is of."""
    dags = {of(name): name for name in names for of in DAGS}
    may = _readable(list(dags), user, DagAccessEntity.RUN)
    return {dag_id: name for dag_id, name in dags.items() if dag_id in may}


def requires_stream(stream: str, user: GetUserDep) -> None:
    """For routes with a stream in their path: before anything is looked at, or kept, by a name that anybody may write
    into an address. To whoever has no right, a stream that is not there is as one that is closed."""
    if not readable_streams([stream], user):
        raise HTTPException(403, "Forbidden")
    if stream not in stream_names(load_settings()):
        raise HTTPException(404, "There is no such stream")


def _readable(dag_ids: Sequence[str], user: Any, entity: DagAccessEntity | None = None) -> set[str]:
    teams = DagModel.get_dag_id_to_team_name_mapping(list(dag_ids))
    manager = get_auth_manager()
    return {
        dag_id
        for dag_id in dag_ids
        if manager.is_authorized_dag(
            method="GET", access_entity=entity, details=DagDetails(id=dag_id, team_name=teams.get(dag_id)), user=user
        )
    }
