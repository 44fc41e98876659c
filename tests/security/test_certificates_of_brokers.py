"""A broker whose certificate nobody vouches for is told as that at once, also over our own connection."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest

from tests.security.certificates import make_certificates
from wavestitch.contracts.errors import BadInput, Terminal
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.connection import Connection, Disconnected


def test_our_own_connection_says_that_nobody_vouches_for_the_broker_and_not_that_it_is_away(tmp_path: Path) -> None:
    made = make_certificates(tmp_path, address="127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.server)

    def serve() -> None:
        plain, _ = listening.accept()
        with contextlib.suppress(OSError), plain:
            context.wrap_socket(plain, server_side=True)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        host, port = listening.getsockname()
        options = {"security.protocol": "ssl", "ssl.ca.location": str(made.stranger)}
        with pytest.raises(Terminal, match=r"is not spoken to: .*check certificates"):
            Connection(KafkaSettings(f"{host}:{port}", options), host, port, deadline=time.monotonic() + 10)
    with pytest.raises(Disconnected):
        Connection(KafkaSettings(f"{host}:{port}", options), host, port, deadline=time.monotonic() + 10)


def test_a_connection_that_comes_to_no_tls_is_closed_at_once_and_not_by_who_clears_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        host, port = listening.getsockname()
        settings = KafkaSettings(f"{host}:{port}", {"security.protocol": "ssl", "ssl.sigalgs.list": "RSA+SHA256"})
        with pytest.raises(BadInput, match=r"ssl\.sigalgs\.list") as held:
            Connection(settings, host, port, deadline=time.monotonic() + 10)
        with listening.accept()[0] as plain:
            plain.settimeout(10)
            assert plain.recv(1) == b""
        assert held.tb is not None  # as long as that is there, so is all that was at work
