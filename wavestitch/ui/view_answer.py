"""What a plot fetches: a part of a waveform as JSON, whatever is asked for. Of what is published and of what is held
alike; reducing a long one takes seconds, which it does in threads of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response

from wavestitch.contracts.errors import BadInput, Refused, WavestitchError
from wavestitch.reading.waveform_view import MOST_BUCKETS
from wavestitch.ui.answer import HEADERS, PlainJson
from wavestitch.ui.asked import LATE
from wavestitch.ui.guest_sentence import said_to_guests
from wavestitch.ui.looks import About

_MOST_SAMPLES = 1 << 48
Sample = Annotated[int, Query(ge=0, le=_MOST_SAMPLES)]
Buckets = Annotated[int, Query(ge=16, le=MOST_BUCKETS)]


class NotThere(Refused):
    """There is no such waveform."""


@dataclass(frozen=True, slots=True)
class AskedPart:
    """Samples `[start, end)`, in at most so many buckets."""

    start: int
    end: int
    buckets: int


def asked_part(start: Sample = 0, end: Sample = _MOST_SAMPLES, buckets: Buckets = MOST_BUCKETS) -> AskedPart:
    return AskedPart(start, end, buckets)


async def view_answer(request: Request, about: About, look: Callable[[], dict[str, Any]]) -> Response:
    """`look` raises `NotThere` where there is no such waveform."""
    try:
        seen = await request.app.state.waveform_looks.ask(about, look)
    except BadInput:
        raise
    except WavestitchError as error:
        status = 404 if isinstance(error, NotThere) else 422
        return PlainJson({"note": said_to_guests(error)}, status_code=status, headers=HEADERS)
    if seen is None:
        return PlainJson({"note": LATE}, status_code=503, headers={**HEADERS, "Retry-After": "1"})
    return PlainJson(seen, headers=HEADERS)
