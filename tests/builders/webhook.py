"""A webhook on loopback that keeps what it was told."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Webhook:
    """`status`: what it answers with; `headers`: what besides. `calls`: path, headers and body of each call; that is
    empty where it is no JSON, and is in `bodies` as it came."""

    address: str = ""
    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connects: list[str] = field(default_factory=list)
    """Whom it was asked to reach, as a proxy."""

    @property
    def told(self) -> list[dict[str, Any]]:
        return [body for _, _, body in self.calls]

    @property
    def subjects(self) -> list[str]:
        return [str(body["subject"]) for body in self.told]


@contextmanager
def listening_webhook() -> Iterator[Webhook]:
    """A real server, for as long as it is asked for."""
    webhook = Webhook()

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            webhook.bodies.append(body)
            said = json.loads(body) if self.headers["Content-Type"] == "application/json" else {}
            webhook.calls.append((self.path, dict(self.headers), said))
            self.send_response(webhook.status)
            for name, value in webhook.headers.items():
                self.send_header(name, value)
            self.end_headers()

        do_GET = do_POST

        def do_CONNECT(self) -> None:
            webhook.connects.append(self.path)
            self.send_error(502)

        def log_message(self, *_said: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    webhook.address = f"http://127.0.0.1:{server.server_address[1]}/told"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield webhook
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def dripping_webhook() -> Iterator[str]:
    """One that takes the call and answers with a byte now and then, for ever."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            called, _ = server.accept()
            with called:
                called.sendall(b"HTTP/1.1 200 OK\r\nX-Patience: ")
                while not over.wait(0.1):
                    called.sendall(b"x")

        dripping = threading.Thread(target=drip, daemon=True)
        dripping.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        finally:
            over.set()
            dripping.join(10)
