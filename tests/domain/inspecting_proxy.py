"""A company's proxy that inspects TLS: it answers for the host that was asked for, with a certificate of its own."""

from __future__ import annotations

import contextlib
import socketserver
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def inspecting_proxy(certificate: Path, files: Mapping[str, bytes]) -> Iterator[tuple[int, list[str]]]:
    """Its port on loopback, and what it was asked for within TLS. `files`: path to content; others are not found."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    asked: list[str] = []

    class Answer(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            if not _head(self.request).startswith(b"CONNECT "):
                return
            self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            # A client that does not trust us goes in the middle of the handshake.
            with contextlib.suppress(OSError), context.wrap_socket(self.request, server_side=True) as inner:
                while words := _head(inner).split():
                    method, path = words[0].decode(), words[1].decode()
                    asked.append(path)
                    content = files.get(path)
                    status = "404 Not Found" if content is None else "200 OK"
                    body = content or b""
                    inner.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
                    inner.sendall(b"" if method == "HEAD" else body)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1], asked
        finally:
            server.shutdown()
            thread.join()


def _head(connection: ssl.SSLSocket) -> bytes:
    found = b""
    while not found.endswith(b"\r\n\r\n") and (more := connection.recv(1)):
        found += more
    return found
