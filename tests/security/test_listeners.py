"""A login in the clear stays on this machine, whatever the brokers advertise; asked before any other client is made."""

from __future__ import annotations

import ast
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from consumers.log_view import KafkaLog
from wavestitch.contracts.errors import Refused
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.clients import open_admin, open_consumer, open_producer
from wavestitch.kafka.cluster_addresses import check_listeners
from wavestitch.kafka.connection import Connection
from wavestitch.kafka.kafka_python import metadata, sasl
from wavestitch.producers.sender import send_chunks

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ("Consumer", "Producer", "AdminClient", "SerializingProducer", "DeserializingConsumer")


class Bootstrap:
    """A broker on loopback that lets everybody in and names one broker elsewhere; keeps who connected."""

    def __init__(self, advertised: str) -> None:
        self._answers = {
            17: sasl.SaslHandshakeResponse[1](error_code=0, mechanisms=["PLAIN"]),
            36: sasl.SaslAuthenticateResponse[1](
                error_code=0, error_message=None, auth_bytes=b"", session_lifetime_ms=0
            ),
            3: metadata.MetadataResponse[9](
                throttle_time_ms=0,
                brokers=[
                    metadata.MetadataResponse.MetadataResponseBroker(node_id=1, host=advertised, port=9092, rack=None)
                ],
                cluster_id="c",
                controller_id=1,
                topics=[],
            ),
        }
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.asked: list[int] = []
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def settings(self) -> KafkaSettings:
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "ada"}
        return KafkaSettings(f"127.0.0.1:{self.listener.getsockname()[1]}", {**login, "sasl.password": "hush-1"})

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client:
                while head := client.recv(4, socket.MSG_WAITALL):
                    request = client.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
                    api, _, correlation = struct.unpack_from(">hhi", request)
                    self.asked.append(api)
                    body = self._answers[api].encode()
                    tagged = b"\0" if api == 3 else b""
                    client.sendall(struct.pack(">ii", 4 + len(tagged) + len(body), correlation) + tagged + body)


@pytest.fixture
def elsewhere() -> Iterator[Bootstrap]:
    made = Bootstrap("kafka.example")
    yield made
    made.listener.close()


def test_a_cluster_that_advertises_another_machine_is_refused_before_any_client_is_made(elsewhere: Bootstrap) -> None:
    with pytest.raises(Refused, match=r"names a broker at kafka\.example:9092 \(an advertised listener\)") as refused:
        KafkaLog(elsewhere.settings)
    assert "hush-1" not in refused.value.message
    assert elsewhere.asked == [17, 36, 3]


@pytest.mark.parametrize(
    "make",
    [
        lambda at: send_chunks([], topic="t", settings=at),
        lambda at: open_producer(at, own={}),
        lambda at: open_consumer(at, group="g", isolation="read_committed"),
        open_admin,
    ],
    ids=["a send", "a producer", "a reader", "an admin client"],
)
def test_a_send_and_every_client_of_ours_looks_at_the_listeners_first(elsewhere: Bootstrap, make: Any) -> None:
    with pytest.raises(Refused, match="the login would leave this machine"):
        make(elsewhere.settings)
    assert elsewhere.asked == [17, 36, 3]


def test_a_login_in_the_clear_goes_on_where_all_brokers_advertise_this_machine() -> None:
    here = Bootstrap("127.0.0.1")
    check_listeners(here.settings)
    assert here.asked == [17, 36, 3]
    here.listener.close()


def test_clients_are_made_in_one_place_alone() -> None:
    """A client that is made elsewhere would be made past the check. That of `local` speaks to a broker of its own."""
    made = [
        f"{path.relative_to(ROOT)}: {name}"
        for folder in ("wavestitch", "consumers", "spark_apps", "dags", "plugins")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        if (name := getattr(node.func, "id", getattr(node.func, "attr", ""))) in CLIENTS
    ]
    assert made == ["wavestitch/local/broker.py: AdminClient"]


def test_a_raw_connection_never_logs_in_elsewhere_in_the_clear(elsewhere: Bootstrap) -> None:
    with pytest.raises(Refused, match="the login would leave this machine"):
        Connection(elsewhere.settings, "192.0.2.1", 9092, deadline=0)
