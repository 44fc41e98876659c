"""What the cluster is asked, by readers and producers alike: one admin client, and facts about a topic.

Asks and never creates. Every answer comes within the deadline or is an error of ours; one that a broker does not let us
in is told at once, although the client itself would go on trying.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import ConfigResource

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.ports import TopicView
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.clients import open_admin
from wavestitch.kafka.kafka_errors import READER_RIGHTS, is_refused_login, kafka_error, translate

_NO_ID = Uuid(0, 0)
"""What the client makes of it that a broker gives none."""
_LOOK_SECONDS = 0.25
"""So often a request that has no answer yet is looked after."""
_GRACE_SECONDS = 5.0
"""The client gives up by itself at the deadline; if it does not, we do."""


class Admin:
    """`deadline` (seconds) bounds every request. `rights`: what to ask for where the broker does not let us ask."""

    def __init__(self, settings: KafkaSettings, *, deadline: float, rights: str = READER_RIGHTS) -> None:
        self.deadline = deadline
        self._settings = settings
        self._rights = rights
        self._complaint: tuple[float, KafkaError] | None = None
        self.client = open_admin(settings, on_error=self.remember)

    def topic(self, name: str) -> TopicView:
        """All that a plan rests on. Raises `Refused` where there is no such topic, or where it has no id."""
        found = self._described(name)
        topic_id = _identity(found.topic_id, name, self._settings.bootstrap)
        options = self._options(name)
        return TopicView(
            name=name,
            topic_id=topic_id,
            partitions=tuple(sorted(p.id for p in found.partitions)),
            compacted="compact" in options["cleanup.policy"].value,
            max_message_bytes=int(options["max.message.bytes"].value),
            compression=options["compression.type"].value,
            retention_ms=_retention(options, "retention.ms"),
            retention_bytes=_retention(options, "retention.bytes"),
        )

    def partitions(self, name: str) -> int:
        """How many; raises `Refused` where there is no such topic."""
        return len(self._described(name).partitions)

    def max_message_bytes(self, name: str) -> int:
        """The topic's bound on a record batch, headers included."""
        return int(self._options(name)["max.message.bytes"].value)

    def result(self, future: Future[Any], doing: str) -> Any:
        """The answer, or an error of ours. `doing`: what was asked and where."""
        try:
            return self.answer(future)
        except KafkaException as raised:
            raise self.error(raised, doing) from raised

    def answer(self, future: Future[Any]) -> Any:
        """The answer; the client's own complaint as soon as a broker does not let us in: it would go on trying."""
        began = time.monotonic()
        while True:
            try:
                return future.result(_LOOK_SECONDS)
            except TimeoutError:
                self.client.poll(0)
                refusal = self.refused_since(began)
                if refusal is not None:
                    raise KafkaException(refusal) from None
                if time.monotonic() - began > self.deadline + _GRACE_SECONDS:
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None

    def refused_since(self, began: float) -> KafkaError | None:
        """The client's complaint that it is not let in, if it is of this time (`time.monotonic()`) or later."""
        if self._complaint is None or self._complaint[0] < began or not is_refused_login(self._complaint[1]):
            return None
        return self._complaint[1]

    def error(self, raised: KafkaException, doing: str) -> Exception:
        """The error as one of ours, with what the client complained of while it waited."""
        error = kafka_error(raised)
        if error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT):
            self.client.poll(0)
            # What the client complained of while it waited explains more than the timeout that it led to.
            if self._complaint is not None and time.monotonic() - self._complaint[0] <= self.deadline + 1:
                error = self._complaint[1]
            # librdkafka (2.16) may wait for minutes for a node that has gone; a new client asks the others.
            self.client = open_admin(self._settings, on_error=self.remember)
        return translate(error, doing, rights=self._rights)

    def remember(self, error: KafkaError) -> None:
        """What the client says that is about no request."""
        self._complaint = (time.monotonic(), error)

    def _described(self, name: str) -> Any:
        at = self._settings.bootstrap
        futures = self.client.describe_topics(TopicCollection([name]), request_timeout=self.deadline)
        try:
            return self.answer(futures[name])
        except KafkaException as raised:
            if kafka_error(raised).code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise Refused(
                    f"topic {name} does not exist at {at}; create it, or correct the stream's `topic`", topic=name
                ) from None
            raise self.error(raised, f"looking up topic {name} at {at}") from raised

    def _options(self, name: str) -> Mapping[str, Any]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        configs = self.client.describe_configs([resource], request_timeout=self.deadline)
        found: Mapping[str, Any] = self.result(configs[resource], f"reading the configuration of topic {name}")
        return found


def _retention(options: Mapping[str, Any], key: str) -> int | None:
    """-1 means for ever; and where nothing is deleted, neither counts."""
    found = int(options[key].value)
    return None if found < 0 or "delete" not in options["cleanup.policy"].value else found


def _identity(topic_id: Any, topic: str, bootstrap: str) -> str:
    if topic_id is None or str(topic_id) == str(_NO_ID):
        raise Refused(
            f"the broker at {bootstrap} gives topic {topic} no topic id: a topic that was deleted and made again could "
            "not be told from it, and an offset could mean two records; use brokers of version 2.8 or later, with an "
            "inter-broker protocol from 2.8 on",
            topic=topic,
        )
    return str(topic_id)
