"""The routes of what is held, by rights on the stream's DAG, all of them GET. Asks in the looks' threads."""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import time
from functools import partial
from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response

from wavestitch.batch.held_page import MOST_CHUNKS, held_list, held_one
from wavestitch.batch.held_waveforms import Crowd
from wavestitch.contracts.errors import BadInput
from wavestitch.contracts.harmless import in_shell
from wavestitch.contracts.quantities import epoch_ms
from wavestitch.ui.answer import note_answer
from wavestitch.ui.asked import Said, Told, asked
from wavestitch.ui.facts import held_list_facts, held_one_facts
from wavestitch.ui.guest import guest_deployment
from wavestitch.ui.held_pages import Filters, held_list_page, held_one_page


async def held_of_stream(
    request: Request, stream: str, reason: Said = "", source: Said = "", age: Said = "", after: Said = ""
) -> Response:
    filters, title = Filters(reason, source, age, after), f"Held of {stream}"
    try:
        wanted = filters.selection(now=epoch_ms(time.time_ns()))
    except BadInput as error:
        return await note_answer(request, title, error.message)

    def look() -> Told:
        found = held_list(guest_deployment(), stream, wanted)
        return Told(partial(held_list_page, stream, filters, found), partial(held_list_facts, stream, found))

    return await asked(request, request.app.state.looks, title, (stream, f"held {filters!r}"), look)


async def held_waveform(
    request: Request,
    stream: str,
    waveform: Annotated[str, Query(alias="id", max_length=2000)],
    after: Annotated[int, Query(ge=0, le=MOST_CHUNKS)] = 0,
) -> Response:
    title = f"Held of {stream}"

    def look() -> Told | str:
        found = held_one(guest_deployment(), stream, waveform)
        if found is None:
            return "Nothing of it is held."
        if isinstance(found, Crowd):
            return (
                f"{found.rows} chunks of it are held, more than the {MOST_CHUNKS} that a page looks at: "
                f"`wavestitch held {stream} show {in_shell(waveform)}` shows them"
            )
        return Told(partial(held_one_page, stream, found, after), partial(held_one_facts, stream, found, after))

    return await asked(request, request.app.state.looks, title, (stream, f"held one {waveform!r} {after}"), look)
