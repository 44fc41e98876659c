"""What a reader says where the log has lost what the plan covers: by retention, an election, compaction, a new one."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.admin import ResourceType

from tests.broker.reading_rig import (
    Rig,
    delete_before,
    delete_topic,
    wait_for,
)
from wavestitch.contracts.errors import DataLost, Refused
from wavestitch.contracts.quantities import Partition

BOTH_WAYS = True


@pytest.mark.parametrize("log_start, lost", [(30, [0, 30]), (100, [0, 60])])
def test_what_retention_took_before_the_reading_is_named(
    rig: Rig, topic_factory: Any, log_start: int, lost: list[int]
) -> None:
    topic = topic_factory()
    rig.sender(topic).send(100)
    plan = rig.plan(topic, [[(0, 0, 60)]])
    delete_before(rig.bootstrap, topic, log_start)
    with pytest.raises(DataLost) as found:
        rig.read(plan)
    assert found.value.facts["offsets"] == [lost]
    assert found.value.facts["log_start"] == log_start
    assert rig.files() == []


def test_what_retention_takes_during_the_reading_is_named_with_what_had_come_of_it(
    rig: Rig, topic_factory: Any
) -> None:
    topic = topic_factory(configs={"max.message.bytes": "2000000"})
    rig.sender(topic, value_bytes=500_000).send(200)  # three times what a client keeps ready
    read = [0]

    def overtake(records: int, _size: int) -> None:
        if not read[0]:
            delete_before(rig.bootstrap, topic, 190)
        read[0] = records

    with pytest.raises(DataLost) as found:
        rig.read(rig.plan(topic, [[(0, 0, 200)]]), progress=overtake)
    assert found.value.facts["offsets"] == [[0, 190]]
    said = re.search(r"\[0, 190\) were deleted before .*reading \[0, 200\) had come to (\d+),", found.value.message)
    assert said is not None, found.value.message
    assert read[0] <= int(said[1]) < 190
    assert rig.files() == []


def test_a_log_that_ends_before_the_plan_was_cut_off(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    rig.sender(topic).send(10)
    with pytest.raises(DataLost) as found:
        rig.read(rig.plan(topic, [[(0, 0, 15)]], idle_deadline=1))
    assert found.value.facts["offsets"] == [[10, 15]]
    with pytest.raises(DataLost):
        rig.read(rig.plan(topic, [[(0, 12, 15)]], idle_deadline=1))


def test_records_of_a_later_leader_epoch_than_the_plan_are_not_those_that_were_planned(
    rig: Rig, topic_factory: Any
) -> None:
    topic = topic_factory()
    rig.sender(topic).send(10)
    epoch = rig.log.ends(topic, [Partition(0)])[Partition(0)].leader_epoch
    assert epoch is not None
    for careful in (False, True):
        rig.read(rig.plan(topic, [[(0, 0, 10)]], epochs=epoch), careful=careful)
        assert rig.epochs == [epoch]
        with pytest.raises(DataLost, match=f"leader epoch {epoch}, the plan was made in epoch {epoch - 1}"):
            rig.read(rig.plan(topic, [[(0, 0, 10)]], epochs=epoch - 1), careful=careful)


def test_nor_is_what_was_aborted_in_a_later_leader_epoch(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    rig.sender(topic, transactional=True).abort(4)
    assert rig.settled_end(topic) == 5
    epoch = rig.log.ends(topic, [Partition(0)])[Partition(0)].leader_epoch
    assert epoch is not None
    assert rig.read(rig.plan(topic, [[(0, 0, 4)]], epochs=epoch)) == []
    assert rig.epochs == [epoch]
    with pytest.raises(DataLost, match=f"leader epoch {epoch}, the plan was made in epoch {epoch - 1}"):
        rig.read(rig.plan(topic, [[(0, 0, 4)]], epochs=epoch - 1))


def test_a_missing_topic_is_refused(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    plan = rig.plan(topic, [[(0, 0, 10)]])
    delete_topic(rig.bootstrap, topic)
    with pytest.raises(Refused, match=f"topic {topic} does not exist"):
        rig.read(plan)


def test_a_topic_that_was_made_again_is_refused(rig: Rig, topic_factory: Any, make_topic: Any) -> None:
    topic = topic_factory()
    plan = rig.plan(topic, [[(0, 0, 10)]])
    rig.recreate(topic, make_topic)
    rig.sender(topic).send(10)
    with pytest.raises(Refused, match="was deleted and made again") as refused:
        rig.read(plan)
    assert refused.value.facts["planned"] == plan.topic_id
    assert rig.files() == []


def test_a_topic_that_is_made_again_during_the_reading_is_refused(
    rig: Rig, topic_factory: Any, make_topic: Callable[..., None]
) -> None:
    topic = topic_factory()
    rig.sender(topic, value_bytes=100_000).send(100)
    done: list[bool] = []

    def recreate(_records: int, _size: int) -> None:
        if not done:
            done.append(True)
            rig.recreate(topic, make_topic)
            rig.sender(topic, value_bytes=100_000).send(100)

    with pytest.raises(Refused, match="was deleted and made again"):
        rig.read(rig.plan(topic, [[(0, 0, 100)]], idle_deadline=3), progress=recreate)
    assert rig.files() == []


def test_a_compacted_topic_is_refused(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory(configs={"cleanup.policy": "compact,delete"})
    rig.sender(topic).send(3)
    with pytest.raises(Refused, match="is compacted"):
        rig.read(rig.plan(topic, [[(0, 0, 3)]]))


def test_a_log_that_was_compacted_in_the_past_names_the_offsets_that_are_gone(rig: Rig, topic_factory: Any) -> None:
    eager = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01", "min.compaction.lag.ms": "0"}
    topic = topic_factory(configs={"cleanup.policy": "compact", **eager})
    # A broker looks for logs to clean four times a minute, unless it is told otherwise.
    for node in rig.nodes():
        rig.configure(ResourceType.BROKER, node, {"log.cleaner.backoff.ms": "100"})
    sender = rig.sender(topic)
    sender.send(50)
    time.sleep(0.2)  # longer than segment.ms: the next record begins a new segment, and the old one may be cleaned
    sender.send(10)
    wait_for(lambda: rig.first_delivered(topic) == {49}, seconds=60)
    rig.configure(ResourceType.TOPIC, topic, {"cleanup.policy": "delete"})
    wait_for(lambda: not rig.log.topic(topic).compacted)
    with pytest.raises(DataLost, match=r"offsets \[0, 49\) hold no record, no marker and nothing that") as lost:
        rig.read(rig.plan(topic, [[(0, 0, 60)]]))
    assert lost.value.facts["offsets"] == [[0, 49]]
    assert rig.files() == []
    assert len(rig.read(rig.plan(topic, [[(0, 49, 60)]]))) == 11
