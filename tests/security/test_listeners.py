"""A login in the clear stays on this machine, whatever the brokers advertise; asked before any other client is made."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from consumers.log_view import KafkaLog
from wavestitch.contracts.errors import Refused
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.connection import Connection


class Bootstrap:
    """A broker on loopback that lets everybody in and names one broker elsewhere; keeps who connected."""

    def __init__(self, advertised: str) -> None:
        self._answers = {
            17: SaslHandshakeResponse[1](error_code=0, mechanisms=["PLAIN"]),
            36: SaslAuthenticateResponse[1](error_code=0, error_message=None, auth_bytes=b"", session_lifetime_ms=0),
            3: MetadataResponse[9](
                throttle_time_ms=0,
                brokers=[MetadataResponse.MetadataResponseBroker(node_id=1, host=advertised, port=9092, rack=None)],
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


def test_a_raw_connection_never_logs_in_elsewhere_in_the_clear(elsewhere: Bootstrap) -> None:
    with pytest.raises(Refused, match="the login would leave this machine"):
        Connection(elsewhere.settings, "192.0.2.1", 9092, deadline=0)
