"""The routes of the page "Wavestitch": all of them behind Airflow's login, all of them GET.

Knows Airflow (who may see what; which plan a run made) and hands plain values to the pages.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Annotated, Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import requires_access_dag, requires_authenticated
from airflow.models.xcom import XComModel
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query
from fastapi.responses import HTMLResponse
from sqlalchemy import select

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.stream_facts import stream_facts
from wavestitch.contracts.errors import WavestitchError
from wavestitch.settings import stream_names
from wavestitch.ui.docs_files import find_page
from wavestitch.ui.pages import batch_page, note_page, overview_page

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; "
    "form-action 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
}
_DAG_PREFIX = "ingest_"


def make_app() -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    # A plugin's app has no login of its own: without this everybody could read it.
    router = APIRouter(dependencies=[Depends(requires_authenticated())])
    router.get("/", response_class=HTMLResponse)(overview)
    router.get("/docs/{stream}/{plan_id}/{name:path}", response_class=HTMLResponse)(data_docs)
    router.get(
        "/run/{dag_id}",
        response_class=HTMLResponse,
        dependencies=[Depends(requires_access_dag("GET", DagAccessEntity.XCOM))],
    )(batch_of_run)
    app.include_router(router)
    return app


def overview() -> HTMLResponse:
    try:
        deployment = Deployment()
        found = overview_page([(stream_facts(deployment, name), None) for name in stream_names(deployment.settings)])
    except WavestitchError as error:
        found = note_page("Wavestitch", error.message)
    return _html(found)


def data_docs(stream: str, plan_id: str, name: str) -> HTMLResponse:
    page = find_page(Deployment().settings.docs, stream, plan_id, name)
    if page is None:
        raise HTTPException(404, "there is no such page")
    return _html(page.read_text(encoding="utf-8"))


def batch_of_run(dag_id: str, run_id: Annotated[str, Query()], session: SessionDep) -> HTMLResponse:
    deployment = Deployment()
    stream = dag_id.removeprefix(_DAG_PREFIX)
    if not dag_id.startswith(_DAG_PREFIX) or stream not in stream_names(deployment.settings):
        return _html(note_page("No batch", f"{dag_id} is not the DAG of a stream."))
    plan_id = _said_by_plan(session, dag_id, run_id, "plan_id")
    if not plan_id:
        why = _said_by_plan(session, dag_id, run_id, "nothing")
        return _html(note_page("No batch", why or "The run has not made a plan."))
    try:
        rows = deployment.tables(stream).batches(plan_id=plan_id)
    except WavestitchError as error:
        return _html(note_page(f"Batch {plan_id[:16]}", error.message))
    documented = find_page(deployment.settings.docs, stream, plan_id, "index.html") is not None
    return _html(batch_page(stream, plan_id, rows[0] if rows else None, documented=documented))


def _said_by_plan(session: Any, dag_id: str, run_id: str, key: str) -> str:
    """An XCom of the run's plan task; empty where it said nothing."""
    wanted = select(XComModel.value).where(
        XComModel.dag_id == dag_id, XComModel.run_id == run_id, XComModel.task_id == "plan", XComModel.key == key
    )
    return str(session.scalar(wanted) or "")


def _html(text: str) -> HTMLResponse:
    return HTMLResponse(text, headers=_HEADERS)
