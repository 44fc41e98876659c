"""Reading slices from a real broker: every offset is a record, an explained hole or a named error (I1, I5, I8)."""

from __future__ import annotations

import itertools
import os
import signal
import time
import zlib
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from consumers.batch_scan import scan_batches
from consumers.range_scan import Source
from consumers.raw_message import message_at
from consumers.unit_reader import read_unit, read_units, write_receipt
from tests.broker.markers import write_markers
from tests.broker.reading_rig import (
    LARGE,
    META,
    SMALL,
    Headers,
    Rig,
    landed_rows,
    payloads,
    plan_over,
    send_with_raw_header_name,
)
from tests.builders.ranges import span
from wavestitch.contracts.chunk_header import encode_headers
from wavestitch.contracts.chunk_proof import NO_PROOF, ChunkProof
from wavestitch.contracts.errors import BadInput, Terminal, Transient
from wavestitch.contracts.holes import Proof
from wavestitch.contracts.quantities import Offset, Partition
from wavestitch.contracts.raw_headers import decode_raw_headers, kept_bytes
from wavestitch.contracts.receipt import receipt_from_json
from wavestitch.contracts.record_columns import RecordColumns
from wavestitch.kafka.client_settings import KafkaSettings
from wavestitch.local.broker import start_broker, stop_broker

# --- whole readings


BOTH_WAYS = True


@pytest.mark.parametrize("partitions", [1, 12])
def test_every_record_of_every_partition_is_landed_byte_for_byte(rig: Rig, topic_factory: Any, partitions: int) -> None:
    topic = topic_factory(partitions=partitions)
    sender = rig.sender(topic)
    sent = [v for p in range(partitions) for v in sender.send(50 + p, partition=p)]
    half = (partitions + 1) // 2
    slices = [(p, 0, 50 + p) for p in range(partitions)]
    rows = rig.read(rig.plan(topic, [u for u in (slices[:half], slices[half:]) if u]))
    assert payloads(rows) == sent
    assert {r["reason"] for r in rows} == {None}
    assert all(abs(r["timestamp_ms"] - time.time() * 1000) < 600_000 for r in rows)
    assert rig.holes == []


def test_slices_of_one_partition_make_up_the_whole_whatever_their_order(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    sent = rig.sender(topic).send(1000)
    cuts = [(0, 0, 1), (0, 1, 400), (0, 400, 401), (0, 401, 1000)]
    assert payloads(rig.read(rig.plan(topic, [cuts]))) == sent
    assert payloads(rig.read(rig.plan(topic, [[cuts[3], cuts[0]], [cuts[2], cuts[1]]]))) == sent


def test_reading_stops_at_the_planned_end_although_more_is_there(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    sent = rig.sender(topic).send(300)
    assert payloads(rig.read(rig.plan(topic, [[(0, 100, 200)]]))) == sent[100:200]


def test_an_empty_slice_has_no_file(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory(partitions=2)
    assert rig.read(rig.plan(topic, [[(0, 0, 0), (1, 0, 0)]])) == []
    assert rig.files() == []


@pytest.mark.parametrize("in_children", [False, True])
def test_a_stream_that_demands_a_mac_takes_only_what_was_sealed_with_its_key(
    rig: Rig, topic_factory: Any, in_children: bool
) -> None:
    topic = topic_factory()
    sender = rig.sender(topic)
    demanded = ChunkProof("mac", b"k" * 32, topic)
    for proof in (demanded, NO_PROOF, ChunkProof("mac", b"K" * 32, topic)):
        sealed = encode_headers(waveform_id="w", seq=0, count=1, meta=META, value=b"abcd", digest=None, proof=proof)
        sender.record(b"abcd", key=b"w", headers=sealed)
    sender.flush()
    plan = rig.plan(topic, [[(0, 0, 3)]], proof="mac", proof_key="file:key")
    assert "kkkk" not in plan.to_json()
    if in_children:
        receipts = read_units(plan=plan, kafka=rig.kafka, folder=rig.folder, proof=demanded)
        rows = landed_rows(rig.folder, plan, receipts)
    else:
        rows = rig.read(plan, proof=demanded)
    assert [r["reason"] for r in rows] == [None, "unproven", "forged"]
    assert payloads(rows) == [b"abcd"] * 3


@pytest.mark.parametrize("in_children", [False, True])
def test_a_chunk_from_a_partition_that_its_id_is_not_bound_to_is_held_and_its_neighbours_go_on(
    rig: Rig, topic_factory: Any, in_children: bool
) -> None:
    topic = topic_factory(partitions=2)
    sender = rig.sender(topic)
    for partition in (0, 1):
        for wid in ("ward-a/1", "ward-b/1"):
            said = encode_headers(waveform_id=wid, seq=0, count=1, meta=META, value=b"abcd", digest=None)
            sender.record(b"abcd", key=wid.encode(), headers=said, partition=partition)
    sender.flush()
    bound = {"prefixes": {"ward-a/": [0], "ward-b/": [1]}}
    plan = rig.plan(topic, [[(0, 0, 2)], [(1, 0, 2)]], id_partitions=bound)
    if in_children:
        rows = landed_rows(rig.folder, plan, read_units(plan=plan, kafka=rig.kafka, folder=rig.folder))
    else:
        rows = rig.read(plan)
    assert [(r["waveform_id"], r["reason"]) for r in rows] == [
        ("ward-a/1", None),
        ("ward-b/1", "wrong_partition"),
        ("ward-a/1", "wrong_partition"),
        ("ward-b/1", None),
    ]
    assert payloads(rows) == [b"abcd"] * 4


def test_reading_a_unit_again_gives_the_same_files(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    rig.sender(topic, value_bytes=100_000).send(400)
    plan = rig.plan(topic, [[(0, 0, 150), (0, 150, 400)]])
    rig.read(plan)
    files = rig.files()
    rig.read(plan)
    assert rig.files() == files
    assert len(files) == 2


def test_a_receipt_is_written_once_under_its_digest(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    rig.sender(topic).send(3)
    receipt = read_unit(plan=rig.plan(topic, [[(0, 0, 3)]]), unit=0, kafka=rig.kafka, folder=rig.folder)
    path = write_receipt(rig.folder, receipt)
    assert path.name.startswith("receipt-u000-")
    assert receipt_from_json(path.read_text()) == receipt
    assert write_receipt(rig.folder, receipt) == path


def test_a_unit_that_the_plan_does_not_have_is_refused(rig: Rig, topic_factory: Any) -> None:
    plan = rig.plan(topic_factory(), [[(0, 0, 0)]])
    with pytest.raises(BadInput, match="units 0 to 0; unit 1"):
        read_unit(plan=plan, unit=1, kafka=rig.kafka, folder=rig.folder)


# --- transactions


def test_a_reading_ends_behind_trailing_markers_of_commits_and_aborts(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    sender = rig.sender(topic, transactional=True)
    sent = sender.commit(5) + sender.commit(5)  # markers at 5 and 11
    sender.abort(4)  # 12 to 15, marker at 16
    assert rig.settled_end(topic) == 17
    rows = rig.read(rig.plan(topic, [[(0, 0, 17)]]))
    assert payloads(rows) == sent
    assert rig.holes == [
        (5, 6, Proof.COMMIT_MARKER),
        (11, 12, Proof.COMMIT_MARKER),
        (12, 16, Proof.ABORTED),
        (16, 17, Proof.ABORT_MARKER),
    ]


def test_slices_may_begin_and_end_inside_aborted_records_and_at_markers(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    sender = rig.sender(topic, transactional=True)
    sent = sender.commit(5)
    sender.abort(6)
    sent += sender.commit(3)
    end = rig.settled_end(topic)
    assert end == 17
    cuts = [(0, a, a + 1) for a in range(end)]
    assert payloads(rig.read(rig.plan(topic, [cuts]))) == sent


@pytest.mark.parametrize("followed", [True, False])
def test_a_long_aborted_run_is_proven(rig: Rig, topic_factory: Any, followed: bool) -> None:
    topic = topic_factory()
    sender = rig.sender(topic, transactional=True)
    sent = sender.commit(5)
    sender.abort(300)  # 6 to 305, marker at 306
    sent += sender.commit(2) if followed else []
    rig.settled_end(topic)
    rows = rig.read(rig.plan(topic, [[(0, 0, 307)]]))
    assert payloads(rows) == sent[:5]
    assert rig.holes == [(5, 6, Proof.COMMIT_MARKER), (6, 306, Proof.ABORTED), (306, 307, Proof.ABORT_MARKER)]


def test_aborted_transactions_without_an_end_end_a_careful_reading_by_name(rig: Rig, topic_factory: Any) -> None:
    """What they aborted is nothing that came: the deadline is that of silence, whatever is fetched meanwhile."""
    topic = topic_factory()
    sender = rig.sender(topic, transactional=True)
    sent = sender.commit(2)  # 0 and 1, marker at 2
    for _ in range(4):
        sender.abort(1)  # 3 and its marker at 4, and so on
    sent += sender.commit(1)
    end = rig.settled_end(topic)
    taken: list[bytes] = []

    def take(message: Any, _: Offset) -> int:
        taken.append(bytes(message.value()))
        return len(taken[-1])

    source = Source("ecg", topic, "", f"g-{topic}", 5.0)

    def take_columns(records: RecordColumns, epoch: int) -> int:
        return sum(take(message_at(records, n, epoch), Offset(0)) for n in range(len(records)))

    read = partial(
        scan_batches, span(0, 0, end), settings=rig.kafka, source=source, take=take, take_columns=take_columns
    )
    read(clock=itertools.count(step=0.1).__next__)
    assert taken == sent
    no_more = r"from offset 2 to \d+ nothing was committed, and 6 record batches of aborted transactions"
    with pytest.raises(Terminal, match=no_more) as said:
        read(clock=itertools.count(step=1.0).__next__)
    assert "raise that of the stream to read on; or leave them out" in said.value.message


def test_an_open_transaction_ends_the_plan_and_not_the_reading(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    sent = rig.sender(topic, transactional=True).commit(5)
    rig.settled_end(topic)
    hanging = rig.sender(topic, transactional=True)
    hanging.begin()
    hanging.send(3)
    rig.sender(topic).send(2)
    ends = rig.log.ends(topic, [Partition(0)])[Partition(0)]
    assert (ends.stable_end, ends.high_watermark) == (6, 11)
    assert payloads(rig.read(rig.plan(topic, [[(0, 0, 6)]]))) == sent


def test_a_range_that_an_open_transaction_holds_back_fails_at_the_idle_deadline(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    hanging = rig.sender(topic, transactional=True)
    hanging.begin()
    hanging.send(3)
    with pytest.raises(Transient, match=r"nothing came for 1 s at offset 0 \(stable end 0\)"):
        rig.read(rig.plan(topic, [[(0, 0, 3)]], idle_deadline=1))


@pytest.mark.parametrize("commit, proof", [(True, Proof.COMMIT_MARKER), (False, Proof.ABORT_MARKER)])
@pytest.mark.parametrize("count", [1, 65, 5000])
def test_markers_side_by_side_are_proven_however_many_and_wherever_slices_are_cut(
    rig: Rig, topic_factory: Any, count: int, commit: bool, proof: Proof
) -> None:
    topic = topic_factory()
    sender = rig.sender(topic, transactional=True)
    sent = sender.commit(3)
    rig.settled_end(topic)
    write_markers(rig.bootstrap, topic, count, commit=commit)
    rig.settled_end(topic)
    sent += sender.commit(2)
    end = rig.settled_end(topic)
    assert end == 4 + count + 3
    inside = 4 + count // 2
    for cuts in ([0, end], [0, 4, 4 + count, end], [0, inside, inside, inside + 1, end]):
        slices = [(0, a, b) for a, b in pairwise(cuts)]
        assert payloads(rig.read(rig.plan(topic, [slices]))) == sent
        found = {o: hole.proof for hole in rig.holes for o in range(hole.start, hole.end)}
        markers = {3: Proof.COMMIT_MARKER, **dict.fromkeys(range(4, 4 + count), proof), end - 1: Proof.COMMIT_MARKER}
        assert found == markers


def test_a_stream_of_small_transactions_is_proven_by_few_fetches(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    sender = rig.sender(topic, transactional=True, value_bytes=1000)
    sent = [v for n in range(60) for v in (sender.commit(3) if n % 3 else sender.abort(3) or [])]  # type: ignore[func-returns-value]
    end = rig.settled_end(topic)
    assert end == 240
    assert payloads(rig.read(rig.plan(topic, [[(0, 0, end)]]))) == sent
    assert sum(hole.end - hole.start for hole in rig.holes) == end - len(sent)


# --- what the log has lost


# --- records that are no chunks


def good(value: bytes = b"abcd") -> Headers:
    return list(encode_headers(waveform_id="w", seq=3, count=None, meta=META, value=value, digest=None))


HOSTILE: list[tuple[str, bytes | None, Headers, bytes | None]] = [
    ("not_a_chunk", b"w", [], b"abcd"),
    ("null_value", b"w", good(), None),
    ("corrupt", b"w", good(), b"abce"),
    ("corrupt", b"other", good(), b"abcd"),
    ("bad_id", None, good(), b"abcd"),
    ("bad_id", b"\xff\xfe", good(), b"abcd"),
    ("bad_header", b"w", [*good(), ("ws-seq", b"3")], b"abcd"),
    ("bad_header", b"w", [("ws-version", b"2"), ("ws-seq", None)], b"abcd"),
    ("unknown_version", b"w", [("ws-version", b"1")], b"abcd"),
    ("bad_header", b"w", [("ws-version", b"2"), ("ws-seq", b"9" * 5000)], b""),
    ("not_a_chunk", b"", [("x" * 1000, b"\x00" * 1000)], b""),
]


def test_records_that_are_no_chunks_are_landed_as_they_came(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    sender = rig.sender(topic)
    for _reason, key, headers, value in HOSTILE:
        sender.record(value, key=key, headers=headers)
    sender.flush()
    behind = sender.send(2)
    rows = rig.read(rig.plan(topic, [[(0, 0, len(HOSTILE) + 2)]]))
    assert payloads(rows)[-2:] == behind, "what comes behind the poison"
    for row, (reason, key, headers, value) in zip(rows, HOSTILE, strict=False):
        assert row["reason"] == reason
        assert row["evidence"]
        assert row["raw_key"] == key
        assert row["payload"] == value
        assert row["length"] == kept_bytes(key, headers, value)
        assert row["crc"] == zlib.crc32(value or b"")
        assert decode_raw_headers(row["raw_headers"] or b"") == headers
    assert (rows[2]["waveform_id"], rows[2]["seq"]) == ("w", 3)


def test_a_header_name_that_the_client_cannot_decode_does_not_stop_the_stream(rig: Rig, topic_factory: Any) -> None:
    topic = topic_factory()
    # After many calls the interpreter has specialised them, and a naive one would end the process here.
    before = rig.sender(topic).send(500)
    send_with_raw_header_name(rig.bootstrap, topic, b"\xff\xfe")
    behind = rig.sender(topic).send(2)
    rows = rig.read(rig.plan(topic, [[(0, 0, 503)]]))
    poison = rows.pop(500)
    assert (poison["reason"], poison["payload"], poison["raw_key"]) == ("bad_header", b"payload", b"key")
    assert poison["raw_headers"] is None
    assert payloads(rows) == before + behind


# --- a broker that goes away


def test_a_broker_that_is_not_there_is_a_transient_error(tmp_path: Path) -> None:
    plan = plan_over("t", "id", [[(0, 0, 5)]], mean=LARGE)
    with pytest.raises(Transient, match=r"127\.0\.0\.1:1"):
        read_unit(plan=plan, unit=0, kafka=KafkaSettings("127.0.0.1:1"), folder=tmp_path)


@pytest.mark.parametrize(
    ("mean", "said"),
    [(LARGE, "is the broker up and within reach"), (SMALL, "no connection to the broker at .*; is it up?")],
)
def test_a_broker_that_goes_away_during_the_reading_is_a_transient_error(
    java_home: Path, kafka_jars: Path, make_topic: Any, tmp_path: Path, *, mean: float, said: str
) -> None:
    home = tmp_path / "kafka"
    broker = start_broker(folder=home, java_home=java_home, jars=kafka_jars)
    try:
        rig = Rig(broker.bootstrap, tmp_path / "landing")
        make_topic(broker.bootstrap, "t", 1, {})
        rig.sender("t", value_bytes=500_000).send(150)
        gone: list[bool] = []

        def kill(_records: int, _size: int) -> None:
            if not gone:
                gone.append(True)
                os.kill(broker.pid, signal.SIGKILL)

        with pytest.raises(Transient, match=said):
            rig.read(rig.plan("t", [[(0, 0, 150)]], idle_deadline=1, mean=mean), progress=kill)
        assert rig.files() == []
    finally:
        stop_broker(home)
