"""The topics of the streams that are declared: made where there are none, with as many copies as the brokers say.

Whoever writes a stream's file takes nothing away from another one: a file that cannot be read, and a topic that the
cluster refuses, is said, and the others go on. Of too many files those count that count everywhere (`most_streams`).
"""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from wavestitch.contracts.errors import BadInput, Transient
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.clients import open_admin
from wavestitch.kafka.kafka_errors import kafka_error, translate
from wavestitch.stream_files import Declared, read_streams

PARTITIONS = 3
_SECONDS = 10


def make_topics(found: Declared, kafka: KafkaSettings, *, say: Callable[[str], None]) -> None:
    """Of the streams that are read. Says what is made and what is not. Raises what hinders all of them: nobody answers,
    or the login is refused."""
    if found.sentence:
        say(found.sentence)
    admin = open_admin(kafka)
    try:
        there = set(admin.list_topics(timeout=_SECONDS).topics)
    except KafkaException as raised:
        raise translate(kafka_error(raised), f"asking {kafka.bootstrap} for its topics") from None
    for name, stream in read_streams(found).items():
        if isinstance(stream, BadInput):
            say(stream.message)
        elif stream.topic not in there:
            there.add(stream.topic)
            say(f"topic {stream.topic}, of stream {name}: {_outcome(admin, kafka, stream.topic)}")


def _outcome(admin: AdminClient, kafka: KafkaSettings, topic: str) -> str:
    try:
        admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS, replication_factor=-1)])[topic].result(_SECONDS)
    except KafkaException as raised:
        refused = kafka_error(raised)
        if refused.code() == KafkaError.TOPIC_ALREADY_EXISTS:  # another one was first
            return "is there"
        error = translate(refused, f"making it on {kafka.bootstrap}", rights="Create on the topic")
        if isinstance(error, Transient):
            raise error from None
        return f"not made, as its plans will say: {error.message}; then correct `topic` in the stream's file"
    return f"made, {PARTITIONS} partitions"
