"""Where the brokers of a cluster say that they are: asked over a connection of our own, before any client is made."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from wavestitch.kafka.client_settings import KafkaSettings, is_loopback
from wavestitch.kafka.connection import Connection, Disconnected, login_would_leave
from wavestitch.kafka.kafka_python import metadata

_METADATA = 9


def ask_cluster(
    settings: KafkaSettings, topics: Sequence[str], *, until: float
) -> tuple[dict[int, tuple[str, int]], Any]:
    """All brokers as they advertise themselves, and what is known of the topics; from the first one that answers in its
    share of the time. Raises `Disconnected` with what each of them said."""
    addresses = settings.bootstrap.split(",")
    heard: list[str] = []
    for n, address in enumerate(addresses):
        host, _, port = address.rpartition(":")
        # A host that has gone refuses nothing: it may not have the time of those that are there.
        now = time.monotonic()
        share = now + (until - now) / (len(addresses) - n)
        try:
            with Connection(settings, host.strip("[]"), int(port), deadline=share) as connection:
                wanted = [metadata.MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
                answer = connection.ask(
                    metadata.MetadataRequest[_METADATA](topics=wanted, allow_auto_topic_creation=False),
                    deadline=share,
                )
        except Disconnected as error:
            heard.append(error.message)
            continue
        return {b.node_id: (b.host, b.port) for b in answer.brokers}, answer.topics
    raise Disconnected("; ".join(heard))


def check_listeners(settings: KafkaSettings, *, deadline: float = 10.0) -> None:
    """Refuses a login in the clear that a broker's advertised address would lead off this machine.

    Asked before any other client is made, of brokers on loopback alone. What the cluster advertises later is not seen.
    """
    if settings.protocol != "sasl_plaintext":
        return
    brokers, _ = ask_cluster(settings, [], until=time.monotonic() + deadline)
    for host, port in brokers.values():
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        if not is_loopback(where):
            raise login_would_leave(where)
