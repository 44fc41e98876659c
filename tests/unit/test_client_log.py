"""What Kafka's client says of itself is told once a minute, with how often it was said: a dead broker floods no log."""

from __future__ import annotations

import logging
from concurrent.futures import Future

import pytest

from wavestitch.kafka.client_log import AGAIN_S, SaidOnce, client_log
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.hedged_requests import Client, Failed, ask_hedged


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(client_log(), "filters", [SaidOnce(lambda: now[0])])
    return now


def say(client: int, what: str, *, after: int = 0, level: int = logging.ERROR) -> None:
    client_log().log(
        level, "%s [%s] %s", "FAIL", f"wavestitch#producer-{client}", f"{what} (after {after}ms in state CONNECT)"
    )


def test_what_is_said_again_by_whichever_client_waits_a_minute_and_is_counted(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    for n in range(100):
        say(n % 7, "kafka-1: Connection refused", after=n)
    say(1, "kafka-2: Connection refused")
    say(1, "kafka-1: Connection refused", level=logging.INFO)
    clock[0] = AGAIN_S
    say(3, "kafka-1: Connection refused", after=5)
    told = [r.getMessage() for r in caplog.records]
    assert ["kafka-1" in told[0], "kafka-2" in told[1]] == [True, True]
    assert told[2:] == [
        "FAIL [wavestitch#producer-3] kafka-1: Connection refused (after 5ms in state CONNECT) "
        "(said 99 times more since it was told last)"
    ]


def test_what_is_remembered_is_bounded(clock: list[float], caplog: pytest.LogCaptureFixture) -> None:
    for n in range(1000):
        say(1, f"kafka-{n} is gone")
    say(1, "kafka-999 is gone")
    say(1, "kafka-0 is gone")
    assert len(caplog.records) == 1001
    assert clock == [0.0]


def test_a_broker_that_refuses_connections_is_one_line_of_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger("wavestitch.kafka"), "filters", [])
    nowhere = Client(KafkaSettings("127.0.0.1:1"))
    with pytest.raises(Failed, match="brokers are down"):
        ask_hedged(nowhere, lambda *_: {"topic": Future()}, seconds=600.0, nobody=1.0)
    refused = [r.getMessage() for r in caplog.records if "refused" in r.getMessage()]
    assert len(refused) == 1, refused[:3]
