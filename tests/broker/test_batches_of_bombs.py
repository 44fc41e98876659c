"""A topic of records that blow up is read in batches that end: what inflating takes is counted, and teaches (I5)."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from consumers import range_scan, unit_reader
from consumers.raw_message import MOST_ASIDE_BYTES
from consumers.unit_reader import read_unit, read_units
from tests.broker.raw_producing import batch_of, part, produce, record, zstd
from tests.broker.reading_rig import Rig
from tests.builders.recordings import cut, recordings
from tests.conftest import TopicFactory
from tests.deployment_rig import STREAM, DeploymentRig, make_deployment_rig
from tests.faults.in_process import run_here
from wavestitch.batch.run import RunOptions
from wavestitch.contracts.batch_size import READER_STOP, ReaderStop
from wavestitch.contracts.errors import Refused
from wavestitch.contracts.quantities import Partition
from wavestitch.contracts.receipt import Receipt
from wavestitch.local.broker import Broker

MIB = 1 << 20
LIMIT = 12 * MIB
INFLATED = MOST_ASIDE_BYTES + MIB
"""Of one bomb: a key that is larger than a reader will look at."""
WORK = INFLATED // 64
"""What that counts, of the bytes of a batch."""
BOMBS = 240


@pytest.fixture
def whole(tmp_path: Path, broker: Broker, topic_factory: TopicFactory, java_home: Path) -> DeploymentRig:
    limits = f"64 KiB, max_batch_bytes: {LIMIT} B"
    topic = topic_factory()
    return make_deployment_rig(
        tmp_path / "deployment",
        bootstrap=broker.bootstrap,
        topic=topic,
        java_home=java_home,
        max_waveform_bytes=limits,
    )


def stops(folder: Path) -> list[ReaderStop]:
    return [READER_STOP.read(p.read_text()) for p in folder.rglob("reader-stopped-*.json")]


def made_bomb() -> bytes:
    bomb = batch_of(zstd(record(0, b"v", key=b"\1" * INFLATED)), 1)
    assert len(bomb) < 2000
    return bomb


def read_carefully(*, units: Any, progress: Any, **given: Any) -> list[Receipt]:
    """In this process, as readers do that the client has failed."""
    return [read_unit(unit=unit, careful=True, **given) for unit in units]


def test_hundreds_of_bombs_among_good_chunks_pass_in_batches_that_keep_their_bound(whole: DeploymentRig) -> None:
    bomb = made_bomb()
    sent = recordings(6, samples=40)
    places = set[int]()
    for one in sent:
        whole.send(cut([one]))
        places |= {produce(whole.deployment.kafka.bootstrap, whole.topic, bomb) for _ in range(BOMBS // len(sent))}
    assert len(places) == BOMBS

    batches: list[list[int]] = []
    refused: list[str] = []
    while True:
        before = 0 if not batches else batches[-1][-1] + 1
        try:
            done = run_here(whole.deployment, STREAM, RunOptions(), read=read_carefully)
        except Refused as stopped:
            refused.append(stopped.message)
            assert len(refused) <= 20, "the stream does not get on"
            continue
        if "nothing" in done:
            break
        head = whole.deployment.tables(STREAM).head()
        assert head is not None
        batches.append([*range(before, head.positions[Partition(0)].next_offset)])

    assert whole.published() == {r.waveform_id: bytes(r.samples) for r in sent}
    held = whole.deployment.tables(STREAM).stored()[1].ensure().scan().to_arrow().to_pylist()
    assert {r["offset"] for r in held if r["record_reason"] == "unreadable"} == places
    assert len(batches) > 3, "all of it would have been one batch"
    for covered in batches:
        assert len(places.intersection(covered)) * WORK <= LIMIT
    assert refused
    for sentence in refused:
        assert "inflating its" in sentence
        assert "plan again: the next batch covers less by itself" in sentence
    for seen in stops(whole.folder):
        allowed = LIMIT * seen.offsets // seen.planned
        assert allowed < seen.bytes <= allowed + 2 * WORK


@pytest.mark.parametrize(("careful", "count"), [(True, 6), (False, 24)])
def test_what_is_fetched_and_inflates_to_nothing_is_counted(
    rig: Rig, topic_factory: TopicFactory, monkeypatch: pytest.MonkeyPatch, *, careful: bool, count: int
) -> None:
    """The client does not say what it fetched for a record, but what it fetched in all: then it is read carefully."""
    monkeypatch.setattr(range_scan, "_STATISTICS_MS", 5)
    monkeypatch.setattr(unit_reader, "_AHEAD_BYTES", 2 * MIB)
    # One record at a time, and a pause behind each: however busy the machine is, the client says something in between.
    monkeypatch.setattr(range_scan, "_FIRST_RECORDS", 1)
    monkeypatch.setattr(range_scan, "_MOST_RECORDS", 1)
    monkeypatch.setattr(unit_reader, "_PROGRESS_SECONDS", 0.0)
    topic, padding = topic_factory(), 900_000
    # A frame that zstd passes over, behind a record with a header: one without is read carefully in any case.
    one = record(0, b"v", headers=part(b"h") + part(b"v"), count=1)
    skipped = struct.pack("<II", 0x184D2A50, padding) + os.urandom(padding)
    for _ in range(count):
        produce(rig.bootstrap, topic, batch_of(zstd(one) + skipped, 1))
    allowed = 3 * padding
    declared = {"limits": {"max_batch_bytes": allowed, "max_waveform_bytes": 1000}}
    plan = rig.plan(topic, [[(0, 0, count)]], idle_deadline=120, **declared)
    with pytest.raises(Refused, match=r"fetching and inflating its 3 record batches was as much work as storing"):
        read_unit(
            plan=plan, unit=0, kafka=rig.kafka, folder=rig.folder, careful=careful, progress=lambda *_: time.sleep(0.1)
        )
    (seen,) = stops(rig.folder)
    assert seen.mean > padding


def test_units_of_bombs_that_are_read_together_share_the_whole_batchs_bound(
    rig: Rig, topic_factory: TopicFactory
) -> None:
    topic, bomb, count = topic_factory(), made_bomb(), 12
    for _ in range(count):
        produce(rig.bootstrap, topic, bomb)
    allowed = (count - 2) * WORK
    declared = {"limits": {"max_batch_bytes": allowed, "max_waveform_bytes": 1000}}
    plan = rig.plan(topic, [[(0, 0, count // 2)], [(0, count // 2, count)]], idle_deadline=120, **declared)
    with pytest.raises(Refused, match=r"inflating its .* record batches was as much work as storing"):
        read_units(plan=plan, kafka=rig.kafka, folder=rig.folder)
    (seen,) = stops(rig.folder)
    assert allowed < seen.bytes <= count * (WORK + 100)
    assert seen.mean > WORK
