"""What a producer must know of a topic before it sends: how many partitions, and how large a message may be.

Asks and never creates: describing a topic, unlike a producer's own look-up, does not bring it into being.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource

from wavestitch.contracts.errors import BadInput, Terminal, Transient, WavestitchError
from wavestitch.producers.delivery_verdict import is_terminal, said

_T = TypeVar("_T")


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
    try:
        admin = AdminClient({"log_level": 3, **settings})  # what fails is raised
    except (KafkaException, ValueError, TypeError) as error:
        raise BadInput(f"the client settings for topic {topic} are refused: {said(error)}") from None
    described = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout_seconds)
    partitions = len(_answer(described[topic], topic, timeout_seconds).partitions)
    if max_message_bytes is None:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        configured = admin.describe_configs([resource], request_timeout=timeout_seconds)
        max_message_bytes = int(_answer(configured[resource], topic, timeout_seconds)["max.message.bytes"].value)
    return TopicFacts(partitions, max_message_bytes)


def _answer(future: Future[_T], topic: str, timeout_seconds: float) -> _T:
    try:
        return future.result(timeout_seconds + 1)
    except TimeoutError:
        raise Transient(f"no broker described topic {topic} within {timeout_seconds:g} s", topic=topic) from None
    except KafkaException as error:
        raise _refusal(error.args[0], topic) from None


def _refusal(error: KafkaError, topic: str) -> WavestitchError:
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return BadInput(f"topic {topic} does not exist; create it, or correct its name", topic=topic)
    if is_terminal(error):
        return Terminal(
            f"the broker does not let us describe topic {topic}: {error.str()}; grant Describe and DescribeConfigs, "
            "or give the largest message size yourself",
            topic=topic,
            code=error.name(),
        )
    return Transient(f"topic {topic} could not be described: {error.str()}", topic=topic, code=error.name())
