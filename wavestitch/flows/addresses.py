"""Addresses of this Airflow's pages, as people reach them: behind a path of its own, too. Never a path on a server."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow.sdk.configuration import conf


def docs_page(stream: str, plan_id: str) -> str:
    """What the gate found (Data Docs)."""
    return f"{_base()}/wavestitch/docs/{stream}/{plan_id}/index.html"


def run_page(dag_id: str, run_id: str) -> str:
    """Where a run is shown."""
    return f"{_base()}/dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}"


def question_page(ti: Any) -> str:
    """Where the question of this task instance is answered."""
    mapped = f"/mapped/{ti.map_index}" if ti.map_index >= 0 else ""
    return f"{run_page(ti.dag_id, ti.run_id)}/tasks/{quote(ti.task_id, safe='')}{mapped}/required_actions"


def _base() -> str:
    return str(conf.get("api", "base_url", fallback="")).rstrip("/")
