"""Records that blow up: held by their coordinates, neighbours go on, and a reader's memory is bounded (I1, I5)."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from consumers.raw_message import MOST_ASIDE_BYTES, MOST_HEADERS, MOST_RECORD_BYTES
from consumers.unit_reader import read_unit, read_units
from tests.broker.raw_producing import batch_of, part, produce, record, zstd
from tests.broker.reading_rig import META, Rig, landed_rows, payloads
from wavestitch.contracts.chunk_header import encode_headers
from wavestitch.contracts.receipt import receipt_from_json

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MIB = 1 << 20
IDLE_SECONDS = 120


def throw(rig: Rig, topic: str, codec: str, values: list[bytes], *, together: bool = False) -> None:
    """Send records compressed by this codec, each in a batch of its own unless `together`."""
    settings = {"compression.type": codec, "message.max.bytes": 1_000_000_000, "linger.ms": 500 if together else 0}
    producer = Producer({"bootstrap.servers": rig.bootstrap, **settings})
    failed: list[Any] = []
    for n, value in enumerate(values):
        headers = encode_headers(waveform_id="w", seq=n, count=None, meta=META, value=value, digest=None)
        producer.produce(topic, value, b"w", headers=list(headers), on_delivery=lambda e, _: failed.append(e))
        if not together:
            assert producer.flush(60) == 0
    assert producer.flush(60) == 0
    assert failed == [None] * len(values)


@pytest.mark.parametrize("codec", CODECS)
def test_a_careful_reading_lands_the_same_bytes_as_the_clients(rig: Rig, topic_factory: Any, codec: str) -> None:
    topic = topic_factory()
    throw(rig, topic, codec, [bytes([n]) * (100 + n * 1000) for n in range(40)], together=True)
    rig.sender(topic, transactional=True).abort(5)
    rig.settled_end(topic)
    last = rig.sender(topic)
    last.record(None, key=None, headers=[("x", None)])
    last.flush()
    plan = rig.plan(topic, [[(0, 3, 47)]])
    quick = read_unit(plan=plan, unit=0, kafka=rig.kafka, folder=rig.folder)
    careful = read_unit(plan=plan, unit=0, kafka=rig.kafka, folder=rig.folder, careful=True)
    assert len(landed_rows(rig.folder, plan, [careful])) == 38
    assert [(s.file, s.digest, s.holes) for s in careful.slices] == [(s.file, s.digest, s.holes) for s in quick.slices]


READ = """
    import resource, sys
    from pathlib import Path
    from consumers.unit_reader import read_units, write_receipt
    from wavestitch.contracts.plan import plan_from_json
    from wavestitch.kafka.client_settings import KafkaSettings
    most = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    plan, landing = plan_from_json(Path("plan.json").read_text()), Path("landing")
    (receipt,) = read_units(plan=plan, kafka=KafkaSettings(sys.argv[1]), folder=landing)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10, write_receipt(landing, receipt))
"""


@pytest.mark.parametrize(
    "codec, size, memory",
    [
        ("zstd", 110 * MIB, 1024 * MIB),  # the client refuses it
        ("gzip", 300 * MIB, 1024 * MIB),  # the client takes it, and the record is too large
        ("gzip", 300 * MIB, 320 * MIB),  # the client ends its process for want of memory
    ],
)
def test_a_record_that_blows_up_is_held_and_its_neighbours_go_on(
    rig: Rig, topic_factory: Any, tmp_path: Path, codec: str, size: int, memory: int
) -> None:
    topic = topic_factory()
    for value in (b"before", bytes(size), b"behind"):
        throw(rig, topic, codec, [value])
    # Inflating it takes as long as the machine has no time for it: what is looked at here is memory, not silence.
    plan = rig.plan(topic, [[(0, 0, 3)]], idle_deadline=IDLE_SECONDS)
    (tmp_path / "plan.json").write_text(plan.to_json())
    program = [sys.executable, "-c", textwrap.dedent(READ), rig.bootstrap, str(memory)]
    done = subprocess.run(program, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=4 * IDLE_SECONDS)
    assert done.returncode == 0, done.stderr
    peak, receipt = done.stdout.split()
    rows = landed_rows(tmp_path / "landing", plan, [receipt_from_json((tmp_path / receipt).read_text())])
    assert payloads(rows)[::2] == [b"before", b"behind"]
    assert [r["reason"] for r in rows] == [None, "unreadable", None]
    assert f"allowed are {MOST_RECORD_BYTES}" in rows[1]["evidence"]
    assert "its payload is the raw record batch" in rows[1]["evidence"]
    assert 0 < rows[1]["length"] < MIB
    # The client's buffer, its record and the process itself, about 90 MiB: a copy more is past it.
    assert int(peak) < 2 * size + 200 * MIB


@pytest.mark.parametrize("headers", [MOST_HEADERS + 1, 100_001, 16_000_000])
@pytest.mark.parametrize("careful", [False, True])
def test_a_record_of_countless_headers_is_held_alike_by_both_readers(
    rig: Rig, topic_factory: Any, headers: int, careful: bool
) -> None:
    """Of more than 100,000 the client shows none, as if there were none; 16 million come in a batch of 3 KB."""
    topic = topic_factory()
    throw(rig, topic, "none", [b"before"])
    bomb = record(1, None, headers=b"\0\1" * headers, count=headers)
    huge = record(0, bytes(110 * MIB)) if careful else record(0, b"x")  # what the client refuses leads to care
    produce(rig.bootstrap, topic, batch_of(zstd(huge + bomb), 2))
    throw(rig, topic, "none", [b"behind"])
    plan = rig.plan(topic, [[(0, 0, 4)]], idle_deadline=IDLE_SECONDS)
    rows = landed_rows(rig.folder, plan, read_units(plan=plan, kafka=rig.kafka, folder=rig.folder))
    assert [r["offset"] for r in rows] == [0, 1, 2, 3]
    assert [rows[0]["payload"], rows[3]["payload"]] == [b"before", b"behind"]
    assert rows[2]["reason"] == "unreadable"
    assert f"a record of {headers} headers; allowed are {MOST_HEADERS}" in rows[2]["evidence"]


LONG = b"\1" * (63 * MIB)
"""Some 2 KB of a zstd batch. Of a header's name it once became 378 MiB of escapes, and no reader got past it."""


@pytest.mark.parametrize(
    "bomb",
    [
        {"key": LONG},
        {"headers": part(LONG) + part(b""), "count": 1},
        {"headers": part(b"x") + part(LONG), "count": 1},
        {"headers": part("\U0001f600".encode() * (15 * MIB)) + part(b""), "count": 1},
        {"headers": part(b"\xff" + LONG) + part(b""), "count": 1},
    ],
    ids=["key", "name", "value", "wide-name", "name-that-is-not-utf-8"],
)
def test_a_key_or_header_that_blows_up_is_held_and_its_neighbours_go_on(
    rig: Rig, topic_factory: Any, bomb: dict[str, Any]
) -> None:
    topic = topic_factory()
    throw(rig, topic, "none", [b"before"])
    packed = batch_of(zstd(record(0, b"v", **bomb)), 1)
    assert len(packed) < 10_000
    produce(rig.bootstrap, topic, packed)
    throw(rig, topic, "none", [b"behind"])
    plan = rig.plan(topic, [[(0, 0, 3)]], idle_deadline=IDLE_SECONDS)
    rows = landed_rows(rig.folder, plan, read_units(plan=plan, kafka=rig.kafka, folder=rig.folder))
    assert payloads(rows)[::2] == [b"before", b"behind"]
    assert rows[1]["reason"] == "unreadable"
    assert f"a record of more than {MOST_ASIDE_BYTES} bytes of key and headers" in rows[1]["evidence"]
    assert (rows[1]["payload"] or b"")[-100:] == packed[-100:]


def test_a_record_time_that_overflows_stops_nothing_and_both_readers_say_the_same(rig: Rig, topic_factory: Any) -> None:
    newest = 2**63 - 1
    topic = topic_factory(configs={"message.timestamp.after.max.ms": str(newest)})
    header = b"\2a\1"
    body = b"".join(record(n, b"x", since=s, headers=header, count=1) for n, s in enumerate((newest, 1)))
    produce(rig.bootstrap, topic, batch_of(zstd(body), 2, first=newest))
    plan = rig.plan(topic, [[(0, 0, 2)]])
    quick = read_unit(plan=plan, unit=0, kafka=rig.kafka, folder=rig.folder)
    careful = read_unit(plan=plan, unit=0, kafka=rig.kafka, folder=rig.folder, careful=True)
    assert [s.digest for s in quick.slices] == [s.digest for s in careful.slices]
    assert [r["timestamp_ms"] for r in landed_rows(rig.folder, plan, [careful])] == [0, 0]
