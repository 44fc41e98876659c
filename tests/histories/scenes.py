"""One topic and one group to play a scenario on: in memory, or on a real broker. Both are seen through the same ports.

`Scene` is what a scenario may do to the world; what the product sees of it then goes through `log` and `read`.
"""

from __future__ import annotations

import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
)

from consumers.landed_file import open_landing
from consumers.log_view import KafkaLog
from consumers.range_scan import Source
from consumers.slice_reader import read_slice as read_slice_really
from tests.broker.reading_rig import Sender, delete_before, delete_topic
from tests.builders.ranges import span
from tests.builders.records import Letter, letter, metadata
from tests.deployment_rig import eventually
from tests.fakes.fake_log import FakeLog
from tests.fakes.fake_reader import read_slice
from tests.fakes.kept_partition import Visibility
from wavestitch.contracts.offset_range import OffsetRange
from wavestitch.contracts.ports import Log
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.kafka.client_settings import KafkaSettings

START_MS = 1_700_000_000_000
META = metadata(START_MS)


def chunk(number: int) -> Letter:
    return letter("w", number, number.to_bytes(2), meta=META, count=None)


class Scene(ABC):
    """What can be done to a topic and a group from outside."""

    log: Log
    topic: str
    group: str

    def __init__(self) -> None:
        self._sent = 0
        self._ids: list[str] = []

    def send(self, count: int, *, partition: int = 0, at_ms: int = 0) -> None:
        """Chunks, all of record time `START_MS + at_ms`, outside any transaction."""
        for one in self._chunks(count):
            self._put(one, partition, START_MS + at_ms)

    def _chunks(self, count: int) -> list[Letter]:
        self._sent += count
        return [chunk(n) for n in range(self._sent - count, self._sent)]

    def named(self, topic_id: str) -> str:
        """A name for a topic id that is the same in every world."""
        if topic_id not in self._ids:
            self._ids.append(topic_id)
        return f"topic id {self._ids.index(topic_id) + 1}"

    def read(self, start: int, end: int, *, partition: int = 0, topic_id: str = "") -> Any:
        """(offset, record time, bytes) of every record, and the holes."""
        found = topic_id or self.log.topic(self.topic).topic_id
        source = Source("waves", self.topic, found, self.group, 2)
        return self._read(source, span(partition, start, end))

    @abstractmethod
    def _put(self, one: Letter, partition: int, time_ms: int) -> None: ...
    @abstractmethod
    def _read(self, source: Source, slice_: OffsetRange) -> Any: ...
    @abstractmethod
    def fresh_producer(self) -> None:
        """Where the topic has become another: a client goes on with what it knew of it for a while."""

    @abstractmethod
    def begin(self, count: int, *, partition: int = 0, at_ms: int = 0) -> None: ...
    @abstractmethod
    def end(self, outcome: Visibility) -> None: ...
    @abstractmethod
    def delete_before(self, offset: int, *, partition: int = 0) -> None: ...
    @abstractmethod
    def recreate(self, partitions: int) -> None: ...
    @abstractmethod
    def grow(self) -> None: ...
    @abstractmethod
    def compact(self) -> None: ...
    @abstractmethod
    def reset(self, partition: int, offset: int) -> None: ...
    @abstractmethod
    def expire(self, partition: int) -> None: ...
    @abstractmethod
    def member(self) -> Any: ...


class FakeScene(Scene):
    """On `FakeLog`."""

    def __init__(self, partitions: int) -> None:
        super().__init__()
        self.topic, self.group = "waves", "waves-batches"
        self.memory = FakeLog(self.topic, partitions)
        self.log = self.memory

    def _put(self, one: Letter, partition: int, time_ms: int) -> None:
        self.memory.append(Partition(partition), time_ms, *one)

    def _read(self, source: Source, slice_: OffsetRange) -> Any:
        found, holes, _ = read_slice(self.memory, source, slice_)
        return [(r.offset, r.timestamp_ms, r.value) for r in found], holes

    def fresh_producer(self) -> None:
        """In memory there is no client."""

    def begin(self, count: int, *, partition: int = 0, at_ms: int = 0) -> None:
        for one in self._chunks(count):
            self.memory.append(Partition(partition), START_MS + at_ms, *one, Visibility.OPEN)

    def end(self, outcome: Visibility) -> None:
        self.memory.end_transactions(outcome, int(time.time() * 1000))

    def delete_before(self, offset: int, *, partition: int = 0) -> None:
        self.memory.retain_from(Partition(partition), Offset(offset))

    def recreate(self, partitions: int) -> None:
        self.memory.recreate(partitions)

    def grow(self) -> None:
        self.memory.add_partition()

    def compact(self) -> None:
        self.memory.compacted = True

    def reset(self, partition: int, offset: int) -> None:
        self.memory.reset_group(Partition(partition), Offset(offset))

    def expire(self, partition: int) -> None:
        self.memory.expire_group(Partition(partition))

    @contextmanager
    def member(self) -> Iterator[None]:
        self.memory.live_members = ["ada at 127.0.0.1"]
        yield
        self.memory.live_members = []


class BrokerScene(Scene):
    """On a real broker. `forget(group, topic, partition)`: deletes one offset, as its expiry does."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        folder: Path,
        *,
        make_topic: Callable[..., None],
        forget: Callable[[str, str, int], None],
    ) -> None:
        super().__init__()
        self.topic, self.group = topic, f"g-{uuid.uuid4().hex[:8]}"
        self._bootstrap, self._folder = bootstrap, folder
        self._make_topic, self._forget = make_topic, forget
        self._settings = KafkaSettings(bootstrap)
        self.log = KafkaLog(self._settings, deadline=3)
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._plain = Sender(bootstrap, topic)
        self._open: Sender | None = None

    def _put(self, one: Letter, partition: int, time_ms: int) -> None:
        self._record(self._plain, one, partition, time_ms)

    @staticmethod
    def _record(sender: Sender, one: Letter, partition: int, time_ms: int) -> None:
        sender.record(one.value, key=one.key, headers=list(one.headers), partition=partition, timestamp=time_ms)
        sender.flush()

    def _read(self, source: Source, slice_: OffsetRange) -> Any:
        folder = self._folder / uuid.uuid4().hex
        folder.mkdir()
        landed = read_slice_really(slice_, settings=self._settings, source=source, log=self.log, folder=folder)
        rows = open_landing(folder / landed.file).to_pylist() if landed.file else []
        return [(r["offset"], r["timestamp_ms"], r["payload"]) for r in rows], landed.holes

    def begin(self, count: int, *, partition: int = 0, at_ms: int = 0) -> None:
        if self._open is None:
            self._open = Sender(self._bootstrap, self.topic, transactional=True)
            self._open.begin()
        for one in self._chunks(count):
            self._record(self._open, one, partition, START_MS + at_ms)

    def end(self, outcome: Visibility) -> None:
        assert self._open is not None
        producer = self._open._producer
        if outcome is Visibility.COMMITTED:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
        self._open = None

    def delete_before(self, offset: int, *, partition: int = 0) -> None:
        delete_before(self._bootstrap, self.topic, offset, partition=partition)

    def recreate(self, partitions: int) -> None:
        delete_topic(self._bootstrap, self.topic)
        eventually(lambda: self.topic not in self._admin.list_topics(timeout=10).topics)
        self._make_topic(self._bootstrap, self.topic, partitions, {})

    def grow(self) -> None:
        there = len(self.log.topic(self.topic).partitions)
        asked = [NewPartitions(self.topic, there + 1)]
        self._admin.create_partitions(asked)[self.topic].result(30)

    def compact(self) -> None:
        entry = ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.topic, incremental_configs=[entry])
        self._admin.incremental_alter_configs([resource])[resource].result(30)

    def reset(self, partition: int, offset: int) -> None:
        asked = [ConsumerGroupTopicPartitions(self.group, [TopicPartition(self.topic, partition, offset)])]
        answer = self._admin.alter_consumer_group_offsets(asked)[self.group].result(30)
        assert all(at.error is None for at in answer.topic_partitions)

    def expire(self, partition: int) -> None:
        self._forget(self.group, self.topic, partition)

    @contextmanager
    def member(self) -> Iterator[None]:
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": self.group, "client.id": "ada", "fetch.wait.max.ms": 50}
        )
        consumer.subscribe([self.topic])
        try:
            eventually(lambda: bool(consumer.poll(0.1) or consumer.assignment()))
            yield
        finally:
            consumer.close()

    def fresh_producer(self) -> None:
        self._plain = Sender(self._bootstrap, self.topic)

    def close(self) -> None:
        if self._open is not None:
            self._open._producer.abort_transaction(30)


Step = tuple[str, Callable[[], Any]]
Scenario = Callable[[Scene], Iterator[Step]]
SCENARIOS: dict[str, tuple[int, Scenario]] = {}


def scenario(partitions: int = 1) -> Callable[[Scenario], Scenario]:
    """A generator of (what is looked at, the look); what it does to the scene happens in between."""

    def enter(play: Scenario) -> Scenario:
        SCENARIOS[play.__name__.replace("_", " ")] = partitions, play
        return play

    return enter


def everything(scene: Scene, numbers: Sequence[int] = (0,)) -> Iterator[Step]:
    """The looks that a plan takes."""
    partitions = [Partition(n) for n in numbers]

    def topic() -> Any:
        view = scene.log.topic(scene.topic)
        return scene.named(view.topic_id), view.partitions, view.compacted, view.max_message_bytes

    yield "topic", topic
    yield "ends", lambda: scene.log.ends(scene.topic, partitions)
    yield "group", lambda: scene.log.group_offsets(scene.group, scene.topic, partitions)
    yield "members", lambda: len(scene.log.members(scene.group))
