"""The routes of what is held, by rights on the stream's DAG, all of them GET. Asks in the looks' threads."""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from wavestitch.batch.held_page import held_list, held_one
from wavestitch.contracts.errors import BadInput, WavestitchError
from wavestitch.contracts.quantities import epoch_ms
from wavestitch.ui.answer import note_answer, page_answer
from wavestitch.ui.facts import held_list_facts, held_one_facts
from wavestitch.ui.guest import guest_deployment
from wavestitch.ui.held_pages import Filters, held_list_page, held_one_page

LATE = "The tables have not answered yet; load the page again in a moment."


@dataclass(frozen=True, slots=True)
class Told:
    """What a look found, for people and for programs."""

    html: Callable[[], str]
    facts: Callable[[], dict[str, Any]]


Said = Annotated[str, Query(max_length=2000)]


async def held_of_stream(
    request: Request, stream: str, reason: Said = "", source: Said = "", age: Said = "", after: Said = ""
) -> Response:
    filters, title = Filters(reason, source, age, after), f"Held of {stream}"
    try:
        wanted = filters.selection(now=epoch_ms(time.time_ns()))
    except BadInput as error:
        return note_answer(request, title, error.message)

    def look() -> Told:
        found = held_list(guest_deployment(), stream, wanted)
        return Told(partial(held_list_page, stream, filters, found), partial(held_list_facts, stream, found))

    return await _asked(request, title, (stream, f"held {filters!r}"), look)


async def held_waveform(
    request: Request, stream: str, waveform: Annotated[str, Query(alias="id", max_length=2000)]
) -> Response:
    title = f"Held of {stream}"

    def look() -> Told | str:
        found = held_one(guest_deployment(), stream, waveform)
        if found is None:
            return "Nothing of it is held."
        return Told(partial(held_one_page, stream, found), partial(held_one_facts, stream, found))

    return await _asked(request, title, (stream, f"held one {waveform!r}"), look)


async def _asked(request: Request, title: str, about: tuple[str, str], look: Callable[[], Told | str]) -> Response:
    """What the look found, or its sentence, for everybody who asks the same while it is under way. Raises `BadInput`,
    which names files and streams and is not for everybody who may read this one."""
    try:
        found = await request.app.state.looks.ask(about, look)
    except BadInput:
        raise
    except WavestitchError as error:
        return note_answer(request, title, error.message)
    if isinstance(found, Told):
        return page_answer(request, html=found.html, facts=found.facts)
    return note_answer(request, title, found or LATE)
