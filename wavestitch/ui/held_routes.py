"""The routes of what is held, by rights on the stream's DAG, all of them GET. Asks in the looks' threads; samples,
which take longer, in those of the waveforms."""
# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import time
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.responses import Response

from wavestitch.batch.held_page import MOST_CHUNKS, held_list, held_one
from wavestitch.batch.held_waveforms import Crowd
from wavestitch.contracts.errors import BadInput, Refused
from wavestitch.contracts.harmless import in_shell
from wavestitch.contracts.held_choice import check_pick
from wavestitch.contracts.quantities import epoch_ms
from wavestitch.reading.held_samples import held_samples
from wavestitch.reading.waveform_view import KeptBlocks, view_of
from wavestitch.ui.answer import note_answer
from wavestitch.ui.asked import Said, Told, asked
from wavestitch.ui.facts import held_list_facts, held_one_facts
from wavestitch.ui.guest import guest_deployment
from wavestitch.ui.held_pages import Filters, drawn_of, held_list_page, held_one_page
from wavestitch.ui.view_answer import AskedPart, NotThere, asked_part, view_answer
from wavestitch.ui.waveform_facts import partial_view_facts

Id = Annotated[str, Query(alias="id", max_length=2000)]
NOTHING = "Nothing of it is held."


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

    return await asked(request, request.app.state.looks, title, (stream, "held", repr(filters)), look)


async def held_waveform(
    request: Request,
    stream: str,
    waveform: Id,
    after: Annotated[int, Query(ge=0, le=MOST_CHUNKS)] = 0,
    copy: Said = "first",
) -> Response:
    title = f"Held of {stream}"
    try:
        check_pick(copy)
    except BadInput as error:
        return await note_answer(request, title, error.message)

    def look() -> Told | str:
        found = held_one(guest_deployment(), stream, waveform, copy)
        if found is None:
            return NOTHING
        if isinstance(found, Crowd):
            return _too_many(stream, waveform, found)
        page = partial(held_one_page, stream, found, first=after, copy=copy)
        return Told(page, partial(held_one_facts, stream, found, after))

    about = stream, "held one", waveform, str(after), copy
    return await asked(request, request.app.state.looks, title, about, look)


async def held_samples_in_view(
    request: Request,
    stream: str,
    waveform: Id,
    part: Annotated[AskedPart, Depends(asked_part)],
    copy: Said = "first",
) -> Response:
    """What the plot fetches, of the chunks that are there."""
    kept: KeptBlocks = request.app.state.kept_blocks

    def look() -> dict[str, Any]:
        try:
            check_pick(copy)
        except BadInput as error:
            raise Refused(error.message) from error
        deployment = guest_deployment()
        found = held_one(deployment, stream, waveform, copy)
        if found is None:
            raise NotThere(NOTHING)
        if isinstance(found, Crowd):
            raise Refused(_too_many(stream, waveform, found))
        about = drawn_of(found)
        if isinstance(about, str):
            raise Refused(about)
        view = view_of(
            about.samples,
            (part.start, part.end),
            buckets=part.buckets,
            sample_format=about.metadata.sample_format,
            parts=partial(held_samples, deployment.tables(stream), found.mark, about),
            kept=kept,
            key=(stream, about.digest),
        )
        return partial_view_facts(about, view)

    return await view_answer(request, (stream, "held view", waveform, copy, repr(part)), look)


def _too_many(stream: str, waveform: str, crowd: Crowd) -> str:
    return (
        f"{crowd.rows} chunks of it are held, more than the {MOST_CHUNKS} that a page looks at: "
        f"`wavestitch held {stream} show {in_shell(waveform)}` shows them"
    )
