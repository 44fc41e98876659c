"""The routes of the page "Wavestitch": behind Airflow's login, by rights on the stream's DAG, all of them GET.

Knows Airflow (who may see what; which plan a run made) and hands plain values to the pages.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag, requires_authenticated
from airflow.models.xcom import XComModel
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy import select

from wavestitch.batch.deployment import Deployment, leave_no_core_file
from wavestitch.batch.history import whole_history
from wavestitch.batch.stream_facts import StreamFacts, table_facts, with_ends
from wavestitch.contracts.batch_row import BatchRow
from wavestitch.contracts.errors import WavestitchError
from wavestitch.settings import load_settings, stream_names
from wavestitch.ui.answer import html_answer, note_answer, page_answer, script
from wavestitch.ui.docs_files import find_page
from wavestitch.ui.facts import batch_facts, overview_facts
from wavestitch.ui.held_routes import held_of_stream, held_waveform
from wavestitch.ui.looks import Looks
from wavestitch.ui.pages import batch_page, overview_page
from wavestitch.ui.rights import readable_streams, requires_stream

_DAG_PREFIX = "ingest_"


@dataclass(frozen=True, slots=True)
class Planned:
    """A run's plan; `otherwise`: the sentence where it has none."""

    stream: str
    plan_id: str
    otherwise: str


def make_app(looks: Looks | None = None) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.looks = looks or Looks(_ask_tables, _ask_log)
    app.add_exception_handler(WavestitchError, _unreadable)
    # A plugin's app has no login of its own: without this everybody could read it.
    router = APIRouter(dependencies=[Depends(requires_authenticated())])
    router.get("/", response_class=HTMLResponse)(overview)
    router.get("/static/{name}", response_class=Response)(script)
    router.get(
        "/docs/{stream}/{plan_id}/{name:path}", response_class=HTMLResponse, dependencies=[Depends(requires_stream)]
    )(data_docs)
    for path, page in (("/held/{stream}", held_of_stream), ("/held/{stream}/one", held_waveform)):
        router.get(path, response_class=HTMLResponse, dependencies=[Depends(requires_stream)])(page)
    router.get(
        "/run/{dag_id}",
        response_class=HTMLResponse,
        dependencies=[
            Depends(requires_access_dag("GET")),
            Depends(requires_access_dag("GET", DagAccessEntity.XCOM)),
        ],
    )(batch_of_run)
    app.include_router(router)
    return app


def streams_of(user: GetUserDep) -> list[str]:
    """The streams that the user may see. In a thread: the auth manager asks Airflow's database."""
    return readable_streams(stream_names(load_settings()), user)


async def overview(request: Request, names: Annotated[list[str], Depends(streams_of)]) -> Response:
    found = await request.app.state.looks.at(names)
    return page_answer(request, html=lambda: overview_page(found), facts=lambda: overview_facts(found))


def data_docs(stream: str, plan_id: str, name: str) -> HTMLResponse:
    page = find_page(load_settings().docs, stream, plan_id, name)
    if page is None:
        raise HTTPException(404, "there is no such page")
    return html_answer(page.read_text(encoding="utf-8"))


def plan_of_run(dag_id: str, run_id: Annotated[str, Query()], session: SessionDep) -> Planned:
    """What the plan task of a run said. In a thread, as above."""
    stream = dag_id.removeprefix(_DAG_PREFIX)
    if not dag_id.startswith(_DAG_PREFIX) or stream not in stream_names(load_settings()):
        return Planned("", "", f"{dag_id} is not the DAG of a stream.")
    plan_id = _said_by_plan(session, dag_id, run_id, "plan_id")
    why = "" if plan_id else _said_by_plan(session, dag_id, run_id, "nothing")
    return Planned(stream, plan_id, why or "The run has not made a plan.")


async def batch_of_run(request: Request, planned: Annotated[Planned, Depends(plan_of_run)]) -> Response:
    if not planned.plan_id:
        return note_answer(request, "No batch", planned.otherwise)
    title = f"Batch {planned.plan_id[:16]}"
    try:
        found = await request.app.state.looks.ask((planned.stream, planned.plan_id), lambda: _find_batch(planned))
    except WavestitchError as error:
        return note_answer(request, title, error.message)
    if found is None:
        return note_answer(request, title, "The tables have not answered yet; load the page again in a moment.")
    row, documented = found
    return page_answer(
        request,
        html=lambda: batch_page(planned.stream, planned.plan_id, row, documented=documented),
        facts=lambda: batch_facts(planned.stream, planned.plan_id, row),
    )


async def _unreadable(request: Request, _error: Exception) -> Response:
    """Not the sentence itself: it names files, and whoever asks may have no right at all."""
    said = "The settings cannot be used; `wavestitch check` says why."
    return note_answer(request, "Wavestitch", said, status=503)


def _deployment() -> Deployment:
    """As a guest: the server is Airflow's, and other plugins have catalogs of their own. But it has our passwords."""
    leave_no_core_file()
    return Deployment(guest=True)


def _find_batch(planned: Planned) -> tuple[BatchRow | None, bool]:
    deployment = _deployment()
    rows = whole_history(deployment.history(planned.stream), plan_id=planned.plan_id)
    page = find_page(deployment.settings.docs, planned.stream, planned.plan_id, "index.html")
    return rows[0] if rows else None, page is not None


def _ask_tables(name: str) -> StreamFacts:
    return table_facts(_deployment(), name)


def _ask_log(known: StreamFacts) -> StreamFacts:
    return with_ends(_deployment(), known)


def _said_by_plan(session: Any, dag_id: str, run_id: str, key: str) -> str:
    """An XCom of the run's plan task; empty where it said nothing."""
    wanted = select(XComModel.value).where(
        XComModel.dag_id == dag_id, XComModel.run_id == run_id, XComModel.task_id == "plan", XComModel.key == key
    )
    return str(session.scalar(wanted) or "")
