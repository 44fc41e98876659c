"""The routes of the page "Wavestitch": behind Airflow's login, by rights on the stream's DAG, all of them GET.

Knows Airflow (who may see what; which plan a run made) and hands plain values to the pages.
"""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag, requires_authenticated
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from wavestitch.batch.brief_facts import BriefFacts
from wavestitch.batch.held_page import MOST_CHUNKS
from wavestitch.batch.history import whole_history
from wavestitch.batch.stream_facts import StreamFacts, see_ends, see_tables
from wavestitch.contracts.errors import BadInput, WavestitchError
from wavestitch.plain_files import plain_text
from wavestitch.settings import load_settings, stream_names
from wavestitch.ui.answer import html_answer, note_answer, page_answer, script, wants_json
from wavestitch.ui.asked import LATE
from wavestitch.ui.docs_files import find_page
from wavestitch.ui.facts import one_stream_facts, overview_facts, run_said
from wavestitch.ui.failed_runs import failed_runs
from wavestitch.ui.guest import guest_deployment
from wavestitch.ui.guest_sentence import said_to_guests
from wavestitch.ui.held_routes import held_of_stream, held_samples_in_view, held_waveform
from wavestitch.ui.looks import AT_ONCE, ENOUGH_S, FIRST_PAINT_S, PROGRAM_S, Looks
from wavestitch.ui.pages import BatchOfRun, overview_page, run_page, stream_page
from wavestitch.ui.rights import readable_runs, readable_streams, requires_stream
from wavestitch.ui.run_facts import facts_of_run
from wavestitch.ui.run_story import RunFacts, Story, story_of, stream_of_dag
from wavestitch.ui.stream_rows import FailedRun, rows_of
from wavestitch.ui.waveform_routes import add_waveform_routes


@dataclass(frozen=True, slots=True)
class Told:
    """A run, what it is of, and its story."""

    kind: str
    stream: str
    run: RunFacts
    story: Story


def make_app(looks: Looks | None = None) -> FastAPI:
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.state.looks = looks or Looks(_ask_tables(BriefFacts()), _ask_log)
    app.add_exception_handler(WavestitchError, _unreadable)
    # A plugin's app has no login of its own: without this everybody could read it.
    router = APIRouter(dependencies=[Depends(requires_authenticated())])
    router.get("/", response_class=HTMLResponse)(overview)
    router.get("/static/{name}", response_class=Response)(script)
    router.get(
        "/docs/{stream}/{plan_id}/{name:path}", response_class=HTMLResponse, dependencies=[Depends(requires_stream)]
    )(data_docs)
    for path, page in (
        ("/stream/{stream}", one_stream),
        ("/held/{stream}", held_of_stream),
        ("/held/{stream}/one", held_waveform),
    ):
        router.get(path, response_class=HTMLResponse, dependencies=[Depends(requires_stream)])(page)
    router.get("/held/{stream}/view", response_class=JSONResponse, dependencies=[Depends(requires_stream)])(
        held_samples_in_view
    )
    router.get(
        "/run/{dag_id}",
        response_class=HTMLResponse,
        dependencies=[
            Depends(requires_access_dag("GET")),
            Depends(requires_access_dag("GET", DagAccessEntity.XCOM)),
        ],
    )(page_of_run)
    add_waveform_routes(app, router)
    app.include_router(router)
    return app


def streams_of(user: GetUserDep) -> list[str]:
    """The streams that the user may see. In a thread: the auth manager asks Airflow's database."""
    return readable_streams(stream_names(load_settings()), user)


def failed_runs_of(
    names: Annotated[list[str], Depends(streams_of)], user: GetUserDep, session: SessionDep
) -> dict[str, FailedRun]:
    """The last failed run of each stream that the user may see. In a thread, as above."""
    return failed_runs(session, readable_runs(names, user))


async def overview(
    request: Request,
    names: Annotated[list[str], Depends(streams_of)],
    failed: Annotated[dict[str, FailedRun], Depends(failed_runs_of)],
) -> Response:
    rows = rows_of(await request.app.state.looks.at(names, **_how_fresh(request, len(names))), failed)
    return await page_answer(request, html=lambda: overview_page(rows), facts=lambda: overview_facts(rows))


def failed_run_of(stream: str, user: GetUserDep, session: SessionDep) -> dict[str, FailedRun]:
    """The same of one stream."""
    return failed_runs(session, readable_runs([stream], user))


async def one_stream(
    request: Request, stream: str, failed: Annotated[dict[str, FailedRun], Depends(failed_run_of)]
) -> Response:
    looks: Looks = request.app.state.looks
    seen, full = await asyncio.gather(
        looks.at([stream], **_how_fresh(request, 1)), _all_of_it(looks, stream, _wait(request))
    )
    [row] = rows_of(seen, failed)
    return await page_answer(request, html=lambda: stream_page(row, full), facts=lambda: one_stream_facts(row, full))


async def _all_of_it(looks: Looks, stream: str, wait: float) -> StreamFacts | None:
    """With what is held looked at. That too many looks wait is no error: the page shows what it knows."""

    def look() -> StreamFacts:
        try:
            return see_tables(guest_deployment(), stream, most=MOST_CHUNKS)
        except WavestitchError as error:
            return StreamFacts(stream, said_to_guests(error))

    with suppress(WavestitchError):
        return await looks.ask((stream, "all of it"), look, wait=wait)
    return None


def data_docs(stream: str, plan_id: str, name: str) -> HTMLResponse:
    page = find_page(load_settings().docs, stream, plan_id, name)
    if page is None:
        raise HTTPException(404, "there is no such page")
    return html_answer(plain_text(page))


def told_by_run(
    dag_id: str, run_id: Annotated[str, Query(max_length=1000)], user: GetUserDep, session: SessionDep
) -> Told | str:
    """What a run says of itself, or why there is nothing to say. In a thread, as above."""
    names = stream_names(load_settings())
    kind, stream = stream_of_dag(dag_id, names)
    if not kind:
        return f"{dag_id} is not a DAG of a stream."
    run = facts_of_run(session, dag_id, run_id)
    if run is None:
        return "There is no such run."
    may = readable_streams([stream] if stream else names, user)
    story = story_of(kind, run, may=may)
    if stream and not may:
        # The run may be read, and its stream not: which batch it carried leads to a row of the stream's history.
        story = replace(story, plan_id="")
    return Told(kind, stream, run, story)


async def page_of_run(request: Request, told: Annotated[Told | str, Depends(told_by_run)]) -> Response:
    if isinstance(told, str):
        return await note_answer(request, "No run", told)
    batch, plan_id = BatchOfRun(), told.story.plan_id
    if told.stream and plan_id:
        looks: Looks = request.app.state.looks
        try:
            found = await looks.ask(
                (told.stream, "batch", plan_id), lambda: _find_batch(told.stream, plan_id), wait=_wait(request)
            )
            batch = found or BatchOfRun(problem=LATE, late=True)
        except BadInput:
            raise
        except WavestitchError as error:
            batch = BatchOfRun(problem=said_to_guests(error))
    return await page_answer(
        request,
        html=lambda: run_page(told.kind, told.stream, told.run, told.story, batch),
        facts=lambda: run_said(told.kind, told.stream, told.run, told.story, batch.row),
    )


async def _unreadable(request: Request, _error: Exception) -> Response:
    """Not the sentence itself: it names files, and whoever asks may have no right at all."""
    said = "The settings cannot be used; `wavestitch check` says why."
    return await note_answer(request, "Wavestitch", said, status=503)


def _wait(request: Request) -> float:
    """A page for people asks again by itself; a program asks once."""
    return PROGRAM_S if wants_json(request) else FIRST_PAINT_S


def _how_fresh(request: Request, streams: int) -> dict[str, float]:
    """A program wants what is true now, as far as that can be: of more streams than one page looks at, as to people, it
    is said how old it is."""
    now = wants_json(request) and streams <= AT_ONCE
    return {"wait": _wait(request), "enough": 0.0 if now else ENOUGH_S}


def _find_batch(stream: str, plan_id: str) -> BatchOfRun:
    deployment = guest_deployment()
    rows = whole_history(deployment.history(stream), plan_id=plan_id)
    page = find_page(deployment.settings.docs, stream, plan_id, "index.html")
    return BatchOfRun(rows[0] if rows else None, page is not None)


def _ask_tables(brief: BriefFacts) -> Callable[[str], StreamFacts]:
    return lambda name: brief.of(guest_deployment(), name)


def _ask_log(known: StreamFacts) -> StreamFacts:
    return see_ends(guest_deployment(), known)
