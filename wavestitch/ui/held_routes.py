"""The routes of what is held, by rights on the stream's DAG, all of them GET. Asks in the looks' threads."""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from wavestitch.batch.deployment import Deployment
from wavestitch.batch.held_page import held_list, held_one
from wavestitch.contracts.errors import WavestitchError
from wavestitch.contracts.quantities import epoch_ms
from wavestitch.ui.answer import html_answer
from wavestitch.ui.held_pages import Filters, held_list_page, held_one_page
from wavestitch.ui.pages import note_page

_LATE = "The tables have not answered yet; load the page again in a moment."
Said = Annotated[str, Query(max_length=2000)]


async def held_of_stream(
    request: Request, stream: str, reason: Said = "", source: Said = "", age: Said = "", after: Said = ""
) -> HTMLResponse:
    filters = Filters(reason, source, age, after)

    def look() -> str:
        wanted = filters.selection(now=epoch_ms(time.time_ns()))
        return held_list_page(stream, filters, held_list(Deployment(), stream, wanted))

    return await _asked(request, f"Held of {stream}", (stream, f"held {filters!r}"), look)


async def held_waveform(
    request: Request, stream: str, waveform: Annotated[str, Query(alias="id", max_length=2000)]
) -> HTMLResponse:
    title = f"Held of {stream}"

    def look() -> str:
        found = held_one(Deployment(), stream, waveform)
        return held_one_page(stream, found) if found is not None else note_page(title, "Nothing of it is held.")

    return await _asked(request, title, (stream, f"held one {waveform!r}"), look)


async def _asked(request: Request, title: str, about: tuple[str, str], look: Callable[[], str]) -> HTMLResponse:
    """The page that the look makes, by everybody who asks the same while it is under way."""
    try:
        found = await request.app.state.looks.ask(about, look)
    except WavestitchError as error:
        return html_answer(note_page(title, error.message))
    return html_answer(note_page(title, _LATE) if found is None else found)
