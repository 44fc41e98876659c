"""What a producer must know of a topic before it sends: how many partitions, and how large a message may be.

Asks and never creates: describing a topic, unlike a producer's own look-up, does not bring it into being.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource

from wavestitch.contracts.errors import BadInput, Terminal, Transient, WavestitchError
from wavestitch.producers.delivery_verdict import is_terminal, said

_T = TypeVar("_T")
_LOOK_SECONDS = 0.25
_LOGIN = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL)


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """`max_message_bytes` bounds a record batch, headers included."""

    partitions: int
    max_message_bytes: int


def ask_topic(
    topic: str, *, settings: Mapping[str, Any], timeout_seconds: float, max_message_bytes: int | None = None
) -> TopicFacts:
    """The facts of `topic`; with `max_message_bytes` given its configuration is not asked for.

    Raises `BadInput` for a topic that does not exist, `Terminal` where the broker refuses to answer, and
    `Transient` where it does not answer in time.
    """
    complaints: list[KafkaError] = []
    try:
        # What fails is raised.
        admin = AdminClient({"log_level": 3, "error_cb": complaints.append, **settings})
    except (KafkaException, ValueError, TypeError) as error:
        raise BadInput(f"the client settings for topic {topic} are refused: {said(error)}") from None
    described = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout_seconds)

    def answer(future: Future[_T]) -> _T:
        return _answer(future, topic, timeout_seconds, lambda: (admin.poll(0), _refused_login(complaints))[1])

    partitions = len(answer(described[topic]).partitions)
    if max_message_bytes is None:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        configured = admin.describe_configs([resource], request_timeout=timeout_seconds)
        max_message_bytes = int(answer(configured[resource])["max.message.bytes"].value)
    return TopicFacts(partitions, max_message_bytes)


def _answer(future: Future[_T], topic: str, timeout_seconds: float, refused: Callable[[], KafkaError | None]) -> _T:
    """The answer. The client goes on trying where a login is refused; whoever waits is told at once."""
    until = time.monotonic() + timeout_seconds + 1
    while time.monotonic() < until:
        try:
            return future.result(_LOOK_SECONDS)
        except TimeoutError:
            refusal = refused()
            if refusal is not None:
                raise _refusal(refusal, topic) from None
        except KafkaException as error:
            raise _refusal(refused() or error.args[0], topic) from None
    raise Transient(f"no broker described topic {topic} within {timeout_seconds:g} s", topic=topic)


def _refused_login(complaints: Sequence[KafkaError]) -> KafkaError | None:
    return next((c for c in complaints if c.code() in _LOGIN), None)


def _refusal(error: KafkaError, topic: str) -> WavestitchError:
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return BadInput(f"topic {topic} does not exist; create it, or correct its name", topic=topic)
    if error.code() in _LOGIN:
        return Terminal(
            f"the broker of topic {topic} does not let us in: {error.str()}; check user, password, certificates and "
            "security.protocol in the settings",
            topic=topic,
            code=error.name(),
        )
    if is_terminal(error):
        return Terminal(
            f"the broker does not let us describe topic {topic}: {error.str()}; grant Describe and DescribeConfigs, "
            "or give the largest message size yourself",
            topic=topic,
            code=error.name(),
        )
    return Transient(f"topic {topic} could not be described: {error.str()}", topic=topic, code=error.name())
