"""A page as it is answered: nothing in it runs, is fetched from elsewhere, is kept, or is shown inside other sites."""

from __future__ import annotations

from fastapi.responses import HTMLResponse

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'; "
    "form-action 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
}


def html_answer(text: str) -> HTMLResponse:
    return HTMLResponse(text, headers=HEADERS)
