"""Who may see which stream: who may read the DAG that ingests it. Asks Airflow's auth manager, decides nothing itself.

Never answers from a cache: a right that was taken away is gone with the next request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep
from airflow.models.dag import DagModel
from fastapi import HTTPException

from wavestitch.contracts.stream import ingest_dag_id


def readable_streams(names: Sequence[str], user: Any) -> list[str]:
    """Those of the streams whose DAG the user may read, in their order."""
    dags = {name: ingest_dag_id(name) for name in names}
    teams = DagModel.get_dag_id_to_team_name_mapping(list(dags.values()))
    manager = get_auth_manager()
    details = {name: DagDetails(id=dag_id, team_name=teams.get(dag_id)) for name, dag_id in dags.items()}
    return [name for name in names if manager.is_authorized_dag(method="GET", details=details[name], user=user)]


def requires_stream(stream: str, user: GetUserDep) -> None:
    """For routes with a stream in their path. Says the same of a stream that is not there as of one that is closed."""
    if not readable_streams([stream], user):
        raise HTTPException(403, "Forbidden")
