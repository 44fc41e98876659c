"""Where the brokers of a cluster say that they are: asked over a connection of our own, before any client is made."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from wavestitch.kafka.client_settings import KafkaSettings, is_loopback
from wavestitch.kafka.connection import Connection, Disconnected, OutOfTime, login_would_leave, with_before
from wavestitch.kafka.kafka_python import metadata

_METADATA = 9
_FIRST_SECONDS = 2.0
"""One that is there answers in so much of the time; one that says nothing may not have it of all the others."""
_answered: dict[str, str] = {}
"""By the addresses of a cluster, the one that answered last: it is asked first, since each slice asks anew."""


def ask_cluster(
    settings: KafkaSettings, topics: Sequence[str], *, until: float, anew: bool = False
) -> tuple[dict[int, tuple[str, int]], Any]:
    """All brokers as they advertise themselves, and what is known of the topics, in that order; from the first one that
    answers. Who is only slow is asked once more, with its share of all the time that is left. `anew`: what was said
    last is not so, who said it is asked last. Raises `Disconnected` with what each of them said, `OutOfTime` where none
    had time to."""
    addresses = settings.bootstrap.split(",")
    if (last := _answered.get(settings.bootstrap)) is not None:
        first = addresses.index(last) + anew
        addresses = addresses[first:] + addresses[:first]
    heard: dict[str, Disconnected] = {}
    for most in (_FIRST_SECONDS, float("inf")) if len(addresses) > 1 else (float("inf"),):
        for n, address in enumerate(addresses):
            now = time.monotonic()
            share = now + min(most, (until - now) / (len(addresses) - n))
            try:
                found = _ask(settings, address, topics, until=share)
            except Disconnected as error:
                heard[address] = with_before(error, heard.get(address))
            else:
                _answered[settings.bootstrap] = address
                return found
    kind = OutOfTime if all(isinstance(e, OutOfTime) for e in heard.values()) else Disconnected
    raise kind("; ".join(e.message for e in heard.values()))


def _ask(
    settings: KafkaSettings, address: str, topics: Sequence[str], *, until: float
) -> tuple[dict[int, tuple[str, int]], Any]:
    host, _, port = address.rpartition(":")
    wanted = [metadata.MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    request = metadata.MetadataRequest[_METADATA](topics=wanted, allow_auto_topic_creation=False)
    with Connection(settings, host.strip("[]"), int(port), deadline=until) as connection:
        answer = connection.ask(request, deadline=until)
        with connection.told():
            by_name = {topic.name: topic for topic in answer.topics}
            return {b.node_id: (b.host, b.port) for b in answer.brokers}, [by_name[name] for name in topics]


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
