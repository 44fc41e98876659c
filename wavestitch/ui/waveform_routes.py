"""The routes of waveforms, by rights on the stream's DAG, all of them GET. They have threads of their own: reducing a
long waveform takes seconds, which other pages need not wait for."""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, FastAPI, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from wavestitch.batch.stream_facts import StreamFacts
from wavestitch.contracts.chunk_metadata import MAX_TIME_NS
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.reading.published_rows import find_published, list_published
from wavestitch.reading.source_map import map_of_stream
from wavestitch.reading.waveform_view import KeptBlocks, view_of
from wavestitch.settings import load_settings, stream_names
from wavestitch.ui.answer import note_answer, page_answer
from wavestitch.ui.asked import Said, Told, asked
from wavestitch.ui.guest import guest_deployment
from wavestitch.ui.guest_sentence import said_to_guests
from wavestitch.ui.looks import About, Looks
from wavestitch.ui.map_pages import map_facts, map_page
from wavestitch.ui.rights import readable_streams, requires_stream
from wavestitch.ui.view_answer import AskedPart, NotThere, asked_part, view_answer
from wavestitch.ui.waveform_facts import list_facts, one_facts, view_facts
from wavestitch.ui.waveform_pages import Search, streams_page, waveform_page, waveforms_page

Id = Annotated[str, Query(alias="id", min_length=1, max_length=2000)]
At = Annotated[int | None, Query(ge=-MAX_TIME_NS, le=MAX_TIME_NS)]


def add_waveform_routes(app: FastAPI, router: APIRouter) -> None:
    # For what is asked alone: of no stream is looked at by its name.
    app.state.waveform_looks = Looks(StreamFacts, lambda known: known)
    app.state.kept_blocks = KeptBlocks()
    router.get("/waveforms/", response_class=HTMLResponse)(streams_with_waveforms)
    mine = [Depends(requires_stream)]
    for path, page in (("", waveforms_of_stream), ("/one", one_waveform), ("/map", map_of_waveforms)):
        router.get(f"/waveforms/{{stream}}{path}", response_class=HTMLResponse, dependencies=mine)(page)
    router.get("/waveforms/{stream}/view", response_class=JSONResponse, dependencies=mine)(samples_in_view)


def readable(user: GetUserDep) -> list[str]:
    """In a thread: the auth manager asks Airflow's database."""
    return readable_streams(stream_names(load_settings()), user)


async def streams_with_waveforms(request: Request, names: Annotated[list[str], Depends(readable)]) -> Response:
    return await page_answer(request, html=lambda: streams_page(names), facts=lambda: {"streams": names})


def search_of(
    id: Said = "", source: Said = "", channel: Said = "", start: Said = "", end: Said = "", after: Said = ""
) -> Search:
    return Search(id, source, channel, start, end, after)


async def waveforms_of_stream(request: Request, stream: str, search: Annotated[Search, Depends(search_of)]) -> Response:
    def said(problem: str) -> Told:
        """With the form, so that what was asked can be put right."""
        return Told(partial(waveforms_page, stream, search, None, problem), lambda: {"stream": stream, "note": problem})

    try:
        wanted, place = search.asked(), search.place()
    except BadInput as error:
        wrong = said(error.message)
        return await page_answer(request, html=wrong.html, facts=wrong.facts)

    def look() -> Told:
        try:
            found = list_published(guest_deployment().tables(stream), wanted, place)
        except Refused as error:
            return said(said_to_guests(error))
        return Told(partial(waveforms_page, stream, search, found), partial(list_facts, stream, found))

    return await _asked(request, f"Waveforms of {stream}", (stream, "list", repr(search)), look)


async def one_waveform(
    request: Request, stream: str, waveform: Id, at: At = None, chunk: Annotated[int, Query(ge=0, le=1 << 31)] = 0
) -> Response:
    def look() -> Told:
        deployment = guest_deployment()
        tables = deployment.tables(stream)
        found = find_published(tables, waveform, at)
        if found is None:
            raise _not_there(stream, waveform)
        head = tables.head()
        topic = deployment.stream(stream).topic if head is not None else None
        same = head is not None and head.topic_id == found.row["topic_id"]
        first = min(chunk, max(0, len(found.row["chunks"]) - 1))
        page = partial(waveform_page, stream, found.row, first, topic if same else None)
        return Told(page, partial(one_facts, stream, found.row, first))

    return await _asked(request, f"Waveforms of {stream}", (stream, "one", waveform, str(at), str(chunk)), look)


async def map_of_waveforms(request: Request, stream: str, search: Annotated[Search, Depends(search_of)]) -> Response:
    title = f"What there is of {stream}"
    try:
        wanted = search.asked()
    except BadInput as error:
        return await note_answer(request, title, error.message)

    def look() -> Told:
        found = map_of_stream(guest_deployment(), stream, wanted)
        return Told(partial(map_page, stream, search, found), partial(map_facts, stream, found))

    return await _asked(request, title, (stream, "map", repr(search)), look)


async def samples_in_view(
    request: Request, stream: str, waveform: Id, part: Annotated[AskedPart, Depends(asked_part)], at: At = None
) -> Response:
    """What the plot fetches."""
    kept: KeptBlocks = request.app.state.kept_blocks

    def look() -> dict[str, Any]:
        found = find_published(guest_deployment().tables(stream), waveform, at)
        if found is None:
            raise _not_there(stream, waveform)
        view = view_of(
            len(found.stored),
            (part.start, part.end),
            buckets=part.buckets,
            sample_format=found.row["sample_format"],
            parts=found.parts,
            kept=kept,
            key=(stream, *found.stored.key),
        )
        return view_facts(found.row, view)

    return await view_answer(request, (stream, "view", waveform, str(at), repr(part)), look)


async def _asked(request: Request, title: str, about: About, look: Callable[[], Told]) -> Response:
    return await asked(request, request.app.state.waveform_looks, title, about, look)


def _not_there(stream: str, waveform: str) -> NotThere:
    return NotThere(f"stream {stream} has published no waveform {waveform!r}; what is held of it is on the page Held")
