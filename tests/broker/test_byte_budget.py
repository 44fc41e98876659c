"""A batch keeps its bytes while it is read: what is stored is counted, headers too, and what was seen is left (I5)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from consumers.unit_reader import read_unit, read_units
from tests.broker.reading_rig import META, Rig, landed_rows, reread
from wavestitch.contracts.batch_size import READER_STOP, ReaderStop
from wavestitch.contracts.chunk_header import encode_headers
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.plan import Plan
from wavestitch.contracts.stream import Limits

MIB = 1 << 20


def bounded(plan: Plan, size: int) -> Plan:
    """The plan with this budget for the whole batch."""
    limits = Limits(max_batch_bytes=size, max_waveform_bytes=1000)
    ranges = tuple(s for unit in plan.units for s in unit)
    return reread(plan, stream=plan.stream.model_copy(update={"limits": limits}), ranges=ranges)


def left(folder: Path) -> list[ReaderStop]:
    return [READER_STOP.read(path.read_text()) for path in folder.glob("reader-stopped-*.json")]


def test_a_reader_stops_where_records_are_larger_than_the_plan_thought(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    rig.sender(topic, value_bytes=100_000).send(200)
    plan = bounded(rig.plan(topic, [[(0, 0, 200)]]), MIB)
    with pytest.raises(Refused, match=r"after 11 of 200 offsets its records take .* allowed are 1048576") as refused:
        read_unit(plan=plan, unit=0, kafka=rig.kafka, folder=rig.folder)
    assert "plan again: the next batch covers less by itself" in refused.value.message
    (seen,) = left(rig.folder)
    assert (seen.plan_id, seen.records, seen.offsets, seen.planned) == (plan.plan_id, 11, 200, 200)
    assert 100_000 < seen.mean < 101_000
    assert not list(rig.folder.glob("*.arrow"))


def test_headers_and_keys_of_records_that_are_no_chunks_count_too(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    sender = rig.sender(topic)
    for _ in range(20):
        sender.record(b"1", key=None, headers=[("x", b"\0" * 400_000)])
        sender.record(b"1", key=b"\0" * 400_000, headers=[])
    sender.flush()
    with pytest.raises(Refused, match="after 3 of 40 offsets"):
        read_unit(plan=bounded(rig.plan(topic, [[(0, 0, 40)]]), MIB), unit=0, kafka=rig.kafka, folder=rig.folder)


def test_each_text_of_metadata_counts_sixteenfold_and_its_repeats_once(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory(partitions=2)
    sender = rig.sender(topic)
    for n in range(60):
        for partition, note in ((0, "the same"), (1, str(n))):
            meta = json.dumps({**json.loads(META), "note": note.ljust(10_000)})
            said = encode_headers(waveform_id="w", seq=n, count=None, meta=meta, value=b"ab", digest=None)
            sender.record(b"ab", key=b"w", headers=said, partition=partition)
    sender.flush()
    same = bounded(rig.plan(topic, [[(0, 0, 60)]]), MIB)
    assert len(landed_rows(rig.folder, same, [read_unit(plan=same, unit=0, kafka=rig.kafka, folder=rig.folder)])) == 60
    other = bounded(rig.plan(topic, [[(1, 0, 60)]]), MIB)
    with pytest.raises(Refused, match="after 7 of 60 offsets"):
        read_unit(plan=other, unit=0, kafka=rig.kafka, folder=rig.folder)


def test_one_record_always_fits(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    rig.sender(topic, value_bytes=500_000).send(2)
    plan = bounded(rig.plan(topic, [[(0, 0, 1)]]), 10_000)
    assert len(landed_rows(rig.folder, plan, [read_unit(plan=plan, unit=0, kafka=rig.kafka, folder=rig.folder)])) == 1


def test_units_read_together_share_the_whole_batchs_budget_and_keep_it(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory(partitions=2)
    rig.sender(topic, value_bytes=20_000).send(45)
    rig.sender(topic, value_bytes=100).send(45, partition=1)
    plan = rig.plan(topic, [[(0, 0, 45)], [(1, 0, 45)]])
    fits = bounded(plan, MIB)  # the first unit takes nearly all of it
    receipts = read_units(plan=fits, kafka=rig.kafka, folder=rig.folder)
    assert len(landed_rows(rig.folder, fits, receipts)) == 90
    too_little = bounded(plan, 920_000)
    with pytest.raises(Refused, match="allowed are 920000"):
        read_units(plan=too_little, kafka=rig.kafka, folder=rig.folder)
    assert [seen.plan_id for seen in left(rig.folder)] == [too_little.plan_id]
