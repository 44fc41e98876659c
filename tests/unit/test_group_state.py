"""How long a group's coordinator is waited for: until it answers or the deadline is there, however often it says no."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition, Uuid

from consumers.group_state import commit_group, committed_offsets
from wavestitch.contracts.errors import Refused, Transient
from wavestitch.contracts.position import GroupOffset, Position
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.kafka.admin import _identity

MOVING = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE)


class Client:
    """A client whose coordinator says at once that it is none, until it has been asked `refusals` times."""

    def __init__(self, code: int, refusals: float) -> None:
        self.code = code
        self.refusals = refusals
        self.asked = 0

    def committed(self, wanted: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self.asked += 1
        if self.asked <= self.refusals:
            raise KafkaException(KafkaError(self.code))
        return [TopicPartition(at.topic, at.partition, 7) for at in wanted]

    def poll(self, _timeout: float) -> None:
        return None


def ask(client: Client, deadline: float) -> Any:
    return committed_offsets(client, "g", "t", [Partition(0)], deadline=deadline, refused=lambda: None)


@pytest.mark.parametrize("code", MOVING)
def test_a_coordinator_that_moves_is_asked_until_it_has_settled(code: int) -> None:
    assert ask(Client(code, refusals=8), 10) == {0: GroupOffset(Offset(7), "")}


def test_the_whole_deadline_is_waited_for_a_coordinator_that_never_settles_and_not_in_a_busy_loop() -> None:
    client, began = Client(KafkaError.NOT_COORDINATOR, refusals=float("inf")), time.monotonic()
    with pytest.raises(KafkaException):
        ask(client, 0.8)
    assert 0.8 <= time.monotonic() - began < 5
    assert client.asked <= 12


@pytest.mark.parametrize("given", [None, Uuid(0, 0)])
def test_a_broker_that_gives_no_topic_ids_is_refused_by_name(given: Uuid | None) -> None:
    with pytest.raises(Refused, match=r"gives topic waves no topic id: .* use brokers of version 2\.8 or later"):
        _identity(given, "waves", "k:9092")
    assert _identity(Uuid(1, 2), "waves", "k:9092") == str(Uuid(1, 2))


class LaggingCoordinator(Client):
    """It has not heard of the partition yet, and says so of each offset."""

    def __init__(self) -> None:
        super().__init__(0, 0)
        self.told: Any = None

    def committed(self, wanted: list[TopicPartition], timeout: float) -> list[Any]:
        error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
        return [SimpleNamespace(partition=at.partition, error=error) for at in super().committed(wanted, timeout)]

    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None:
        self.told(None, self.committed(offsets, 0.0))

    def close(self) -> None:
        pass


def test_a_coordinator_that_has_not_heard_of_a_partition_yet_is_no_topic_that_is_missing() -> None:
    client = LaggingCoordinator()

    def opened(told: Any) -> LaggingCoordinator:
        client.told = told
        return client

    what = "g", "t", {Partition(0): Position(Offset(7))}, ""
    for doing, call in (
        ("fetching the offset of", lambda: ask(client, 10)),
        ("committing the offsets of", lambda: commit_group(opened, *what, deadline=10, refused=lambda: None)),
    ):
        with pytest.raises(
            Transient,
            match=rf"{doing} group g on topic t partition 0 failed: .* not known to this broker yet; try again",
        ):
            call()
    assert client.asked == 2, "what may be written by now is looked at again before it is written again"


def test_another_error_is_raised_at_once() -> None:
    client = Client(KafkaError.GROUP_AUTHORIZATION_FAILED, refusals=float("inf"))
    with pytest.raises(KafkaException):
        ask(client, 10)
    assert client.asked == 1
