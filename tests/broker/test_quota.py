"""A cluster with client quotas answers a throttled fetch with nothing in it: it is waited out, or named (I5)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import kafka.protocol.admin as admin
import pytest

from consumers.unit_reader import read_unit
from tests.broker.reading_rig import LARGE, SMALL, Rig, landed_rows
from wavestitch.contracts.errors import Transient
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.kafka.connection import Connection
from wavestitch.kafka.raw_log import RawLog, Throttled


@contextmanager
def quota(rig: Rig, bytes_per_second: int) -> Iterator[None]:
    """Of every client of the broker."""
    _alter(rig, bytes_per_second)
    try:
        yield
    finally:
        _alter(rig, None)


def _alter(rig: Rig, rate: int | None) -> None:
    request = admin.AlterClientQuotasRequest
    entry = request.EntryData
    anybody = entry.EntityData(entity_type="client-id", entity_name=None)
    op = entry.OpData(key="consumer_byte_rate", value=float(rate or 0), remove=rate is None)
    anyone = rig.bootstrap.split(",")[0]
    host, _, port = anyone.rpartition(":")
    with Connection(KafkaSettings(anyone), host, int(port), deadline=time.monotonic() + 20) as connection:
        asked = request[1](entries=[entry(entity=[anybody], ops=[op])], validate_only=False)
        assert connection.ask(asked).entries[0].error_code == 0


def throttled(rig: Rig, topic: str) -> None:
    """Fetch until the broker has had enough of us: its next answer is empty."""
    until = time.monotonic() + 60
    with RawLog(rig.kafka, topic) as raw:
        while time.monotonic() < until:
            try:
                raw._fetch(Partition(0), Offset(0), most_bytes=1 << 20, last_epoch=None, until=until)
            except Throttled:
                return
    raise AssertionError("never throttled")


def test_a_throttled_reading_waits_and_reads_everything(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    rig.sender(topic, value_bytes=50_000).send(20)
    rig.sender(topic, transactional=True).commit(3)
    end = rig.settled_end(topic)
    plan = rig.plan(topic, [[(0, 0, end)]], idle_deadline=60)
    with quota(rig, 200_000):
        throttled(rig, topic)
        probed = rig.log.probe(topic, {Partition(0): Offset(0)})
        throttled(rig, topic)
        receipt = read_unit(plan=plan, unit=0, kafka=rig.kafka, folder=rig.folder, careful=True)
    assert probed.records <= 5
    assert len(landed_rows(rig.folder, plan, [receipt])) == 23


def test_a_quota_that_outlasts_the_deadline_is_named(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    rig.sender(topic, value_bytes=50_000).send(20)
    with quota(rig, 20_000):
        throttled(rig, topic)
        with RawLog(rig.kafka, topic, deadline=1.0) as raw, pytest.raises(Transient, match="quota"):
            _fetch_often(raw)


@pytest.mark.parametrize(
    ("mean", "said"),
    [
        (LARGE, r"nothing came for 1 s .*above its quota .*reading\.idle_deadline"),
        (SMALL, r"sends nothing for .* s: this client is above its quota .*within 1 s"),
    ],
)
def test_a_throttled_reader_ends_by_its_deadline_and_names_the_quota(
    rig: Rig, topic_factory: Any, mean: float, said: str
) -> None:
    """It hears of the quota and waits; it ends after the longest silence that it may hear."""
    topic = topic_factory()
    rig.sender(topic, value_bytes=50_000).send(20)
    plan = rig.plan(topic, [[(0, 0, 20)]], idle_deadline=1, mean=mean)
    with quota(rig, 20_000):
        throttled(rig, topic)
        began = time.monotonic()
        with pytest.raises(Transient, match=said) as found:
            rig.read(plan)
        took = time.monotonic() - began
    assert found.value.facts["throttled_seconds"] > 1
    assert took < 15, "the deadline, and what is asked about the topic before and after it"
    assert rig.files() == []


def _fetch_often(raw: RawLog) -> None:
    for _ in range(20):
        raw.fetch(Partition(0), Offset(0), most_bytes=1 << 20)
