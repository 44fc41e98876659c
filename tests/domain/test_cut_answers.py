"""Wherever the answer of a REST catalog is cut, it is one that did not come, and never what the catalog says."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest

from wavestitch.contracts.errors import Transient
from wavestitch.tables.catalog import CatalogSettings, open_catalog

_BODY = b'{"defaults": {}, "overrides": {}}'
_HEAD = b"HTTP/1.1 200 OK\r\nServer: a\r\nContent-Type: application/json\r\n"
_WITH_LENGTH = _HEAD + f"Content-Length: {len(_BODY)}\r\n\r\n".encode() + _BODY
_IN_CHUNKS = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + f"{len(_BODY):x}\r\n".encode() + _BODY + b"\r\n0\r\n\r\n"
_TO_THE_END = _HEAD + b"\r\n" + _BODY
_BY_A_PROXY = _TO_THE_END.replace(b"200 OK", b"203 Non-Authoritative Information")


@contextmanager
def answering(answer: bytes) -> Iterator[CatalogSettings]:
    """A server that says this to whatever it is asked, and closes the connection."""

    def serve() -> None:
        while True:
            try:
                taken, _ = server.accept()
            except OSError:
                return
            with taken:
                while b"\r\n\r\n" not in taken.recv(65536):
                    pass
                taken.sendall(answer)

    with socket.create_server(("127.0.0.1", 0), backlog=50) as server:
        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield CatalogSettings("rest", f"http://127.0.0.1:{server.getsockname()[1]}", "file:///w", {"type": "rest"})
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    "whole", [_WITH_LENGTH, _IN_CHUNKS, _TO_THE_END, _BY_A_PROXY], ids=["length", "chunks", "neither", "by a proxy"]
)
def test_an_answer_is_whole_or_did_not_come(whole: bytes) -> None:
    with answering(whole) as settings:
        open_catalog(settings)
    # Of the chunks' end two line ends may be missing: all that it says has come.
    for length in range(len(whole) - 4):
        with answering(whole[:length]) as settings, pytest.raises(Transient, match="did not answer"):
            open_catalog(settings)


@pytest.mark.parametrize("said", [b"Server: a", b"Content-Length: 0"])
def test_one_that_leads_elsewhere_and_does_not_say_where_to_did_not_come(said: bytes) -> None:
    whole = b"HTTP/1.1 307 Temporary Redirect\r\n" + said + b"\r\n"
    for length in range(len(whole) + 1):
        with answering(whole[:length]) as settings, pytest.raises(Transient, match="did not answer"):
            open_catalog(settings)
