"""The broker of the local stack: a real one, on this machine only, and stopped exactly."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from wavestitch.contracts.errors import BadInput, Terminal
from wavestitch.local.broker import PORTS_FILE, Broker, run_kafka_tool, running_broker, start_broker, stop_broker
from wavestitch.local.process import start_time

LOOPBACK_HEX = "0100007F"


@dataclass(frozen=True)
class Starter:
    java_home: Path
    jars: Path

    def __call__(self, folder: Path, **more: Any) -> Broker:
        return start_broker(folder=folder, java_home=self.java_home, jars=self.jars, **more)


@pytest.fixture
def start(java_home: Path, kafka_jars: Path, tmp_path: Path) -> Iterator[Starter]:
    with ExitStack() as stop:
        stop.callback(stop_broker, tmp_path / "one")
        yield Starter(java_home, kafka_jars)


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0


def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        got: list[bytes] = []
        deadline = time.monotonic() + 30
        while len(got) < count and time.monotonic() < deadline:
            got += [m.value() for m in consumer.consume(count, 1.0) if m.error() is None]
        return got
    finally:
        consumer.close()


def listening_addresses(pid: int) -> set[str]:
    """The addresses, in hex, on which this process listens, over IPv4 and IPv6."""
    inodes = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(handle)
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    rows = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
    ]
    return {row[1].rpartition(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}


def test_what_is_produced_is_consumed(broker: Broker, topic_factory: Callable[..., str]) -> None:
    topic = topic_factory(partitions=1, configs={"max.message.bytes": "4194304"})
    values = [b"a", b"", b"c" * 100_000]
    produce(broker.bootstrap, topic, values)
    assert consume(broker.bootstrap, topic, 3) == values


def test_it_listens_on_this_machine_only(broker: Broker) -> None:
    assert listening_addresses(broker.pid) == {LOOPBACK_HEX}


def test_a_misspelt_topic_is_an_error_and_not_a_new_topic(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.timeout.ms": 3000})
    failures = []
    try:
        producer.produce("nobody-made-this", b"x", on_delivery=lambda error, _message: failures.append(error))
    except KafkaException as error:
        failures.append(error)
    producer.flush(10)
    assert failures[0] is not None
    assert "nobody-made-this" not in AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=10).topics


def test_it_outlives_who_started_it_and_keeps_data_and_address_when_stopped_or_killed(
    start: Starter, broker: Broker, make_topic: Callable[..., None], tmp_path: Path
) -> None:
    """One life, since each start takes seconds of both processors. The session's broker runs beside it."""
    folder = tmp_path / "one"
    code = (
        "import sys; from pathlib import Path; from wavestitch.local.broker import start_broker; "
        "start_broker(folder=Path(sys.argv[1]), java_home=Path(sys.argv[2]), jars=Path(sys.argv[3]))"
    )
    argv = [sys.executable, "-c", code, str(folder), str(start.java_home), str(start.jars)]
    subprocess.run(argv, check=True, timeout=120)
    first = running_broker(folder)
    assert first is not None
    assert AdminClient({"bootstrap.servers": first.bootstrap}).list_topics(timeout=10).brokers
    make_topic(first.bootstrap, "kept", 1, {})
    produce(first.bootstrap, "kept", [b"before"])

    # Stopping ends exactly this one.
    assert first.bootstrap != broker.bootstrap
    assert stop_broker(folder) is True
    assert running_broker(folder) is None
    assert start_time(first.pid) is None
    assert start_time(broker.pid) is not None
    make_topic(broker.bootstrap, f"still-here-{uuid.uuid4().hex}", 1, {})
    assert stop_broker(folder) is False

    second = start(folder)
    assert second.bootstrap == first.bootstrap
    assert consume(second.bootstrap, "kept", 1) == [b"before"]
    assert start(folder) == second, "starting it again is not starting another"
    produce(second.bootstrap, "kept", [b"then"])

    os.kill(second.pid, signal.SIGKILL)
    third = start(folder)
    assert third.pid != second.pid
    assert consume(third.bootstrap, "kept", 2) == [b"before", b"then"]

    # Its port is remembered, and replaced by another where somebody else has it.
    port = int(third.bootstrap.rpartition(":")[2])
    kept = (folder / PORTS_FILE).read_text()
    (folder / PORTS_FILE).write_text(kept[:-5])
    with pytest.raises(BadInput, match="what is kept of the broker's ports is not JSON; `wavestitch down` stops it"):
        running_broker(folder)
    assert stop_broker(folder) is True
    (folder / PORTS_FILE).write_text(kept)
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        with pytest.raises(BadInput, match=str(port)):
            start(folder, port=port)
        assert start(folder).bootstrap != third.bootstrap


def test_a_broker_that_dies_while_starting_says_why_and_where_its_log_is(start: Starter, tmp_path: Path) -> None:
    with pytest.raises(Terminal, match=r"no\.such\.Authorizer") as caught:
        start(tmp_path / "one", overrides={"authorizer.class.name": "no.such.Authorizer"})
    assert str(tmp_path / "one" / "broker.log") in caught.value.message
    assert running_broker(tmp_path / "one") is None


def test_kafkas_own_tools_run_against_it_and_a_failing_one_is_an_error(
    broker: Broker, topic_factory: Callable[..., str], java_home: Path, kafka_jars: Path
) -> None:
    topic = topic_factory(partitions=2)
    groups = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    address = ["--bootstrap-server", broker.bootstrap]
    reset = ["--reset-offsets", "--group", "g", "--topic", topic, "--to-earliest", "--execute"]
    run_kafka_tool(java_home, kafka_jars, groups, [*address, *reset])
    described = run_kafka_tool(java_home, kafka_jars, groups, [*address, "--describe", "--group", "g"])
    assert topic in described
    with pytest.raises(Terminal, match="ConsumerGroupCommand"):
        run_kafka_tool(java_home, kafka_jars, groups, [*address, "--no-such-option"])
