"""A fetch that is sent before it is wanted: its answer is that fetch's alone, whatever else is asked meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.reading_rig import Rig
from wavestitch.contracts.quantities import LeaderEpoch, Offset, Partition
from wavestitch.kafka.raw_log import OutOfRange, RawLog

FIRST, MOST = Partition(0), 1 << 20


def first_offset(raw: RawLog, offset: int, partition: Partition = FIRST) -> int:
    return raw.fetch(partition, Offset(offset), most_bytes=MOST).batches[0].base_offset


def test_what_was_asked_ahead_is_what_the_next_fetch_gets(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    for _ in range(3):
        rig.sender(topic).send(1)
    with RawLog(rig.kafka, topic) as raw:
        assert first_offset(raw, 0) == 0
        raw.ask_ahead(FIRST, Offset(1), most_bytes=MOST)
        asked = raw._connections.copy()
        assert first_offset(raw, 1) == 1
        assert raw._connections == asked


def test_another_question_is_answered_as_if_nothing_had_been_asked_ahead(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory(partitions=2)
    for partition in (0, 0, 0, 1):
        rig.sender(topic).send(1, partition=partition)
    with RawLog(rig.kafka, topic) as raw:
        for _ in range(2):
            raw.ask_ahead(FIRST, Offset(1), most_bytes=MOST)
            assert first_offset(raw, 2) == 2
            raw.ask_ahead(FIRST, Offset(1), most_bytes=MOST)
            assert first_offset(raw, 0, Partition(1)) == 0
            raw.ask_ahead(FIRST, Offset(1), most_bytes=MOST)
            assert raw.epoch_end(FIRST, LeaderEpoch(0)) == 3
            raw.ask_ahead(FIRST, Offset(1), most_bytes=MOST)
            raw.ask_ahead(FIRST, Offset(2), most_bytes=MOST)
            assert first_offset(raw, 2) == 2
            assert first_offset(raw, 1) == 1


def test_an_error_is_told_by_the_fetch_that_wants_the_answer(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    rig.sender(topic).send(1)
    with RawLog(rig.kafka, topic) as raw:
        raw.ask_ahead(FIRST, Offset(9), most_bytes=MOST)
        with pytest.raises(OutOfRange):
            raw.fetch(FIRST, Offset(9), most_bytes=MOST)
        assert first_offset(raw, 0) == 0


def test_a_connection_that_was_lost_meanwhile_is_made_anew(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    rig.sender(topic).send(3)
    with RawLog(rig.kafka, topic) as raw:
        assert first_offset(raw, 0) == 0
        raw.ask_ahead(FIRST, Offset(0), most_bytes=MOST)
        (connection,) = raw._connections.values()
        connection.close()
        assert first_offset(raw, 0) == 0
        (connection,) = raw._connections.values()
        connection.close()
        raw.ask_ahead(FIRST, Offset(0), most_bytes=MOST)
        assert first_offset(raw, 0) == 0
