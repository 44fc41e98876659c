"""A page as it is answered: nothing from elsewhere runs or is fetched, nothing is kept, or is shown inside other sites.

Each page is answered as JSON, too, to whoever asks for that: the same facts, by the same rights.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from typing import Any

from fastapi import HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from wavestitch.ui.pages import note_page

_CLOSED = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; form-action 'none'; base-uri 'none'"
_SCRIPTED = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
    "frame-ancestors 'self'; form-action 'self'; base-uri 'none'"
)
"""For our own pages, whose scripts are files of the package: none that stands in a page is ever run."""
_PAGES = ThreadPoolExecutor(2, thread_name_prefix="wavestitch-pages")
"""Makes their texts: never the event loop, in which everybody waits, nor the pool that serves tasks' heartbeats."""
_SERVED = {".js": "text/javascript", ".css": "text/css"}
HEADERS = {
    "Content-Security-Policy": _CLOSED,
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "Vary": "Accept",
}


class PlainJson(JSONResponse):
    """In ASCII: what others wrote may have half a character in it, which no encoding has."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def html_answer(text: str, *, status: int = 200) -> HTMLResponse:
    """A page whose whole text others may have had a part in (Data Docs): without scripts."""
    return HTMLResponse(text, status_code=status, headers=HEADERS)


async def page_answer(
    request: Request, *, html: Callable[[], str], facts: Callable[[], Mapping[str, Any]], status: int = 200
) -> Response:
    """One of our own pages, or its facts where JSON is asked for (`?format=json`, or `Accept`)."""

    def made() -> Response:
        if wants_json(request):
            return PlainJson(facts(), status_code=status, headers=HEADERS)
        return HTMLResponse(html(), status_code=status, headers={**HEADERS, "Content-Security-Policy": _SCRIPTED})

    return await asyncio.get_running_loop().run_in_executor(_PAGES, made)


async def note_answer(
    request: Request, title: str, sentence: str, *, status: int = 200, late: bool = False
) -> Response:
    """A page that has one sentence to say. `late`: what was asked for comes yet, and the page asks again."""
    return await page_answer(
        request,
        html=lambda: note_page(title, sentence, root=_way_up(request), late=late),
        facts=lambda: {"title": title, "note": sentence, "late": late},
        status=status,
    )


def wants_json(request: Request) -> bool:
    """A browser names HTML before all else; a program that names JSON alone wants that."""
    said = request.query_params.get("format", "")
    if said:
        return said == "json"
    accepts = request.headers.get("accept", "")
    return "application/json" in accepts and "text/html" not in accepts


def _way_up(request: Request) -> str:
    """From this page to the first one: never an absolute path, since what is before it is the proxy's to say."""
    route = request.scope.get("route")
    return "../" * (getattr(route, "path", "/").count("/") - 1)


def script(name: str) -> Response:
    """One of the package's own scripts, or of those of others that it brings with it, and no other file: it is looked
    up by its whole name."""
    ours, theirs = (files("wavestitch.ui").joinpath(folder) for folder in ("scripts", "vendored"))
    for folder in (ours, *(found for found in theirs.iterdir() if found.is_dir())):
        for found in folder.iterdir():
            kind = _SERVED.get(f".{name.rpartition('.')[2]}")
            if found.name == name and kind is not None:
                return Response(found.read_text(encoding="utf-8"), media_type=kind, headers=HEADERS)
    raise HTTPException(404, "there is no such script")
