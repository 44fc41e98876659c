"""An auth manager under which people see the DAGs of their team and nothing else.

A real `BaseAuthManager`: Airflow's simple one, whose roles hold for every DAG, with one more question for DAGs. So its
tokens, its users and its other answers are Airflow's own.
"""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

TEAM_OF = {"ingest_ecg": "heart", "ingest_seismic": "earth"}


class TeamAuthManager(SimpleAuthManager):
    def is_authorized_dag(self, *, method: Any, user: Any, access_entity: Any = None, details: Any = None) -> bool:
        if not super().is_authorized_dag(method=method, user=user, access_entity=access_entity, details=details):
            return False
        return details is None or details.id is None or TEAM_OF.get(details.id) in user.teams
