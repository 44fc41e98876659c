"""A server on loopback that nobody should send anything to: it keeps what it was sent, and has nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Stranger(BaseHTTPRequestHandler):
    """A server that remembers what it was sent."""

    seen: list[str]

    def do_GET(self) -> None:
        self.seen.append(f"{self.command} {self.path} {dict(self.headers)}")
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_POST = do_PUT = do_GET

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@contextmanager
def stranger() -> Iterator[tuple[str, list[str]]]:
    seen: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("H", (Stranger,), {"seen": seen}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
