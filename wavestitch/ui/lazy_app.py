"""An ASGI app that is made when the first request comes.

Airflow loads its plugins in every task's process: what only the API server needs would cost each task a second.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

Asgi = Callable[[Any, Any, Any], Awaitable[None]]


class LazyApp:
    def __init__(self, make: Callable[[], Asgi]) -> None:
        self._make = make
        self._app: Asgi | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._app is None:
            self._app = self._make()
        await self._app(scope, receive, send)


def make_pages() -> Asgi:
    from wavestitch.ui.app import make_app  # noqa: PLC0415 - loads Airflow's API server

    app: Asgi = make_app()
    return app
