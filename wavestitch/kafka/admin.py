"""What the cluster is asked, by readers and producers alike: admin clients, and facts about a topic.

Asks and never creates. Every answer comes within the deadline or is an error of ours; one that a broker does not let us
in is told at once, although the client itself would go on trying. One broker that has died keeps no answer away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import ConfigResource

from wavestitch.contracts.errors import Refused
from wavestitch.contracts.ports import TopicView
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.hedged_requests import (
    DEADLINE_SECONDS,
    NOBODY_SECONDS,
    Client,
    Failed,
    Question,
    ask_hedged,
    call_in_turn,
)
from wavestitch.kafka.kafka_errors import READER_RIGHTS, is_refused_login, kafka_error, translate

R = TypeVar("R")
_NO_ID = Uuid(0, 0)
"""What the client makes of it that a broker gives none."""
_NO_TOPIC = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART).name()


class Admin:
    """`deadline` (seconds) bounds every question; `nobody` those where no broker can be reached at all. `rights`: what
    to ask for where the broker does not let us ask."""

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        deadline: float = DEADLINE_SECONDS,
        nobody: float = NOBODY_SECONDS,
        rights: str = READER_RIGHTS,
    ) -> None:
        self.deadline = deadline
        self._nobody = nobody
        self._settings = settings
        self._rights = rights
        self._client = Client(settings)
        self._complaint: tuple[float, KafkaError] | None = None
        self._refusal: tuple[float, KafkaError] | None = None

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
            append_time=options["message.timestamp.type"].value == "LogAppendTime",
        )

    def partitions(self, name: str) -> int:
        """How many; raises `Refused` where there is no such topic."""
        return len(self._described(name).partitions)

    def max_message_bytes(self, name: str) -> int:
        """The topic's bound on a record batch, headers included."""
        return int(self._options(name)["max.message.bytes"].value)

    def ask(self, question: Question, doing: Callable[[Any], str], *, found: bool = False) -> dict[Any, Any]:
        """The answers by what they are about, or an error of ours. `doing`: what was asked and where, by answer.
        `found`: it is about a topic that was found just now, or partitions of it."""
        most = {"seconds": self.deadline, "nobody": self._nobody}
        try:
            self._client, answers = ask_hedged(self._client, question, **most, found=found)
        except Failed as failed:
            self._client = Client(self._settings)
            raise translate(failed.error, doing(failed.about), rights=self._rights, found=found) from failed
        return answers

    def call(self, call: Callable[[Any, float], R], doing: str) -> R:
        """The same of what a client only does while its caller waits: it is given so many seconds."""
        try:
            self._client, found = call_in_turn(self._client, call, seconds=self.deadline, nobody=self._nobody)
        except Failed as failed:
            self._client = Client(self._settings)
            raise translate(failed.error, doing, rights=self._rights) from failed
        return found

    def refused_since(self, began: float) -> KafkaError | None:
        """A consumer's complaint that it is not let in, if it is of this time (`time.monotonic()`) or later."""
        return self._refusal[1] if self._refusal is not None and self._refusal[0] >= began else None

    def error(self, raised: KafkaException, doing: str) -> Exception:
        """A consumer's error about partitions as one of ours, with what it complained of while it waited."""
        error = kafka_error(raised)
        if error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT):
            # What the client complained of while it waited explains more than the timeout that it led to.
            since = time.monotonic() - self.deadline - 1
            known = self._complaint[1] if self._complaint is not None and self._complaint[0] >= since else error
            error = self.refused_since(since) or known
        return translate(error, doing, rights=self._rights, found=True)

    def remember(self, error: KafkaError) -> None:
        """What a consumer says that is about no request. A refusal stays beside what comes after it: the client goes on
        to say that no broker is left, often in the same moment."""
        self._complaint = time.monotonic(), error
        if is_refused_login(error):
            self._refusal = self._complaint

    def _described(self, name: str) -> Any:
        at = self._settings.bootstrap
        asked = TopicCollection([name])
        try:
            return self.ask(
                lambda client, seconds: client.describe_topics(asked, request_timeout=seconds),
                lambda _: f"looking up topic {name} at {at}",
            )[name]
        except Refused as refused:
            if refused.facts.get("code") != _NO_TOPIC:
                raise
            raise Refused(
                f"topic {name} does not exist at {at}; create it, or correct the stream's `topic`", topic=name
            ) from refused

    def _options(self, name: str) -> Mapping[str, Any]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        found: Mapping[str, Any] = self.ask(
            lambda client, seconds: client.describe_configs([resource], request_timeout=seconds),
            lambda _: f"reading the configuration of topic {name}",
            found=True,
        )[resource]
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
