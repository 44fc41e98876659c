"""A page whose contents a look finds: one look for all who ask the same meanwhile, shown as a page or as JSON. One that
comes too late is no error: the page says so, and asks again by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from wavestitch.contracts.errors import BadInput, WavestitchError
from wavestitch.ui.answer import note_answer, page_answer
from wavestitch.ui.guest_sentence import said_to_guests
from wavestitch.ui.looks import About, Looks

LATE = "The tables have not answered yet; the page asks again by itself."
Said = Annotated[str, Query(max_length=2000)]
"""What a form or a link says."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a look found, for people and for programs."""

    html: Callable[[], str]
    facts: Callable[[], dict[str, Any]]


async def asked(request: Request, looks: Looks, title: str, about: About, look: Callable[[], Told | str]) -> Response:
    """What the look found, or its sentence. Raises `BadInput`, which names files and streams and is not for everybody
    who may read this one."""
    try:
        found = await looks.ask(about, look)
    except BadInput:
        raise
    except WavestitchError as error:
        return await note_answer(request, title, said_to_guests(error))
    if found is None:
        return await note_answer(request, title, LATE, late=True)
    if isinstance(found, str):
        return await note_answer(request, title, found)
    return await page_answer(request, html=found.html, facts=found.facts)
